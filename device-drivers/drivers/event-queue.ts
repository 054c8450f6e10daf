import type { DeviceEvent } from './device.ts'

/** Events on their way to one reader. */
export interface EventQueue {
  put(event: DeviceEvent): void
  end(): void
  readonly events: AsyncIterable<DeviceEvent>
}

const MOST_WAITING = 1_000

/** Holds at most 1,000 events; when nobody takes them the oldest go, and a `fault` says how many. */
export function eventQueue(): EventQueue {
  let waiting: DeviceEvent[] = []
  let dropped = 0
  let ended = false
  let wake = () => {}

  async function* read(): AsyncGenerator<DeviceEvent, void> {
    for (;;) {
      const batch = waiting
      waiting = []
      if (dropped > 0) {
        const lost = dropped
        dropped = 0
        yield { type: 'fault', detail: `${lost} events were lost because nobody took them in time` }
      }
      yield* batch
      if (waiting.length > 0) continue
      if (ended) return
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  return {
    put(event) {
      if (ended) return
      if (waiting.length >= MOST_WAITING) {
        waiting.shift()
        dropped++
      }
      waiting.push(event)
      wake()
    },
    end() {
      ended = true
      wake()
    },
    events: { [Symbol.asyncIterator]: read },
  }
}
