import { readUntrustedJson } from '../../../policy/untrusted-json.ts'
import type { Noise } from './codec.ts'

/** One JSON value and its text. */
export interface JsonItem {
  readonly value: unknown
  readonly text: string
}

/** Decodes a text with or without a byte order mark: UTF-8 or UTF-16. */
export function textOfBytes(bytes: Uint8Array): string {
  const [first, second] = bytes
  const isBigEndian = first === 0xfe && second === 0xff
  const encoding = isBigEndian ? 'utf-16be' : first === 0xff && second === 0xfe ? 'utf-16le' : 'utf-8'
  return new TextDecoder(encoding).decode(bytes)
}

/** Maximum values side by side in one message: one for each read of a body. */
const MAX_VALUES = 5_000
/** Maximum levels of lists and objects in a value. */
const MAX_LEVELS = 32
/** Characters or bytes of an unreadable text that are kept for the report. */
const SAMPLE_BYTES = 400

interface TopLevel {
  readonly parts: readonly string[]
  readonly rest: string
  /** Why the text is refused as a whole. */
  readonly excess?: string
}

/** Objects and lists of a text that stand side by side, with the text that belongs to none. */
function topLevelValues(text: string): TopLevel {
  const parts: string[] = []
  const refused = (why: string) => ({ parts: [], rest: text.slice(0, SAMPLE_BYTES), excess: `a text with ${why}` })
  let [rest, from, depth, inString] = ['', 0, 0, false]
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (depth > 0 && inString) {
      if (character === '\\') at++
      else if (character === '"') inString = false
    } else if (depth > 0 && character === '"') inString = true
    else if (character === '{' || character === '[') {
      if (depth === 0) rest += text.slice(from, at)
      if (depth++ === 0) from = at
      if (depth > MAX_LEVELS) return refused(`over ${MAX_LEVELS} levels of lists and objects`)
    } else if (depth > 0 && (character === '}' || character === ']') && --depth === 0) {
      if (parts.length === MAX_VALUES) return refused(`over ${MAX_VALUES} values`)
      parts.push(text.slice(from, at + 1))
      from = at + 1
    }
  }
  return { parts, rest: rest + text.slice(from) }
}

function parse(text: string): JsonItem | null {
  const value = readUntrustedJson(text)
  return value === undefined ? null : { value, text }
}

interface JsonMessage {
  readonly items: readonly JsonItem[]
  /** Text that is no JSON, such as the start of a value that was cut off. */
  readonly unreadable: string
  /** Set if the message has too many values or levels. Then `items` is empty and `unreadable` a sample. */
  readonly excess?: string
}

/**
 * Reads a message that contains one JSON value, or several objects or lists side by side, as some readers send them.
 * `most`: number of values after which reading stops.
 */
export function readJson(message: string, most = MAX_VALUES): JsonMessage {
  const text = message.trim()
  // Before the text is parsed, because a value with many levels exhausts the stack of its readers.
  const { parts, rest, excess } = topLevelValues(text)
  if (excess !== undefined) return { items: [], unreadable: rest, excess }
  const whole = text === '' ? null : parse(text)
  if (whole) return { items: [whole], unreadable: '' }
  const items: JsonItem[] = []
  let unreadable = rest.replaceAll(/[\s,;\p{Cc}]+/gu, ' ').trim()
  for (const part of parts) {
    const item = parse(part)
    if (item) items.push(item)
    else unreadable += part
    if (items.length === most) break
  }
  return { items, unreadable }
}

/** Reads JSON values from a stream, one or more on each line. */
interface JsonLines {
  /** Returns the values of complete lines. Empty lines are keepalives and have no value. */
  push(chunk: Uint8Array): JsonItem[]
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
  let buffer = new Uint8Array(Math.min(mostBytes, 1_024))
  let length = 0
  let tooLong = 0
  let noise: Noise | null = null

  function addNoise(bytes: number, detail: string, sample: Uint8Array): void {
    noise = { bytes: (noise?.bytes ?? 0) + bytes, detail, sample: noise?.sample ?? sample.slice(0, SAMPLE_BYTES) }
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

  function finish(items: JsonItem[]): void {
    const line = buffer.subarray(0, length)
    const size = length + tooLong
    const isTooLong = tooLong > 0
    length = 0
    tooLong = 0
    if (isTooLong) return addNoise(size, `a line over ${mostBytes} bytes`, line)
    const read = readJson(textOfBytes(line))
    for (const item of read.items) items.push(item)
    if (read.unreadable !== '')
      addNoise(size, read.excess ?? 'a text that is no JSON', Buffer.from(read.unreadable.slice(0, SAMPLE_BYTES)))
  }

  return {
    push(chunk) {
      const items: JsonItem[] = []
      let from = 0
      for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
        append(chunk.subarray(from, at))
        finish(items)
        from = at + 1
      }
      append(chunk.subarray(from))
      return items
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
