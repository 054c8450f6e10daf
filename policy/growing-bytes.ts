const FIRST_SIZE = 4_096

/**
 * Bytes that arrive in chunks. Copies them into one array, because a sender may choose chunks of one byte, and each kept
 * chunk costs hundreds. The caller limits `size`.
 */
export class GrowingBytes {
  #bytes = new Uint8Array(FIRST_SIZE)
  #size = 0

  /** Number of appended bytes. */
  get size(): number {
    return this.#size
  }

  append(chunk: Uint8Array): void {
    const needed = this.#size + chunk.length
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length))
      larger.set(this.#bytes.subarray(0, this.#size))
      this.#bytes = larger
    }
    this.#bytes.set(chunk, this.#size)
    this.#size = needed
  }

  /** All bytes, as a view into the collected array. */
  whole(): Uint8Array {
    return this.#bytes.subarray(0, this.#size)
  }
}
