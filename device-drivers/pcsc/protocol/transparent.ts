import { splitAnswer } from './apdu.ts'

/**
 * Raw frames to a tag, through readers that support it: "transparent session" of PC/SC part 3, supplement 2.02.
 * Checked against the public drivers of the ACR1552U and HID readers.
 */
export const START_SESSION = Uint8Array.of(0xff, 0xc2, 0x00, 0x00, 0x02, 0x81, 0x00)
export const END_SESSION = Uint8Array.of(0xff, 0xc2, 0x00, 0x00, 0x02, 0x82, 0x00)
/** Switches the session to ISO 15693 frames as in part 3 of that standard. */
export const SWITCH_TO_ISO15693 = Uint8Array.of(0xff, 0xc2, 0x00, 0x02, 0x04, 0x8f, 0x02, 0x02, 0x03, 0x00)

const TRANSCEIVE = 0x95
const TIMER = [0x5f, 0x46]
const ERROR = 0xc0
const STATUS = 0x96
const RESPONSE = 0x97
/** Time limit of the tag, µs; writing takes up to 20 ms. */
const TAG_WITHIN_US = 50_000

/** The command that sends `frame` (without CRC) to the tag and requests its answer. */
export function transceive(frame: Uint8Array): Uint8Array {
  const timer = [...TIMER, 4, TAG_WITHIN_US & 0xff, (TAG_WITHIN_US >> 8) & 0xff, (TAG_WITHIN_US >> 16) & 0xff, 0]
  const data = [...timer, TRANSCEIVE, frame.length, ...frame]
  return Uint8Array.of(0xff, 0xc2, 0x00, 0x01, data.length, ...data, 0x00)
}

/** Result of a transparent command. */
type TransparentAnswer =
  /** The reader executed the command. `frame` is the tag's answer, if one was requested. */
  | { readonly kind: 'done'; readonly frame: Uint8Array | null }
  /** The reader sent the frame and received no complete answer. */
  | { readonly kind: 'no_answer' }
  /** The reader refused the command and sent nothing. */
  | { readonly kind: 'refused'; readonly status: number }

/** Splits a list of objects `{tag, length, value}`; stops at the first incomplete object. */
function* objects(bytes: Uint8Array): Generator<{ tag: number; value: Uint8Array }> {
  for (let at = 0; at + 1 < bytes.length;) {
    const tag = bytes[at] ?? 0
    const length = bytes[at + 1] ?? 0
    if (length > 0x7f || at + 2 + length > bytes.length) return
    yield { tag, value: bytes.subarray(at + 2, at + 2 + length) }
    at += 2 + length
  }
}

/**
 * Interprets a status (hex). 64xx (reader or tag did not respond) counts as no answer, and so do the undefined 63xx and
 * 6Fxx. 62xx is a warning, which counts as good.
 */
function verdict(status: number): 'good' | 'no_answer' | 'refused' {
  const kind = status >> 8
  if (kind === 0x63 || kind === 0x64 || kind === 0x6f) return 'no_answer'
  return status === 0x9000 || kind === 0x62 ? 'good' : 'refused'
}

/**
 * Decodes the answer: status 9000 and a list of objects. Object C0 holds the number and the status of a faulty object.
 */
export function transparentAnswer(bytes: Uint8Array): TransparentAnswer {
  const answer = splitAnswer(bytes)
  // Some readers put the tag's status into the status word at the end of the answer.
  const outer = answer === null ? 'no_answer' : verdict(answer.status)
  if (answer === null || outer === 'no_answer') return { kind: 'no_answer' }
  if (outer === 'refused') return { kind: 'refused', status: answer.status }
  let frame: Uint8Array | null = null
  for (const { tag, value } of objects(answer.data)) {
    if (tag === ERROR && value.length === 3) {
      const status = (value[1] ?? 0) * 256 + (value[2] ?? 0)
      const meaning = verdict(status)
      if (meaning === 'no_answer') return { kind: 'no_answer' }
      if (meaning === 'refused') return { kind: 'refused', status }
    }
    // The low 4 bits report CRC, collision, parity and framing errors.
    if (tag === STATUS && ((value[0] ?? 0) & 0x0f) !== 0) return { kind: 'no_answer' }
    if (tag === RESPONSE) frame = value.slice()
  }
  return { kind: 'done', frame }
}
