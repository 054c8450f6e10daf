import { LinkFault } from './byte-link.ts'

/** Chunks that wait for one consumer. Writers wait while the queue is full. */
export interface ByteQueue {
  /** Adds a chunk as soon as there is room. Rejects when the queue has ended or `signal` aborts. */
  push(chunk: Uint8Array, signal: AbortSignal): Promise<void>
  /** Ends the queue. With a fault, discards unread chunks, and `bytes` throws the fault. */
  end(fault?: LinkFault): void
  readonly bytes: AsyncIterable<Uint8Array>
}

const MAX_CHUNKS = 1_024
const MAX_WRITERS = 64

/** Makes a queue of at most `limit` bytes. If the queue is empty, it accepts one larger chunk. */
export function byteQueue(limit: number): ByteQueue {
  const chunks: Uint8Array[] = []
  let size = 0
  let ended: { fault: LinkFault | undefined } | null = null
  let wakeReader = () => {}
  let writers: (() => void)[] = []

  const full = () => chunks.length >= MAX_CHUNKS || (size > 0 && size >= limit)
  const wakeWriters = () => {
    const waiting = writers
    writers = []
    for (const wake of waiting) wake()
  }

  function end(fault?: LinkFault): void {
    if (ended) return
    ended = { fault }
    if (fault) {
      chunks.length = 0
      size = 0
    }
    wakeReader()
    wakeWriters()
  }

  async function room(signal: AbortSignal): Promise<void> {
    if (writers.length >= MAX_WRITERS) throw new LinkFault('lost', `${MAX_WRITERS} writers wait already`)
    let wake = () => {}
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    writers.push(wake)
    signal.addEventListener('abort', wake, { once: true })
    await woken
    signal.removeEventListener('abort', wake)
    writers = writers.filter((w) => w !== wake)
  }

  async function push(chunk: Uint8Array, signal: AbortSignal): Promise<void> {
    for (;;) {
      if (signal.aborted) throw signal.reason as Error
      if (ended) throw ended.fault ?? new LinkFault('lost', 'the link is closed')
      if (!full()) break
      await room(signal)
    }
    if (chunk.length === 0) return
    chunks.push(chunk)
    size += chunk.length
    wakeReader()
  }

  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        const chunk = chunks.shift()
        if (chunk) {
          size -= chunk.length
          wakeWriters()
          yield chunk
        } else if (ended) {
          if (ended.fault) throw ended.fault
          return
        } else {
          await new Promise<void>((resolve) => {
            wakeReader = resolve
          })
        }
      }
    } finally {
      end()
    }
  }

  return { push, end, bytes: { [Symbol.asyncIterator]: read } }
}
