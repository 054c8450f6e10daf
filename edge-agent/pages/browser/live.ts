import type { LiveEvent } from '../model/wire.ts'
import { after, ask, every, now } from './platform.ts'

/**
 *   open ──▶ events …  ──▶ broken, or silent and deaf ──▶ lost ──▶ wait 1, 2, 4, 5, 5 … s ──▶ open
 *
 * Hears the agent for as long as the page is open.
 */
export interface LiveParts {
  onEvent(event: LiveEvent): void
  onLink(isLost: boolean): void
}

const LONGEST_WAIT_MS = 5_000
/** An online agent has something to say at least this often; a silent one is asked whether it is still there. */
const SILENCE_MS = 40_000
const ANSWER_MS = 5_000
const TYPES = ['status', 'result', 'operator'] as const

/** Follows the agent's event stream and starts over when it breaks. */
export function listen({ onEvent, onLink }: LiveParts): void {
  let source: EventSource | undefined
  let waitMs = 1_000
  let heardMs = now()
  let isOpen = false

  function open(): void {
    const opened = new EventSource('/v1/events')
    source = opened
    opened.addEventListener('open', () => {
      heardMs = now()
      waitMs = 1_000
      isOpen = true
      onLink(false)
    })
    opened.addEventListener('error', () => lose(opened))
    for (const type of TYPES) {
      opened.addEventListener(type, (event: MessageEvent<string>) => {
        heardMs = now()
        onEvent(JSON.parse(event.data) as LiveEvent)
      })
    }
  }

  /** The browser would try again by itself, but not after an answer that is no stream. */
  function lose(lost: EventSource): void {
    if (source !== lost) return
    lost.close()
    source = undefined
    isOpen = false
    onLink(true)
    void leaveIfUnpaired()
    after(waitMs, open)
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
  }

  every(ANSWER_MS, () => {
    const hearing = source
    if (!hearing || !isOpen || now() - heardMs < SILENCE_MS) return
    heardMs = now()
    ask('/v1/status', {}, ANSWER_MS).catch(() => lose(hearing))
  })
  open()
}

/** A browser whose pairing has ended gets the page that says how to pair it. */
async function leaveIfUnpaired(): Promise<void> {
  const answer = await ask(location.href, { method: 'HEAD' }, ANSWER_MS).catch(() => undefined)
  if (answer?.status === 401) location.reload()
}

/** A page of another build than the agent's is loaded anew; only an agent that answers says so. */
export async function keepUpToDate(): Promise<void> {
  const answer = await ask(import.meta.url, { method: 'HEAD' }, ANSWER_MS).catch(() => undefined)
  if (answer?.status === 404) location.reload()
}
