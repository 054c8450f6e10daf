import type { Randomness } from '../../../../policy/platform.ts'

/** Seeded source of all randomness in a run. */
export interface Chance extends Randomness {
  /** A number in [0, 1). */
  next(): number
  /** A whole number in [from, to]. */
  between(from: number, to: number): number
  happens(probability: number): boolean
  one<T>(list: readonly T[]): T
  /** Creates an independent stream. Draws from this stream do not change other streams. */
  fork(name: string): Chance
}

/** FNV-1a hash of a text, 32 bits. */
export function hash32(text: string, start = 0x811c9dc5): number {
  let hash = start
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Mulberry32: a small, fast and portable generator. Not for secrets. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0
  const word = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return (t ^ (t >>> 14)) >>> 0
  }
  const next = () => word() / 2 ** 32
  const between = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    between,
    happens: (probability) => next() < probability,
    one<T>(list: readonly T[]): T {
      if (list.length === 0) throw new RangeError('there is nothing to choose from')
      return list[between(0, list.length - 1)] as T
    },
    fork: (name) => chanceOf(hash32(name, (seed ^ 0x811c9dc5) >>> 0)),
    bytes(length) {
      const bytes = new Uint8Array(length)
      for (let i = 0; i < length; i += 4) {
        let w = word()
        for (let j = i; j < length && j < i + 4; j++, w >>>= 8) bytes[j] = w & 0xff
      }
      return bytes
    },
  }
}
