import { LinkFault, type ByteLink, type LinkFactory } from './byte-link.ts'

/** Chunks that wait for one consumer. Writers wait while the queue is full. */
interface ByteQueue {
  /** Adds a chunk as soon as there is room. Rejects when the queue has ended or `signal` aborts. */
  push(chunk: Uint8Array, signal: AbortSignal): Promise<void>
  /** Ends the queue. With a fault, discards unread chunks, and `bytes` throws the fault. */
  end(fault?: LinkFault): void
  readonly bytes: AsyncIterable<Uint8Array>
}

const MAX_CHUNKS = 1_024
const MAX_WRITERS = 64

/** Makes a queue of at most `limit` bytes. If the queue is empty, it accepts one larger chunk. */
function byteQueue(limit: number): ByteQueue {
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

const MAX_UNREAD_BYTES = 65_536

/** Two connected link ends in one process. */
interface MemoryPair {
  readonly near: ByteLink
  readonly far: ByteLink
  /**
   * Breaks the link, like a pulled plug. Bytes that were sent and not yet read are lost, and both ends throw a fault.
   */
  cut(): void
}

/** Makes a link in memory, for tests, simulation and `npm start`. */
export function memoryPair(): MemoryPair {
  const toNear = byteQueue(MAX_UNREAD_BYTES)
  const toFar = byteQueue(MAX_UNREAD_BYTES)
  const side = (incoming: typeof toNear, outgoing: typeof toFar): ByteLink => ({
    bytes: incoming.bytes,
    write: (bytes, signal) => outgoing.push(bytes.slice(), signal),
    close: async () => {
      outgoing.end()
      incoming.end()
    },
  })
  return {
    near: side(toNear, toFar),
    far: side(toFar, toNear),
    cut() {
      const fault = new LinkFault('lost', 'the memory link was cut')
      toNear.end(fault)
      toFar.end(fault)
    },
  }
}

/** A port in memory that accepts any number of connections, like a serial port or a listening address. */
export interface MemoryPort {
  readonly open: LinkFactory
  /** Number of links opened so far. */
  readonly opened: number
  /** Breaks all open links; new links may be opened. */
  cut(): void
  /** Cuts all links and rejects new ones until `plug`. */
  unplug(): void
  plug(): void
}

/** Makes a port. `serve` receives the far end of each new link. */
export function memoryPort(serve: (link: ByteLink) => void): MemoryPort {
  const open = new Set<MemoryPair>()
  let plugged = true
  let opened = 0

  const cut = () => {
    for (const pair of open) pair.cut()
    open.clear()
  }
  return {
    async open(signal) {
      if (signal.aborted) throw signal.reason as Error
      if (!plugged) throw new LinkFault('missing', 'the memory port is unplugged')
      const pair = memoryPair()
      open.add(pair)
      opened++
      serve(pair.far)
      return {
        ...pair.near,
        close: async () => {
          open.delete(pair)
          await pair.near.close()
        },
      }
    },
    get opened() {
      return opened
    },
    cut,
    unplug() {
      plugged = false
      cut()
    },
    plug() {
      plugged = true
    },
  }
}

/** Connects the agent's ingest endpoint with drivers: one in-memory link for each device name. */
export interface PushPort {
  /** Opens the driver's end. A new link replaces the old link of this name. */
  open(name: string, signal: AbortSignal): Promise<ByteLink>
  /**
   * Sends bytes to the driver, and waits while the driver's queue is full. Resolves with false if no driver has opened
   * this name, or if the link ends first.
   */
  push(name: string, bytes: Uint8Array, signal: AbortSignal): Promise<boolean>
}

const MAX_NAMES = 64

/** Makes a port without open links. */
export function pushPort(): PushPort {
  const open = new Map<string, MemoryPair>()

  return {
    async open(name, signal) {
      if (signal.aborted) throw signal.reason as Error
      if (open.size >= MAX_NAMES && !open.has(name))
        throw new LinkFault('busy', `there are already ${MAX_NAMES} devices that post to the agent`)
      open.get(name)?.cut()
      const pair = memoryPair()
      open.set(name, pair)
      return {
        ...pair.near,
        close: async () => {
          if (open.get(name) === pair) open.delete(name)
          await pair.near.close()
        },
      }
    },
    async push(name, bytes, signal) {
      const pair = open.get(name)
      if (!pair) return false
      return pair.far.write(bytes, signal).then(
        () => true,
        () => false,
      )
    },
  }
}
