import type { LiveEvent } from '../model/wire.ts'
import { after, request, every, now } from './platform.ts'

/**
 * Receives the agent's events while the page is open. Opens a new stream if the stream breaks, or if no event arrives
 * and the agent does not answer. Waits 1, 2, 4, 5, 5 … s before each attempt.
 */
interface LiveParts {
  onEvent(event: LiveEvent): void
  /** `heardMs`: when the agent answered last, wall clock. */
  onLink(isLost: boolean, heardMs: number): void
}

const LONGEST_WAIT_MS = 5_000
/** If no event arrives for this time, the page asks whether the agent is there, ms. */
const SILENCE_LIMIT_MS = 10_000
const ANSWER_MS = 5_000
/** Time for the answer after an action or a lost network, ms: people must see soon that nothing happens. */
const SOON_MS = 2_000
const TYPES = ['status', 'result', 'operator', 'alarm'] as const

/** Starts to receive events. `onLink` reports whether the connection is lost. Returns a function that asks at once. */
export function listen({ onEvent, onLink }: LiveParts): () => void {
  let source: EventSource | undefined
  let waitMs = 1_000
  let lastEventMs = now()
  let heardMs = now()
  let isOpen = false

  function open(): void {
    const opened = new EventSource('/v1/events')
    source = opened
    opened.addEventListener('open', () => {
      lastEventMs = heardMs = now()
      waitMs = 1_000
      isOpen = true
      onLink(false, heardMs)
    })
    opened.addEventListener('error', () => reconnect(opened))
    for (const type of TYPES) {
      opened.addEventListener(type, (event: MessageEvent<string>) => {
        lastEventMs = heardMs = now()
        onEvent(JSON.parse(event.data) as LiveEvent)
      })
    }
  }

  /** Reconnects after a delay. The browser itself does not reconnect after an answer other than a stream. */
  function reconnect(lost: EventSource): void {
    if (source !== lost) return
    lost.close()
    source = undefined
    isOpen = false
    onLink(true, heardMs)
    void reloadIfUnpaired()
    after(waitMs, open)
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
  }

  function ask(limitMs: number): void {
    const current = source
    if (!current || !isOpen) return
    lastEventMs = now()
    request('/v1/status', {}, limitMs).then(
      () => (heardMs = now()),
      () => reconnect(current),
    )
  }

  every(ANSWER_MS, () => {
    if (now() - lastEventMs < SILENCE_LIMIT_MS) return
    ask(ANSWER_MS)
  })
  const askSoon = () => ask(SOON_MS)
  window.addEventListener('offline', askSoon)
  open()
  return askSoon
}

/** Reloads the page if the browser is no longer paired. The page then shows how to pair the browser. */
async function reloadIfUnpaired(): Promise<void> {
  const answer = await request(location.href, { method: 'HEAD' }, ANSWER_MS).catch(() => undefined)
  // Only an agent asks for a bearer. A proxy or a guest network must not replace the page.
  if (answer?.status === 401 && answer.headers.get('www-authenticate') === 'Bearer') location.reload()
}

/** Reloads the page if the agent has another build: the agent then answers 404 for this script. */
export async function reloadIfOutdated(): Promise<void> {
  const ask = (url: string) => request(url, { method: 'HEAD' }, ANSWER_MS).catch(() => undefined)
  const isOutdated = (await ask(import.meta.url))?.status === 404
  if (isOutdated && (await ask(location.href))?.ok) location.reload()
}
