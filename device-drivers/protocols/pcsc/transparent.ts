import { splitAnswer } from './apdu.ts'

/**
 * Frames to a tag as they are, through readers that allow it: "transparent session" of PC/SC part 3,
 * supplement 2.02. Checked against the public drivers for the ACR1552U and HID readers.
 */
export const START_SESSION = Uint8Array.of(0xff, 0xc2, 0x00, 0x00, 0x02, 0x81, 0x00)
export const END_SESSION = Uint8Array.of(0xff, 0xc2, 0x00, 0x00, 0x02, 0x82, 0x00)
/** To ISO 15693, part 3. */
export const SWITCH_TO_ISO15693 = Uint8Array.of(0xff, 0xc2, 0x00, 0x02, 0x04, 0x8f, 0x02, 0x02, 0x03, 0x00)

const TRANSCEIVE = 0x95
const TIMER = [0x5f, 0x46]
const ERROR = 0xc0
const STATUS = 0x96
const RESPONSE = 0x97
/** How long a tag may take: writing takes up to 20 ms. */
const TAG_WITHIN_US = 50_000

/** The command that sends `frame` (without CRC) to the tag and asks for its answer. */
export function transceive(frame: Uint8Array): Uint8Array {
  const timer = [...TIMER, 4, TAG_WITHIN_US & 0xff, (TAG_WITHIN_US >> 8) & 0xff, (TAG_WITHIN_US >> 16) & 0xff, 0]
  const data = [...timer, TRANSCEIVE, frame.length, ...frame]
  return Uint8Array.of(0xff, 0xc2, 0x00, 0x01, data.length, ...data, 0x00)
}

/** What a reader made of a transparent command. */
export type TransparentAnswer =
  /** It did it; `frame` is what the tag said, where it was asked. */
  | { readonly kind: 'done'; readonly frame: Uint8Array | null }
  /** It went out, and no whole answer of the tag came back. */
  | { readonly kind: 'no_answer' }
  /** The reader does not do this; nothing went out. */
  | { readonly kind: 'refused'; readonly status: number }

/** Splits `{tag, length, value}`; stops at the first that is cut short. */
function* objects(bytes: Uint8Array): Generator<{ tag: number; value: Uint8Array }> {
  for (let at = 0; at + 1 < bytes.length;) {
    const tag = bytes[at] ?? 0
    const length = bytes[at + 1] ?? 0
    if (length > 0x7f || at + 2 + length > bytes.length) return
    yield { tag, value: bytes.subarray(at + 2, at + 2 + length) }
    at += 2 + length
  }
}

/** What a status says: 64 00 and 64 01, the reader or the tag did not respond; 63 and 6F, nobody can tell; 62, a warning. */
function verdict(status: number): 'good' | 'no_answer' | 'refused' {
  const kind = status >> 8
  if (kind === 0x63 || kind === 0x64 || kind === 0x6f) return 'no_answer'
  return status === 0x9000 || kind === 0x62 ? 'good' : 'refused'
}

/** Reads the answer to a transparent command: status 9000, then objects of which C0 is {object, status of it}. */
export function transparentAnswer(bytes: Uint8Array): TransparentAnswer {
  const answer = splitAnswer(bytes)
  // Readers put the status of the tag here too.
  const outer = answer === null ? 'no_answer' : verdict(answer.status)
  if (answer === null || outer === 'no_answer') return { kind: 'no_answer' }
  if (outer === 'refused') return { kind: 'refused', status: answer.status }
  let frame: Uint8Array | null = null
  for (const { tag, value } of objects(answer.data)) {
    if (tag === ERROR && value.length === 3) {
      const status = (value[1] ?? 0) * 256 + (value[2] ?? 0)
      const said = verdict(status)
      if (said === 'no_answer') return { kind: 'no_answer' }
      if (said === 'refused') return { kind: 'refused', status }
    }
    // CRC, collision, parity and framing errors.
    if (tag === STATUS && ((value[0] ?? 0) & 0x0f) !== 0) return { kind: 'no_answer' }
    if (tag === RESPONSE) frame = value.slice()
  }
  return { kind: 'done', frame }
}
