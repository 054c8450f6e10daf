import { assert } from '../../policy/assert.ts'
import type { Noise } from './codec.ts'

/** How one protocol's frames are told from noise. */
export interface FrameShape<Frame> {
  /** No frame is longer, bytes. */
  readonly maxLength: number
  /**
   * Looks at the bytes from `start` on: a frame and its length, `more` while they may yet become
   * one, `none` when no frame begins here. `last` says that no more bytes will come.
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
 * Finds frames by trying every byte as a beginning: after a bad one it goes on with the very next
 * byte, not behind the length that the bad one claimed, so that no good frame is lost to noise.
 * Holds less than one frame; the work per byte is bounded by the length of a frame.
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
