/** Buffers bytes from pcscd until the pending answer is complete. */
export interface AnswerBuffer {
  /** Adds bytes. Returns false if too many bytes are buffered, which means that the peer uses another protocol. */
  push(chunk: Uint8Array): boolean
  /** Removes and returns the next `length` bytes. Returns null while these bytes are incomplete. */
  take(length: number): Uint8Array | null
  readonly held: number
}

/** Makes a buffer of at most `limit` bytes. */
export function answerBuffer(limit: number): AnswerBuffer {
  let held: Uint8Array = new Uint8Array(0)

  return {
    push(chunk) {
      if (held.length + chunk.length > limit) return false
      const joined = new Uint8Array(held.length + chunk.length)
      joined.set(held)
      joined.set(chunk, held.length)
      held = joined
      return true
    },
    take(length) {
      if (held.length < length) return null
      const taken = held.slice(0, length)
      held = held.slice(length)
      return taken
    },
    get held() {
      return held.length
    },
  }
}
