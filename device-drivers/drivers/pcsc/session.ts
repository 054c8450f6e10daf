import type { Timers } from '../../../policy/platform.ts'
import type { ReaderState } from '../../protocols/pcsc/reader-states.ts'
import type { CommandResult } from '../device.ts'
import { result } from '../device.ts'
import { withCard } from './card.ts'
import type { Card } from './card.ts'
import type { Pcscd } from './pcscd.ts'
import type { TagWatch } from './tag-watch.ts'

/** Something to do with the card on the reader. Told with its result exactly once. */
export interface Job {
  /** Says why it cannot be done with what is there now, before the card is spoken to; null: it can. */
  precheck(): CommandResult | null
  /** Rejects only while nothing has been commanded. */
  run(card: Card): Promise<CommandResult>
  resolve(known: CommandResult): void
}

/** From `identify` to the loss of the reader. */
export interface Session {
  readonly over: AbortSignal
  /** Resolves with the reason when the session is over. */
  readonly lost: Promise<string>
  /** Done in turn; told `not_ready` when the session ends first. */
  add(job: Job): void
  end(reason: string): void
}

interface SessionParts {
  readonly pcscd: Pcscd
  /** Its whole name. */
  readonly reader: string
  readonly tags: TagWatch
  readonly timers: Timers
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 *     ┌──▶ table of readers ──▶ look at the card ──▶ jobs ──▶ wait ──┐
 *     └───────────────────────────────────────────────────────────────┘
 *
 * One loop does everything with one conversation, so that nothing has to be locked: a job that comes while it
 * waits wakes it.
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
      // Told before the card is let go of: nothing that happens then changes what is known.
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
