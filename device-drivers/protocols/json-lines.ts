import type { Noise } from './codec.ts'

/** Reads JSON values from a stream, one on each line. */
export interface JsonLines {
  /** Returns the values of complete lines. Empty lines are keepalives and have no value. */
  push(chunk: Uint8Array): unknown[]
  /** Returns the invalid lines since the last call, or null. */
  takeNoise(): Noise | null
  /** Buffered bytes of an incomplete line. */
  readonly held: number
}

const LF = 0x0a

/**
 * Makes a reader of lines up to `mostBytes`. Longer lines and invalid JSON are noise; the reader then continues with
 * the next line.
 */
export function jsonLines(mostBytes: number): JsonLines {
  const decoder = new TextDecoder()
  let buffer = new Uint8Array(Math.min(mostBytes, 1_024))
  let length = 0
  let tooLong = 0
  let noise: { bytes: number; detail: string } | null = null

  function addNoise(bytes: number, detail: string): void {
    noise = { bytes: (noise?.bytes ?? 0) + bytes, detail }
  }

  function append(piece: Uint8Array): void {
    if (tooLong > 0 || length + piece.length > mostBytes) {
      tooLong += piece.length
      return
    }
    if (length + piece.length > buffer.length) {
      const larger = new Uint8Array(Math.min(mostBytes, Math.max(buffer.length * 2, length + piece.length)))
      larger.set(buffer.subarray(0, length))
      buffer = larger
    }
    buffer.set(piece, length)
    length += piece.length
  }

  function finish(values: unknown[]): void {
    const size = length + tooLong
    const text = tooLong > 0 ? '' : decoder.decode(buffer.subarray(0, length)).trim()
    if (tooLong > 0) addNoise(size, `a line over ${mostBytes} bytes`)
    length = 0
    tooLong = 0
    if (text === '') return
    try {
      values.push(JSON.parse(text))
    } catch {
      addNoise(size, 'a line that is no JSON')
    }
  }

  return {
    push(chunk) {
      const values: unknown[] = []
      let from = 0
      for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
        append(chunk.subarray(from, at))
        finish(values)
        from = at + 1
      }
      append(chunk.subarray(from))
      return values
    },
    takeNoise() {
      const taken = noise
      noise = null
      return taken
    },
    get held() {
      return length
    },
  }
}
