import { assert } from '../../../policy/assert.ts'
import type { Noise } from './codec.ts'

/** The frame format of one protocol. */
export interface FrameShape<Frame> {
  /** Maximum length of a frame, bytes. */
  readonly maxLength: number
  /**
   * Reads a frame at `start`. Returns the frame and its length, `more` while the frame is incomplete, or `none` if no
   * frame begins there. `last` means that no more bytes of this frame will arrive.
   */
  read(bytes: Uint8Array, start: number, last: boolean): { frame: Frame; length: number } | 'more' | 'none'
}

/** The receiving half of a codec. */
export interface Framer<Frame> {
  push(chunk: Uint8Array): Frame[]
  silence(): Frame[]
  takeNoise(): Noise | null
  readonly held: number
}

/**
 * Finds frames by trying every byte as a start. After an invalid frame the search continues with the next byte, because
 * the invalid length may cover a valid frame. The framer buffers less than one frame, and the work for each byte is
 * bounded.
 */
export function slidingFramer<Frame>(shape: FrameShape<Frame>): Framer<Frame> {
  let held: Uint8Array = new Uint8Array(0)
  let thrownAway = 0

  function scan(bytes: Uint8Array, last: boolean): Frame[] {
    const frames: Frame[] = []
    let start = 0
    while (start < bytes.length) {
      const found = shape.read(bytes, start, last)
      if (typeof found === 'object') {
        frames.push(found.frame)
        start += found.length
      } else if (found === 'none' || last || bytes.length - start >= shape.maxLength) {
        thrownAway++
        start++
      } else {
        break
      }
    }
    held = bytes.slice(start)
    assert(held.length < shape.maxLength, 'a framer holds less than one frame')
    return frames
  }

  return {
    push(chunk) {
      if (held.length === 0) return scan(chunk, false)
      const joined = new Uint8Array(held.length + chunk.length)
      joined.set(held)
      joined.set(chunk, held.length)
      return scan(joined, false)
    },
    silence: () => scan(held, true),
    takeNoise() {
      if (thrownAway === 0) return null
      const noise = { bytes: thrownAway, detail: 'bytes that are no frame' }
      thrownAway = 0
      return noise
    },
    get held() {
      return held.length
    },
  }
}
