import type { Noise, ResyncingCodec } from '../codec.ts'

/** What the scanner is set to send behind each text. `any` takes CR, LF or both. */
export type ScannerSuffix = 'any' | 'CR' | 'LF' | 'CRLF' | 'TAB'

export interface LineOptions {
  readonly suffix: ScannerSuffix
  /** The text stands between STX (02) and ETX (03); what is outside is noise. */
  readonly stx: boolean
  /** Silence ends a line, for scanners without a suffix; otherwise a line that stops half-way is thrown away. */
  readonly silenceEndsLine: boolean
}

/** No code that can be printed on a label is longer; QR 40-L holds 2,953 bytes. */
export const MOST_LINE_BYTES = 4_096

const STX = 0x02
const ETX = 0x03
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d

const ENDS: Record<ScannerSuffix, (byte: number, before: number) => boolean> = {
  any: (byte) => byte === CR || byte === LF,
  CR: (byte) => byte === CR,
  LF: (byte) => byte === LF,
  CRLF: (byte, before) => byte === LF && before === CR,
  TAB: (byte) => byte === TAB,
}

const SUFFIX_BYTES: Record<ScannerSuffix, readonly number[]> = {
  any: [CR],
  CR: [CR],
  LF: [LF],
  CRLF: [CR, LF],
  TAB: [TAB],
}

/** GS stays: it separates the fields of a GS1 element string. */
const GS = '\u001d'

function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === GS ? character : ''))
}

/** Lines as a scanner on a serial line or serial device server sends them: UTF-8, control characters taken out, empty lines left out. */
export function lineCodec(options: LineOptions): ResyncingCodec<string> {
  // The CR of a CRLF waits in the buffer until the LF shows what it is.
  const room = MOST_LINE_BYTES + (options.suffix === 'CRLF' ? 1 : 0)
  const buffer = new Uint8Array(room)
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const ends = options.stx ? (byte: number) => byte === ETX : ENDS[options.suffix]
  let length = 0
  let before = 0
  let inside = !options.stx
  let tooLong = 0
  let noise: { bytes: number; detail: string } | null = null

  function throwAway(bytes: number, detail: string): void {
    if (bytes > 0) noise = { bytes: (noise?.bytes ?? 0) + bytes, detail }
  }

  function restart(): void {
    length = 0
    before = 0
    tooLong = 0
    inside = !options.stx
  }

  function finish(lines: string[]): void {
    const text = withoutControls(decoder.decode(buffer.subarray(0, length)))
    if (tooLong > 0)
      throwAway(length + tooLong, `a line over ${MOST_LINE_BYTES} bytes; is the suffix set on the scanner?`)
    else if (text !== '') lines.push(text)
    restart()
  }

  function take(byte: number, lines: string[]): void {
    if (options.stx && byte === STX) {
      throwAway(inside ? length + tooLong : 0, 'a line that stopped half-way')
      restart()
      inside = true
      return
    }
    if (!inside) {
      // Scanners with STX and ETX often send a suffix behind them all the same.
      if (byte !== CR && byte !== LF && byte !== TAB) throwAway(1, 'bytes outside STX and ETX')
      return
    }
    if (ends(byte, before)) return finish(lines)
    before = byte
    if (length < room) buffer[length++] = byte
    else tooLong++
  }

  return {
    push(chunk) {
      const lines: string[] = []
      for (const byte of chunk) take(byte, lines)
      return lines
    },
    silence() {
      const lines: string[] = []
      if (options.silenceEndsLine && inside) {
        finish(lines)
        return lines
      }
      const printable = buffer.subarray(0, length).some((byte) => byte >= 0x20)
      if (printable || tooLong > 0)
        throwAway(length + tooLong, 'a line that stopped half-way; is the suffix set on the scanner?')
      restart()
      return lines
    },
    takeNoise(): Noise | null {
      const taken = noise
      noise = null
      return taken
    },
    get held() {
      return inside ? length : 0
    },
    encode(line) {
      const text = new TextEncoder().encode(line)
      const suffix = SUFFIX_BYTES[options.suffix]
      return Uint8Array.from(options.stx ? [STX, ...text, ETX, ...suffix] : [...text, ...suffix])
    },
  }
}
