import { hash32 } from './chance.ts'

/** Lines about the events of a run, and a hash of all lines. */
export interface Trace {
  add(who: string, what: string): void
  /** Hash of all lines, 64 bits in hex. */
  readonly hash: string
  /** The kept lines. */
  readonly lines: readonly string[]
}

/** Keeps the last `keep` lines. The hash covers all lines. */
export function newTrace(now: () => number, startMs: number, keep: number): Trace {
  let a = 0x811c9dc5
  let b = 0x1234567
  const lines: string[] = []
  return {
    add(who, what) {
      const ms = now() - startMs
      const line = `${(ms / 1_000).toFixed(3).padStart(10)} s  ${who.padEnd(9)} ${what}`
      a = hash32(line, a)
      b = hash32(line, Math.imul(b, 31) ^ line.length)
      lines.push(line)
      if (lines.length > keep * 2) lines.splice(0, lines.length - keep)
    },
    get hash() {
      return a.toString(16).padStart(8, '0') + b.toString(16).padStart(8, '0')
    },
    get lines() {
      return lines.slice(-keep)
    },
  }
}

/** A short fingerprint of a text for a trace line. */
export function fingerprint(text: string): string {
  return `${text.length}#${hash32(text).toString(16)}`
}
