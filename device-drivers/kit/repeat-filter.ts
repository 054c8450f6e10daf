import type { Clock } from '../../policy/platform.ts'

const MAX_REMEMBERED = 32

/**
 * Makes a function that returns true if it has accepted the same text less than `withinMs` ago. Presentation scanners
 * read a code again and again while the code is in view.
 */
export function repeatFilter(clock: Clock, withinMs: number): (text: string) => boolean {
  const seen = new Map<string, number>()

  return (text) => {
    const now = clock.elapsed()
    const last = seen.get(text)
    if (last !== undefined && now - last < withinMs) return true
    seen.delete(text)
    seen.set(text, now)
    if (seen.size > MAX_REMEMBERED)
      for (const oldest of [...seen.keys()].slice(0, seen.size - MAX_REMEMBERED)) seen.delete(oldest)
    return false
  }
}
