import { afterFreeTurns } from '../../policy/free-turns.ts'
import type { Clock } from '../../policy/platform.ts'
import type { ByteLink } from './byte-link.ts'
import type { OpenLink } from './shared-links.ts'

/** Bytes that a driver gets at once. One chunk of a socket may have 64 KB, which are thousands of tags or lines. */
const SLICE_BYTES = 2_048
/** Work that needs no rest, ms. */
const SHORT_MS = 2

/**
 * Wraps `open`: whatever a device sends, and however fast, the other devices and callers of the process get as much time
 * as its bytes cost. Meanwhile the link is not read, so the device waits.
 */
export function fairLinks(open: OpenLink, clock: Pick<Clock, 'elapsed'>): OpenLink {
  return async (settings, signal): Promise<ByteLink> => {
    const link = await open(settings, signal)
    return {
      bytes: { [Symbol.asyncIterator]: () => new Slices(link.bytes[Symbol.asyncIterator](), clock) },
      write: (data, abort) => link.write(data, abort),
      close: (flush) => link.close(flush),
    }
  }
}

/** The chunks of a link in slices. No generator, so that the end of a link is noticed as early as without it. */
class Slices implements AsyncIterator<Uint8Array> {
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #clock: Pick<Clock, 'elapsed'>
  #rest: Uint8Array = new Uint8Array()
  #startMs = 0

  constructor(chunks: AsyncIterator<Uint8Array>, clock: Pick<Clock, 'elapsed'>) {
    this.#chunks = chunks
    this.#clock = clock
  }

  next(): Promise<IteratorResult<Uint8Array, void>> {
    // Includes the work of the lanes on earlier slices.
    if (this.#rest.length > 0 && this.#clock.elapsed() - this.#startMs >= SHORT_MS)
      return new Promise((resolve) =>
        afterFreeTurns(this.#clock, this.#startMs, () => {
          this.#startMs = this.#clock.elapsed()
          resolve(this.#slice())
        }),
      )
    if (this.#rest.length > 0) return Promise.resolve(this.#slice())
    return this.#chunks.next().then((next) => {
      if (next.done) return { done: true, value: undefined }
      this.#rest = next.value
      this.#startMs = this.#clock.elapsed()
      return this.#slice()
    })
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    await this.#chunks.return?.()
    return { done: true, value: undefined }
  }

  #slice(): IteratorResult<Uint8Array, void> {
    const value = this.#rest.subarray(0, SLICE_BYTES)
    this.#rest = this.#rest.subarray(value.length)
    return { done: false, value }
  }
}
