import { LinkFault } from './byte-link.ts'
import type { ByteLink } from './byte-link.ts'
import { memoryPair } from './memory.ts'
import type { MemoryPair } from './memory.ts'

/** Where devices that call the agent are handed to their drivers: a link for each name, from the inside to the inside. */
export interface PushPort {
  /** The driver's end. A new one takes the place of the old. */
  open(name: string, signal: AbortSignal): Promise<ByteLink>
  /** Hands bytes to the driver, waiting for room. False when nobody listens there, or not any more. */
  push(name: string, bytes: Uint8Array, signal: AbortSignal): Promise<boolean>
}

const MAX_NAMES = 64

/** A port that nobody listens at yet. */
export function pushPort(): PushPort {
  const open = new Map<string, MemoryPair>()

  return {
    async open(name, signal) {
      if (signal.aborted) throw signal.reason as Error
      if (open.size >= MAX_NAMES && !open.has(name))
        throw new LinkFault('busy', `${MAX_NAMES} devices are pushed to already`)
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
