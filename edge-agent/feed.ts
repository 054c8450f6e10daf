import type { AlarmState } from './lanes/gate/handled-alarms.ts'
import type { ScanResult } from './lanes/scan-result.ts'
import type { AgentStatus } from './health/agent-status.ts'

/** Live event for the pages. */
export type FeedEvent =
  | { type: 'status'; status: AgentStatus }
  | { type: 'result'; deviceId: string; atMs: number; result: ScanResult }
  | { type: 'operator'; deviceId: string; name: string | null }
  /** A person handled an alarm of the gate, here or in the console. */
  | ({ type: 'alarm'; deviceId: string; alarmId: string } & AlarmState)
  /** A person passed. `count`: people in this direction since the agent started. */
  | { type: 'person'; deviceId: string; direction: 'in' | 'out'; count: number }

export interface Feed {
  publish(event: FeedEvent): void
  /**
   * Returns all events from now on, until `signal` aborts or the feed closes. A slow listener loses its oldest events.
   */
  listen(signal: AbortSignal): AsyncIterable<FeedEvent>
  /** Ends all listeners. */
  close(): void
  readonly listeners: number
}

/** One report of the cloud may end all alarms of an agent at once. */
const BACKLOG_LIMIT = 1_000

/** Opens a feed without listeners. */
export function openFeed(): Feed {
  const listeners = new Set<(event: FeedEvent) => void>()
  const closing = new AbortController()

  async function* drain(
    backlog: FeedEvent[],
    signal: AbortSignal,
    woken: () => Promise<void>,
    leave: () => void,
  ): AsyncGenerator<FeedEvent> {
    try {
      while (!signal.aborted) {
        const event = backlog.shift()
        if (event) yield event
        else await woken()
      }
    } finally {
      leave()
    }
  }

  return {
    get listeners() {
      return listeners.size
    },
    publish(event) {
      for (const listener of listeners) listener(event)
    },
    listen(until) {
      const signal = AbortSignal.any([until, closing.signal])
      const backlog: FeedEvent[] = []
      let wake: () => void = () => undefined
      const listener = (event: FeedEvent) => {
        if (backlog.length >= BACKLOG_LIMIT) backlog.shift()
        backlog.push(event)
        wake()
      }
      const onAbort = () => {
        listeners.delete(listener)
        wake()
      }
      if (!signal.aborted) listeners.add(listener)
      signal.addEventListener('abort', onAbort, { once: true })
      const woken = () => new Promise<void>((resolve) => (wake = resolve))
      return drain(backlog, signal, woken, () => {
        listeners.delete(listener)
        signal.removeEventListener('abort', onAbort)
      })
    },
    close: () => closing.abort(),
  }
}
