import { LinkFault } from './byte-link.ts'
import type { ByteLink, LinkFactory } from './byte-link.ts'
import { byteQueue } from './byte-queue.ts'

const MAX_UNREAD_BYTES = 65_536

/** Two ends in one process: what one writes the other reads. */
export interface MemoryPair {
  readonly near: ByteLink
  readonly far: ByteLink
  /** As pulling the plug: bytes on the way are lost and both ends see a fault. */
  cut(): void
}

/** A link within the process, for tests, simulation and `npm start`. */
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

/** A place in memory to connect to again and again, as a serial port or a listening address is. */
export interface MemoryPort {
  readonly open: LinkFactory
  /** Links opened so far. */
  readonly opened: number
  /** Breaks the links that are open now; new ones may be opened. */
  cut(): void
  /** Cuts, and refuses to open until `plug`. */
  unplug(): void
  plug(): void
}

/** `serve` gets the far end of every link that is opened. */
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
