import { Failure } from '../foundation/failure.ts'
import { shares } from '../foundation/shares.ts'

/** Maximum number of bytes of large bodies that are on their way or in work, of one holder and in total. */
export const BODY_ROOM = { ofOne: 128 * 1024 * 1024, total: 512 * 1024 * 1024 }
/** Smaller bodies are not counted: the limits of connections and requests bound them. */
const COUNTED_FROM = 64 * 1024

/**
 * Memory for large bodies. A body takes its room before the first byte is read, so that slow or many uploads of one
 * holder leave room for the others. The function throws 503 if there is no room, and returns how to give it back.
 */
export function bodyRoom(): (holder: string, bytes: number) => () => void {
  const take = shares(BODY_ROOM)
  return (holder, bytes) => {
    if (bytes < COUNTED_FROM) return () => undefined
    const release = take(holder, bytes)
    if (release) return release
    throw new Failure('unavailable', 'too many large bodies are on their way: send them one after another', {
      retryAfter: 5,
    })
  }
}
