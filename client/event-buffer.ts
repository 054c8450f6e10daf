/** Events that wait for their reader. When too many wait, the oldest are dropped and counted. */
export interface EventBuffer<E> {
  push(event: E): void
  /** No more events come; what waits is still read. `error` is thrown after it. */
  end(error?: unknown): void
  read(): AsyncGenerator<E | Missed, void, undefined>
}

/** So many events were dropped before the next one. */
export interface Missed {
  type: 'missed'
  count: number
}

/** A buffer for one reader. */
export function eventBuffer<E>(limit: number): EventBuffer<E> {
  const waiting: E[] = []
  let missed = 0
  let ended: { error?: unknown } | undefined
  let wake: () => void = () => undefined

  return {
    push(event) {
      if (waiting.length >= limit) {
        waiting.shift()
        missed++
      }
      waiting.push(event)
      wake()
    },
    end(error) {
      ended ??= { error }
      wake()
    },
    async *read() {
      for (;;) {
        if (missed > 0) {
          const count = missed
          missed = 0
          yield { type: 'missed', count }
        }
        const event = waiting.shift()
        if (event !== undefined) yield event
        else if (ended) {
          if (ended.error !== undefined) throw ended.error
          return
        } else await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}
