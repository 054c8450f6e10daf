/** Buffers events for one consumer. A full buffer drops its oldest events and counts them. */
export interface EventBuffer<E> {
  push(event: E): void
  /** Ends the stream after the buffered events. After these events the stream throws `error`, if there is one. */
  end(error?: unknown): void
  read(): AsyncGenerator<E | Missed, void, undefined>
}

/** Event for the consumer: `count` events before the next event were dropped. */
export interface Missed {
  type: 'missed'
  count: number
}

/** Creates a buffer of at most `limit` events. */
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
