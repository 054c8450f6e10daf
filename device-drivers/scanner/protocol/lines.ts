import type { Noise, ResyncingCodec } from '../../kit/protocol/codec.ts'

/** Suffix that the scanner sends after each text. `any` accepts CR, LF or both. */
export type ScannerSuffix = 'any' | 'CR' | 'LF' | 'CRLF' | 'TAB'

export interface LineOptions {
  readonly suffix: ScannerSuffix
  /** True if each text is between STX (02) and ETX (03); bytes outside are noise. */
  readonly stx: boolean
  /**
   * True for scanners without a suffix: a line ends when the scanner is silent. If false, an incomplete line is
   * discarded when the scanner is silent.
   */
  readonly silenceEndsLine: boolean
}

/** Maximum length of a line, bytes; QR 40-L holds 2,953 bytes. */
export const MAX_LINE_BYTES = 4_096

/** Bytes of an incomplete line that are kept for the report. */
const SAMPLE_BYTES = 8

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

/** This character is not removed, because GS separates the fields of a GS1 element string. */
const GS = '\u001d'

function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === GS ? character : ''))
}

/**
 * Makes a codec for the lines of a scanner. The codec decodes UTF-8, and removes control characters and empty lines.
 */
export function lineCodec(options: LineOptions): ResyncingCodec<string> {
  return new LineCodec(options)
}

/** Finds the lines of one scanner. */
class LineCodec implements ResyncingCodec<string> {
  readonly #options: LineOptions
  /**
   * Size of the buffer, bytes. With the suffix CRLF it is one byte longer than a line, because the CR is buffered until
   * the LF.
   */
  readonly #room: number
  readonly #buffer: Uint8Array
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  readonly #ends: (byte: number, before: number) => boolean
  #length = 0
  #before = 0
  #inside: boolean
  #tooLong = 0
  #noise: Noise | null = null

  constructor(options: LineOptions) {
    this.#options = options
    this.#room = MAX_LINE_BYTES + (options.suffix === 'CRLF' ? 1 : 0)
    this.#buffer = new Uint8Array(this.#room)
    this.#ends = options.stx ? (byte: number) => byte === ETX : ENDS[options.suffix]
    this.#inside = !options.stx
  }

  push(chunk: Uint8Array): string[] {
    const lines: string[] = []
    for (const byte of chunk) this.#take(byte, lines)
    return lines
  }

  silence(): string[] {
    const lines: string[] = []
    if (this.#options.silenceEndsLine && this.#inside) {
      this.#finish(lines)
      return lines
    }
    const printable = this.#buffer.subarray(0, this.#length).some((byte) => byte >= 0x20)
    if (printable || this.#tooLong > 0)
      this.#throwAway(
        this.#length + this.#tooLong,
        'a text without an end; set a suffix such as CR on the scanner, or "interByteMs": 50',
      )
    this.#restart()
    return lines
  }

  takeNoise(): Noise | null {
    const taken = this.#noise
    this.#noise = null
    return taken
  }

  get held(): number {
    return this.#inside ? this.#length : 0
  }

  encode(line: string): Uint8Array {
    const text = new TextEncoder().encode(line)
    const suffix = SUFFIX_BYTES[this.#options.suffix]
    return Uint8Array.from(this.#options.stx ? [STX, ...text, ETX, ...suffix] : [...text, ...suffix])
  }

  /** Keeps only the end of the text as the sample, because a text may be a secret of a shopper. */
  #throwAway(bytes: number, detail: string, text: Uint8Array = this.#buffer.subarray(0, this.#length)): void {
    if (bytes === 0) return
    const sample = Buffer.concat([this.#noise?.sample ?? new Uint8Array(), text]).subarray(-SAMPLE_BYTES)
    this.#noise = { bytes: (this.#noise?.bytes ?? 0) + bytes, detail, sample }
  }

  #restart(): void {
    this.#length = 0
    this.#before = 0
    this.#tooLong = 0
    this.#inside = !this.#options.stx
  }

  #finish(lines: string[]): void {
    const text = withoutControls(this.#decoder.decode(this.#buffer.subarray(0, this.#length)))
    if (this.#tooLong > 0)
      this.#throwAway(
        this.#length + this.#tooLong,
        `a line over ${MAX_LINE_BYTES} bytes; set a suffix such as CR on the scanner`,
      )
    else if (text !== '') lines.push(text)
    this.#restart()
  }

  #take(byte: number, lines: string[]): void {
    if (this.#options.stx && byte === STX) {
      this.#throwAway(this.#inside ? this.#length + this.#tooLong : 0, 'a text without ETX; set "stx": false')
      this.#restart()
      this.#inside = true
      return
    }
    if (!this.#inside) {
      // Many scanners with STX and ETX also send a suffix.
      if (byte !== CR && byte !== LF && byte !== TAB)
        this.#throwAway(1, 'bytes outside STX and ETX; set "stx": false', Uint8Array.of(byte))
      return
    }
    if (this.#ends(byte, this.#before)) return this.#finish(lines)
    this.#before = byte
    if (this.#length < this.#room) this.#buffer[this.#length++] = byte
    else this.#tooLong++
  }
}
