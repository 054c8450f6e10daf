import { LinkFault } from './byte-link.ts'
import type { ByteLink, LinkFactory } from './byte-link.ts'
import { byteQueue } from './byte-queue.ts'

const MAX_UNREAD_BYTES = 65_536

/** Two connected link ends in one process. */
export interface MemoryPair {
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
