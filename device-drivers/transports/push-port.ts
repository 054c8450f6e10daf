import { LinkFault } from './byte-link.ts'
import type { ByteLink } from './byte-link.ts'
import { memoryPair } from './memory.ts'
import type { MemoryPair } from './memory.ts'

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
