import { END_SESSION, START_SESSION, SWITCH_TO_ISO15693 } from '../../device-drivers/pcsc/protocol/transparent.ts'
import { hex, unhex } from '../../device-drivers/pcsc/protocol/apdu.ts'

/** A card or tag, as a reader presents it: its ATR and its answers to commands. */
export interface NfcTag {
  readonly atr: Uint8Array
  /** Returns the answer with its status. Returns null if the reader returns nothing. */
  answer(apdu: Uint8Array): Uint8Array | null
  /** Called when the reader switches its field off and on. */
  reset?(): void
}

/** A simulated tag that records its commands. */
interface SimulatedTag extends NfcTag {
  readonly uid: string
  /** Commands received, hex, oldest first; the last 1,000. */
  readonly log: readonly string[]
}

export interface IcodeTag extends SimulatedTag {
  /** EAS bit; true if the tag would raise an alarm at a gate. */
  readonly eas: boolean
}

const MAX_LOGGED = 1_000
const OK = [0x90, 0x00]
const NO_SUCH_FUNCTION = Uint8Array.of(0x6a, 0x81)
const NO_SUCH_ADDRESS = Uint8Array.of(0x6a, 0x82)
const NO_ANSWER = Uint8Array.of(0x63, 0x00)

/** The ATR that a reader makes for a storage card, with SS and NN of PC/SC part 3, and the check byte. */
export function storageAtr(standard: number, chip: number): Uint8Array {
  const bytes = Uint8Array.of(
    0x3b,
    0x8f,
    0x80,
    0x01,
    0x80,
    0x4f,
    0x0c,
    0xa0,
    0,
    0,
    0x03,
    0x06,
    standard,
    chip >> 8,
    chip & 0xff,
    0,
    0,
    0,
    0,
    0,
  )
  return bytes.with(
    19,
    bytes.subarray(1).reduce((sum, byte) => sum ^ byte, 0),
  )
}

const same = (apdu: Uint8Array, command: Uint8Array) => hex(apdu.subarray(0, command.length)) === hex(command)

interface Parts {
  readonly atr: Uint8Array
  readonly uid: string
  /** The UID as the reader reports it. */
  readonly reportedUid: Uint8Array
  readonly read?: (address: number, length: number) => Uint8Array | null
  readonly other?: (apdu: Uint8Array) => Uint8Array | null
}

function tag({ atr, uid, reportedUid, read, other }: Parts): SimulatedTag {
  const log: string[] = []
  return {
    atr,
    uid,
    log,
    answer(apdu) {
      log.push(hex(apdu))
      if (log.length > MAX_LOGGED) log.shift()
      if (apdu[0] === 0xff && apdu[1] === 0xca) return Uint8Array.from([...reportedUid, ...OK])
      if (apdu[0] === 0xff && apdu[1] === 0xb0 && read) {
        const bytes = read((apdu[2] ?? 0) * 256 + (apdu[3] ?? 0), apdu[4] ?? 0)
        return bytes ? Uint8Array.from([...bytes, ...OK]) : NO_SUCH_ADDRESS
      }
      return other ? other(apdu) : NO_SUCH_FUNCTION
    },
  }
}

/** A card that answers only with its UID. */
export function plainTag(atr: Uint8Array, uid: string): SimulatedTag {
  return tag({ atr, uid, reportedUid: unhex(uid) })
}

/** An NDEF message in a TLV block. */
export function ndefTlv(message: Uint8Array): Uint8Array {
  return message.length < 0xff
    ? Uint8Array.of(0x03, message.length, ...message, 0xfe)
    : Uint8Array.of(0x03, 0xff, message.length >> 8, message.length & 0xff, ...message, 0xfe)
}

/** A short NDEF record: `U` with prefix 00 to 23 before the text, or `T` with a language. */
export function ndefRecord(type: 'U' | 'T', payload: Uint8Array): Uint8Array {
  return Uint8Array.of(0xd1, 0x01, payload.length, type.charCodeAt(0), ...payload)
}

/**
 * An NTAG213-like tag (Type 2) with 45 pages. Like real tags, it refuses a page beyond its memory. After that, it
 * refuses every command until a reset.
 */
export function ntag(uid: string, data: Uint8Array, statedBytes = 144): SimulatedTag {
  const memory = new Uint8Array(45 * 4)
  memory.set([0xe1, 0x10, statedBytes / 8, 0x00], 12)
  memory.set(data.subarray(0, memory.length - 16), 16)
  let halted = false
  const plain = tag({
    atr: storageAtr(0x03, 0x0003),
    uid,
    reportedUid: unhex(uid),
    read(page, length) {
      halted = page * 4 + length > memory.length
      return halted ? null : memory.slice(page * 4, page * 4 + length)
    },
  })
  return {
    ...plain,
    answer: (apdu) => (halted ? NO_ANSWER : plain.answer(apdu)),
    reset: () => void (halted = false),
  }
}

interface IcodeOptions {
  readonly data?: Uint8Array
  readonly eas?: boolean
  /** True if the reader reports the UID in the order of transmission, last byte first. */
  readonly reversed?: boolean
  /** True if the reader forwards commands to the tag. */
  readonly transparent?: boolean
  /** True if the tag refuses to change its EAS bit (error code 0x12). */
  readonly locked?: boolean
  /** True if the reader reports a silent tag by the status of the reader's whole answer, as some readers do. */
  readonly reportsOutside?: boolean
  /** Fault of the command that resets the EAS bit. */
  readonly resetFault?: 'no-answer-done' | 'no-answer-undone' | 'says-done-undone' | 'silent'
}

/** An ICODE SLIX tag (Type 5, ISO 15693): 28 blocks of 4 bytes and an EAS bit. */
export function icode(uid: string, options: IcodeOptions = {}): IcodeTag {
  const memory = new Uint8Array(28 * 4)
  if (options.data) {
    memory.set([0xe1, 0x40, (memory.length - 4) / 8, 0x01])
    memory.set(options.data.subarray(0, memory.length - 4), 4)
  }
  const inAir = unhex(uid).toReversed()
  let eas = options.eas ?? true
  let session = false

  /** Answer of the tag itself to a frame. */
  function answerFrame(frame: Uint8Array): Uint8Array | null {
    const [flags, code, maker] = frame
    if (flags !== 0x22 || maker !== 0x04 || hex(frame.subarray(3)) !== hex(inAir)) return null
    if (code === 0xa5) return eas ? Uint8Array.of(0x00, ...new Uint8Array(32).fill(0x2f)) : null
    if (options.locked) return Uint8Array.of(0x01, 0x12)
    const isUndone = options.resetFault === 'no-answer-undone' || options.resetFault === 'says-done-undone'
    if (!isUndone) eas = code === 0xa2
    return options.resetFault === 'no-answer-done' || options.resetFault === 'no-answer-undone'
      ? null
      : Uint8Array.of(0x00)
  }

  function transparent(apdu: Uint8Array): Uint8Array | null {
    if (!options.transparent) return NO_SUCH_FUNCTION
    if (same(apdu, START_SESSION)) session = true
    else if (same(apdu, END_SESSION)) session = false
    else if (!same(apdu, SWITCH_TO_ISO15693)) {
      // {5F 46 04 timer} {95 length frame}
      const length = apdu[13] ?? 0
      if (!session || apdu[12] !== 0x95 || apdu.length !== 15 + length) return NO_SUCH_FUNCTION
      if (options.resetFault === 'silent') return null
      const answer = answerFrame(apdu.subarray(14, 14 + length))
      return answer
        ? Uint8Array.of(
            0xc0,
            0x03,
            0x00,
            0x90,
            0x00,
            0x92,
            0x01,
            0x00,
            0x96,
            0x02,
            0x00,
            0x00,
            0x97,
            answer.length,
            ...answer,
            ...OK,
          )
        : options.reportsOutside
          ? Uint8Array.of(0x64, 0x01)
          : Uint8Array.of(0xc0, 0x03, 0x01, 0x64, 0x01, ...OK)
    }
    return Uint8Array.of(0xc0, 0x03, 0x00, 0x90, 0x00, ...OK)
  }

  const plain = tag({
    atr: storageAtr(0x0b, 0x0014),
    uid,
    reportedUid: options.reversed ? inAir : unhex(uid),
    read: (block, length) =>
      options.data && (block + 1) * 4 <= memory.length && length === 4 ? memory.slice(block * 4, block * 4 + 4) : null,
    other: (apdu) => (apdu[0] === 0xff && apdu[1] === 0xc2 ? transparent(apdu) : NO_SUCH_FUNCTION),
  })
  return {
    ...plain,
    get eas() {
      return eas
    },
  }
}
