import type { Timers } from '../../policy/platform.ts'
import type { ReaderState } from './protocol/messages.ts'
import { type CommandResult, result } from '../kit/device.ts'
import { withCard, type Card } from './card.ts'
import type { Pcscd } from './pcscd.ts'
import type { TagWatch } from './tag-watch.ts'

/** A task for the card on the reader. `resolve` is called exactly once. */
interface Job {
  /** Returns the result to report if the task cannot run on the present tag; null if the task can run. */
  precheck(): CommandResult | null
  /** Rejects only if no command was sent to the tag. */
  run(card: Card): Promise<CommandResult>
  resolve(known: CommandResult): void
}

/** A session lasts from `identify` until the reader is lost. */
export interface Session {
  readonly over: AbortSignal
  /** Resolves with the reason when the session is over. */
  readonly lost: Promise<string>
  /** Adds a task to the queue. If the session ends first, the task ends with `not_ready`. */
  add(job: Job): void
  end(reason: string): void
}

interface SessionParts {
  readonly pcscd: Pcscd
  /** The reader's full name. */
  readonly reader: string
  readonly tags: TagWatch
  readonly timers: Timers
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Begins a session. One loop uses the connection, so no locks are needed. The loop reads the table of readers and a new
 * card, then runs the next job or waits for a change. A new job ends the wait.
 */
export function beginSession({ pcscd, reader, tags, timers }: SessionParts): Session {
  const ending = new AbortController()
  const over = ending.signal
  const jobs: Job[] = []
  let wake = new AbortController()
  let resolveLost = (_reason: string) => {}
  const lost = new Promise<string>((resolve) => {
    resolveLost = resolve
  })

  function end(reason: string): void {
    if (over.aborted) return
    ending.abort(new DOMException(reason, 'AbortError'))
    wake.abort()
    resolveLost(reason)
    for (const job of jobs.splice(0)) job.resolve(result('failed', false, 'not_ready', reason))
  }

  async function work(job: Job): Promise<void> {
    let outcome = job.precheck()
    if (outcome) return job.resolve(outcome)
    try {
      // Resolves the job before the card is unlocked, because later errors do not change the outcome.
      await withCard(pcscd, reader, timers, over, async (card) => {
        outcome = await job.run(card)
        job.resolve(outcome)
      })
    } catch (error) {
      if (outcome) throw error
      job.resolve(result('failed', false, 'not_ready', text(error)))
    } finally {
      tags.invalidate()
    }
  }

  async function loop(): Promise<void> {
    while (!over.aborted) {
      wake = new AbortController()
      const states: readonly ReaderState[] = await pcscd.readers()
      const state = states.find((each) => each.name === reader)
      if (!state) {
        tags.gone()
        return end(`the reader ${reader} was unplugged`)
      }
      await tags.update(pcscd, state, over)
      const job = jobs.shift()
      if (job) await work(job)
      else if (!over.aborted) await pcscd.untilChange(states, wake.signal)
    }
  }

  tags.invalidate()
  void pcscd.ended.then(end)
  void loop().catch((error: unknown) => end(text(error)))
  return {
    over,
    lost,
    add(job) {
      if (over.aborted) return job.resolve(result('failed', false, 'not_ready', 'the reader is not there'))
      jobs.push(job)
      wake.abort()
    },
    end,
  }
}
