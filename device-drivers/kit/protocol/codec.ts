import { assert } from '../../../policy/assert.ts'

/** One event on a link. */
export interface TraceRecord {
  /** ms since the trace began, on a monotonic clock. */
  readonly atMs: number
  /** `open` and `close` of the link, bytes `in` from the device, bytes `out` to it. */
  readonly kind: 'open' | 'close' | 'in' | 'out'
  readonly bytes: Uint8Array
}

const SIGNS = { open: '+', close: '-', in: '<', out: '>' } as const
const KINDS = new Map(Object.entries(SIGNS).map(([kind, sign]) => [sign as string, kind as TraceRecord['kind']]))
const NOTHING = new Uint8Array(0)

/** Formats a line of a trace: `12.345 < aGVsbG8=`. */
export function traceLine({ atMs, kind, bytes }: TraceRecord): string {
  return `${atMs.toFixed(3)} ${SIGNS[kind]} ${Buffer.from(bytes).toString('base64')}`.trimEnd()
}

/** Parses a trace. Skips invalid lines, such as a last line that a crash made incomplete. */
export function readTrace(text: string): TraceRecord[] {
  const records: TraceRecord[] = []
  for (const line of text.split('\n')) {
    const parts = /^(\d{1,12}(?:\.\d{1,6})?) ([-+<>])(?: ([A-Za-z0-9+/]+={0,2}))?$/.exec(line.trim())
    const kind = KINDS.get(parts?.[2] ?? '')
    if (parts && kind)
      records.push({
        atMs: Number(parts[1]),
        kind,
        bytes: parts[3] === undefined ? NOTHING : Uint8Array.from(Buffer.from(parts[3], 'base64')),
      })
  }
  return records
}

/**
 * Converts between bytes and frames, without a clock or a transport. A codec uses a limited amount of memory for any
 * input.
 */
export interface Codec<Frame> {
  /** Adds the next bytes of the stream, split at any position. Returns the frames that are now complete. */
  push(chunk: Uint8Array): Frame[]
  encode(frame: Frame): Uint8Array
}

/** Bytes that the driver does not understand. */
export interface Noise {
  readonly bytes: number
  /** What the bytes are, and the setting to check. */
  readonly detail: string
  /** First bytes of a message that arrived whole but cannot be read. Undefined for bytes that are part of no frame. */
  readonly sample?: Uint8Array
}

/** A codec for a line with noise: it finds the next valid frame. */
export interface ResyncingCodec<Frame> extends Codec<Frame> {
  /**
   * Call this function when no byte arrived for the longest gap that the protocol allows within a frame. Returns the
   * frames that are complete because of the silence.
   */
  silence(): Frame[]
  /** Returns the bytes discarded since the last call, or null. */
  takeNoise(): Noise | null
  /** Buffered bytes of an incomplete frame. */
  readonly held: number
}

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
interface Framer<Frame> {
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
