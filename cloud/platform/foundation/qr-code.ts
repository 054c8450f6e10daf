import { crc32, deflateSync } from 'node:zlib'
import { encode } from 'uqr'

/** Width of the quiet zone around the code, modules (ISO/IEC 18004 requires 4). */
const BORDER = 4
/**
 * Texts of at least this length get a fixed mask; shorter texts get the best mask. A receipt has hundreds of random
 * characters. All eight masks are equally good for receipts, measured on sixty receipts. Trying all masks takes ten
 * times as long as drawing the code.
 */
const RANDOM_FROM_CHARACTERS = 200
const ANY_MASK = 6
const BEST_MASK = -1
/** Compression level: level 3 packs repeated rows as well as 6, in a quarter of the time. */
const FAST = 3
/** Smallest module that phones and scanners read from a screen, pixels. */
const MIN_MODULE = 3
const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')

/** Width of a code without a wanted size, pixels, at most. */
const USUAL_SIZE = 512

/**
 * Draws a QR code (error correction M) as a 1-bit PNG with a white margin. With `size` the image is that many pixels
 * wide, or wider if a module would be smaller than 3 pixels. Without it the margin is only the quiet zone, so that a
 * page can use its whole width.
 */
export function qrPng(text: string, size?: number): Buffer {
  const { data } = encode(text, {
    ecc: 'M',
    border: 0,
    maskPattern: text.length < RANDOM_FROM_CHARACTERS ? BEST_MASK : ANY_MASK,
  })
  const modules = data.length + 2 * BORDER
  const scale = Math.max(MIN_MODULE, Math.floor((size ?? USUAL_SIZE) / modules))
  const width = Math.max(size ?? 0, modules * scale)
  const margin = Math.floor((width - modules * scale) / 2) + BORDER * scale
  const white = Buffer.alloc(Math.ceil(width / 8) + 1, 0xff)
  white[0] = 0 // filter: none
  const rows = Array<Buffer>(width).fill(white)
  for (const [y, row] of data.entries()) {
    const line = Buffer.from(white)
    for (let from = row.indexOf(true); from >= 0;) {
      const end = row.indexOf(false, from)
      const to = end < 0 ? row.length : end
      blacken(line, 8 + margin + from * scale, 8 + margin + to * scale)
      from = row.indexOf(true, to)
    }
    rows.fill(line, margin + y * scale, margin + (y + 1) * scale)
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(width, 4)
  header[8] = 1 // bit depth; colour type 0: greyscale
  return Buffer.concat([
    PNG_SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.concat(rows), { level: FAST })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Clears the bits from `from` to before `to`. */
function blacken(line: Buffer, from: number, to: number): void {
  const [first, last] = [from >> 3, to >> 3]
  const [before, after] = [0xff << (8 - (from & 7)), 0xff >> (to & 7)]
  if (first === last) {
    line[first] = (line[first] ?? 0) & (before | after)
    return
  }
  line[first] = (line[first] ?? 0) & before
  line.fill(0, first + 1, last)
  if (last < line.length) line[last] = (line[last] ?? 0) & after
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const framed = Buffer.alloc(body.length + 8)
  framed.writeUInt32BE(data.length, 0)
  body.copy(framed, 4)
  framed.writeUInt32BE(crc32(body), body.length + 4)
  return framed
}

/** Cache: drawing takes milliseconds, and receipts are opened more than once. */
const drawn = new Map<string, string>()
const DRAWN_LIMIT = 500

/** A QR code as PNG in base64, for clients without SVG. */
export function qrPngBase64(text: string): string {
  const known = drawn.get(text)
  if (known !== undefined) return known
  const png = qrPng(text).toString('base64')
  const oldest = drawn.keys().next().value
  if (drawn.size >= DRAWN_LIMIT && oldest !== undefined) drawn.delete(oldest)
  drawn.set(text, png)
  return png
}
