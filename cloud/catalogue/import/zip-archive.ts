import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'
import { invalid, type Failure } from '../../foundation/failure.ts'

/**
 * Reads the directory of an uploaded zip archive, unpacks single parts, and writes new archives. An archive is refused
 * if other programs could find other parts in it. Layout: APPNOTE.TXT 6.3.10 §4.3.
 */

const PARTS_LIMIT = 1_000

const END_RECORD = 0x06054b50
const ENTRY_RECORD = 0x02014b50
const LOCAL_RECORD = 0x04034b50
const ZIP64_LOCATOR = 0x07064b50
const END_SIZE = 22
const ENTRY_SIZE = 46
const LOCAL_SIZE = 30
const LOCATOR_SIZE = 20
const COMMENT_LIMIT = 65_535
/** Values that refer to a zip64 record. */
const [ZIP64_COUNT, ZIP64_SIZE] = [0xffff, 0xffffffff]
/** Flags of an encrypted part: bits 0, 6 and 13. */
const ENCRYPTED = 0x2041
const [STORED, DEFLATED] = [0, 8]

export interface ZipEntry {
  readonly name: string
  readonly method: number
  readonly crc: number
  /** The packed bytes. */
  readonly packed: Buffer
  /** Unpacked size that the directory states, bytes. */
  readonly size: number
}

/** A refusal of the uploaded file. `code` becomes the code of the detail. */
export function refuseFile(code: string, message: string): Failure {
  return invalid('file', message, code)
}

const damaged = (what: string) => refuseFile('damaged', `is damaged: ${what}`)

/** The parts by their name in lower case, because names of parts differ in more than case. */
export function readZip(file: Buffer): Map<string, ZipEntry> {
  const end = findEnd(file)
  const [disk, firstDisk, countHere] = [4, 6, 8].map((at) => file.readUInt16LE(end + at))
  const count = file.readUInt16LE(end + 10)
  const [size, start] = [file.readUInt32LE(end + 12), file.readUInt32LE(end + 16)]
  const hasLocator = end >= LOCATOR_SIZE && file.readUInt32LE(end - LOCATOR_SIZE) === ZIP64_LOCATOR
  if (hasLocator || count === ZIP64_COUNT || size === ZIP64_SIZE || start === ZIP64_SIZE)
    throw refuseFile('not_a_workbook', 'is a zip64 archive, which workbooks do not use')
  if (count > PARTS_LIMIT) throw refuseFile('too_many_parts', `has over ${PARTS_LIMIT} parts`)
  if (disk !== 0 || firstDisk !== 0 || countHere !== count || start + size !== end)
    throw damaged('its directory is cut off')
  const parts = new Map<string, ZipEntry>()
  const places: { from: number; to: number }[] = []
  let at = start
  for (let i = 0; i < count; i++) {
    if (at + ENTRY_SIZE > end || file.readUInt32LE(at) !== ENTRY_RECORD) throw damaged('its directory is cut off')
    const lengths = [28, 30, 32].map((field) => file.readUInt16LE(at + field))
    const next = lengths.reduce((sum, length) => sum + length, at + ENTRY_SIZE)
    if (next > end) throw damaged('its directory is cut off')
    const { entry, from, to } = readEntry(file, at)
    places.push({ from, to })
    if (parts.has(entry.name.toLowerCase())) throw damaged(`a part occurs twice (${entry.name.slice(0, 80)})`)
    parts.set(entry.name.toLowerCase(), entry)
    at = next
  }
  if (at !== end) throw damaged('its directory has other entries than it states')
  places.sort((a, b) => a.from - b.from)
  if (places.some(({ to }, i) => to > (places[i + 1]?.from ?? start))) throw damaged('two parts overlap')
  return parts
}

/** The end record must end the file. */
function findEnd(file: Buffer): number {
  for (let at = file.length - END_SIZE; at >= Math.max(0, file.length - END_SIZE - COMMENT_LIMIT); at--) {
    const isEnd = file.readUInt32LE(at) === END_RECORD
    if (isEnd && at + END_SIZE + file.readUInt16LE(at + 20) === file.length) return at
  }
  throw damaged('the end of the zip archive is missing')
}

/** Reads one entry of the directory, and the place of its part in the file. */
function readEntry(file: Buffer, at: number): { entry: ZipEntry; from: number; to: number } {
  const nameLength = file.readUInt16LE(at + 28)
  const nameBytes = file.subarray(at + ENTRY_SIZE, at + ENTRY_SIZE + nameLength)
  // Some programs of Windows write the wrong separator.
  const name = nameBytes.toString('utf8').replaceAll('\\', '/')
  const [packed, size, from] = [20, 24, 42].map((field) => file.readUInt32LE(at + field)) as [number, number, number]
  const method = file.readUInt16LE(at + 10)
  if ((file.readUInt16LE(at + 8) & ENCRYPTED) !== 0)
    throw refuseFile('encrypted', 'has a password: save it without one')
  if (packed === ZIP64_SIZE || size === ZIP64_SIZE || from === ZIP64_SIZE || file.readUInt16LE(at + 34) !== 0)
    throw refuseFile('not_a_workbook', 'is a zip64 archive, which workbooks do not use')
  if (method !== STORED && method !== DEFLATED)
    throw refuseFile(
      'not_a_workbook',
      `contains a part with a compression method that workbooks do not use (${name.slice(0, 80)})`,
    )
  if (from + LOCAL_SIZE > file.length || file.readUInt32LE(from) !== LOCAL_RECORD) throw damaged('a part is missing')
  const nameEnd = from + LOCAL_SIZE + file.readUInt16LE(from + 26)
  const start = nameEnd + file.readUInt16LE(from + 28)
  const isSame = file.readUInt16LE(from + 8) === method && nameBytes.equals(file.subarray(from + LOCAL_SIZE, nameEnd))
  if (!isSame || start + packed > file.length) throw damaged(`a part is missing (${name.slice(0, 80)})`)
  const bytes = file.subarray(start, start + packed)
  return { entry: { name, method, crc: file.readUInt32LE(at + 16), packed: bytes, size }, from, to: start + packed }
}

/** Unpacks a part, which must have exactly the size and the checksum of the directory. */
export function unpack({ name, method, crc, packed, size }: ZipEntry): Buffer {
  const bytes = method === STORED ? packed : inflate(packed, size)
  if (bytes?.length !== size || crc32(bytes) !== crc) throw damaged(`a part cannot be unpacked (${name.slice(0, 80)})`)
  return bytes
}

function inflate(packed: Buffer, size: number): Buffer | undefined {
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(size, 1) })
  } catch {
    return undefined
  }
}

/** Writes an archive. An entry is written as it was packed. */
export function writeZip(parts: readonly { name: string; content: string | Buffer | ZipEntry }[]): Buffer {
  const bodies: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, content } of parts) {
    const isText = typeof content === 'string' || Buffer.isBuffer(content)
    const entry = isText ? pack(Buffer.from(content)) : content.method === DEFLATED ? content : pack(unpack(content))
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(DEFLATED, 4)
    common.writeUInt32LE(entry.crc, 10)
    common.writeUInt32LE(entry.packed.length, 14)
    common.writeUInt32LE(entry.size, 18)
    common.writeUInt16LE(name.length, 22)
    const [local, tail, version] = [Buffer.alloc(4), Buffer.alloc(14), Buffer.alloc(6)]
    local.writeUInt32LE(LOCAL_RECORD)
    version.writeUInt32LE(ENTRY_RECORD)
    version.writeUInt16LE(20, 4)
    tail.writeUInt32LE(offset, 10)
    const body = [local, common, Buffer.from(name), entry.packed]
    bodies.push(...body)
    directory.push(version, common, tail, Buffer.from(name))
    offset += body.reduce((sum, { length }) => sum + length, 0)
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(END_SIZE)
  end.writeUInt32LE(END_RECORD)
  end.writeUInt16LE(parts.length, 8)
  end.writeUInt16LE(parts.length, 10)
  end.writeUInt32LE(entries.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...bodies, entries, end])
}

function pack(bytes: Buffer): Omit<ZipEntry, 'name' | 'method'> {
  return { packed: deflateRawSync(bytes, { level: 1 }), crc: crc32(bytes), size: bytes.length }
}
