/** Buffers bytes from pcscd until the pending answer is complete. */
export interface AnswerBuffer {
  /** Adds bytes. False if there are more than in any answer, so the other side uses another protocol. */
  push(chunk: Uint8Array): boolean
  /** The next `length` bytes, or null while they are incomplete. */
  take(length: number): Uint8Array | null
  readonly held: number
}

/** A buffer of at most `limit` bytes. */
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
