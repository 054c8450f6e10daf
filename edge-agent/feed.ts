import type { ScanResult } from './lanes/lanes.ts'
import type { AgentStatus } from './health/status.ts'

/** What the pages hear as it happens. */
export type FeedEvent =
  | { type: 'status'; status: AgentStatus }
  | { type: 'result'; deviceId: string; atMs: number; result: ScanResult }
  | { type: 'operator'; deviceId: string; name: string | null }

export interface Feed {
  publish(event: FeedEvent): void
  /** Hears everything from now on until `signal` aborts; a listener that is too slow loses the oldest. */
  listen(signal: AbortSignal): AsyncIterable<FeedEvent>
  readonly listeners: number
}

const BACKLOG_LIMIT = 200

export function openFeed(): Feed {
  const listeners = new Set<(event: FeedEvent) => void>()
  return {
    get listeners() {
      return listeners.size
    },
    publish(event) {
      for (const listener of listeners) listener(event)
    },
    async *listen(signal) {
      const backlog: FeedEvent[] = []
      let wake: () => void = () => undefined
      const listener = (event: FeedEvent) => {
        if (backlog.length >= BACKLOG_LIMIT) backlog.shift()
        backlog.push(event)
        wake()
      }
      const onAbort = () => wake()
      listeners.add(listener)
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        while (!signal.aborted) {
          const event = backlog.shift()
          if (event) yield event
          else await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        listeners.delete(listener)
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}
