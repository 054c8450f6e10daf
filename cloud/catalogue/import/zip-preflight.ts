import { createInflateRaw } from 'node:zlib'
import { invalid, type Failure } from '../../foundation/failure.ts'
import { ROWS_LIMIT } from './sheet.ts'

/**
 * Rejects unsafe workbooks before hucre unpacks them. First checks the sizes in the central directory of the zip
 * archive. Then unpacks the parts that hucre reads as a whole, and rejects a DTD or more than `TEXTS_LIMIT` shared
 * strings. Layout: APPNOTE.TXT 6.3.10 §4.3.
 */

/** Maximum unpacked size of all parts together, bytes. */
const SIZE_LIMIT = 64 * 1024 * 1024
/** Maximum unpacked size of a part that hucre reads as a whole (workbook, styles, relations), bytes. */
const SMALL_PART_LIMIT = 4 * 1024 * 1024
/** Maximum unpacked size of the shared strings, bytes. In the largest valid file, the shared strings have 7 MB. */
const TEXTS_SIZE_LIMIT = 16 * 1024 * 1024
const ENTRIES_LIMIT = 1_000
/** Maximum compression ratio. In real sheets the ratio reaches about 60; deflate allows up to 1032. */
const RATIO_LIMIT = 200
/** Unpacked size from which a part must not exceed the compression ratio, bytes. */
const RATIO_FROM = 1024 * 1024
/** Maximum number of shared strings. The largest valid file has 100,000: 10,000 rows of 10 columns. */
const TEXTS_LIMIT = 200_000

const END_RECORD = 0x06054b50
const ENTRY_RECORD = 0x02014b50
const LOCAL_RECORD = 0x04034b50
const END_SIZE = 22
const ENTRY_SIZE = 46
const LOCAL_SIZE = 30
const COMMENT_LIMIT = 65_535

const DTD = /<!(?:DOCTYPE|ENTITY)/i
/** Markers that end a shared string: `</si>`, `</x:si>` or `<si/>`. */
const TEXT_ENDS = ['/si>', ':si>', 'si/>']

interface Entry {
  name: string
  method: number
  packed: number
  size: number
  offset: number
}

function refuse(code: string, message: string): Failure {
  return invalid('file', message, code)
}

/** Throws 400 with one error code per reason if the workbook is damaged, encrypted or unsafe. */
export async function checkWorkbook(file: Buffer): Promise<void> {
  const entries = readDirectory(file)
  if (!entries.some((entry) => entry.name === '[Content_Types].xml'))
    throw refuse('not_a_workbook', 'is a zip archive but not an .xlsx workbook')
  let total = 0
  for (const { name, method, packed, size } of entries) {
    if (method !== 0 && method !== 8)
      throw refuse(
        'not_a_workbook',
        `contains a part with a compression method that workbooks do not use (${name.slice(0, 80)})`,
      )
    total += size
    if (total > SIZE_LIMIT) throw refuse('too_large_unpacked', `unpacks to more than ${SIZE_LIMIT / 1024 / 1024} MB`)
    if (size > RATIO_FROM && size > packed * RATIO_LIMIT)
      throw refuse('too_large_unpacked', `has a compression ratio over ${RATIO_LIMIT}, like a zip bomb`)
  }
  for (const entry of entries) {
    if (!/\.(?:xml|rels)$/i.test(entry.name)) continue
    const isTexts = /sharedstrings\.xml$/i.test(entry.name)
    const isSheet = /worksheets\//i.test(entry.name)
    if (isTexts && entry.size > TEXTS_SIZE_LIMIT)
      throw refuse(
        'too_many_texts',
        `contains over ${TEXTS_SIZE_LIMIT / 1024 / 1024} MB of texts: far more than ${ROWS_LIMIT} products need`,
      )
    if (!isTexts && !isSheet && entry.size > SMALL_PART_LIMIT && !/drawings?\/|media\/|charts?\//i.test(entry.name)) {
      throw refuse(
        'too_large_unpacked',
        `contains a part of over ${SMALL_PART_LIMIT / 1024 / 1024} MB that is not a sheet`,
      )
    }
    await scanPart(file, entry, isTexts)
  }
}

function readDirectory(file: Buffer): Entry[] {
  const end = findEnd(file)
  const count = file.readUInt16LE(end + 10)
  let at = file.readUInt32LE(end + 16)
  if (count === 0xffff || at === 0xffffffff)
    throw refuse('not_a_workbook', 'is a zip64 archive, which workbooks do not use')
  if (count > ENTRIES_LIMIT) throw refuse('too_many_parts', `has over ${ENTRIES_LIMIT} parts`)
  const entries: Entry[] = []
  for (let i = 0; i < count; i++) {
    if (at + ENTRY_SIZE > file.length || file.readUInt32LE(at) !== ENTRY_RECORD)
      throw refuse('damaged', 'is damaged: its directory is cut off')
    if ((file.readUInt16LE(at + 8) & 1) !== 0) throw refuse('encrypted', 'has a password: save it without one')
    const nameLength = file.readUInt16LE(at + 28)
    const next = at + ENTRY_SIZE + nameLength + file.readUInt16LE(at + 30) + file.readUInt16LE(at + 32)
    entries.push({
      name: file.toString('utf8', at + ENTRY_SIZE, at + ENTRY_SIZE + nameLength),
      method: file.readUInt16LE(at + 10),
      packed: file.readUInt32LE(at + 20),
      size: file.readUInt32LE(at + 24),
      offset: file.readUInt32LE(at + 42),
    })
    at = next
  }
  return entries
}

function findEnd(file: Buffer): number {
  for (let at = file.length - END_SIZE; at >= Math.max(0, file.length - END_SIZE - COMMENT_LIMIT); at--) {
    if (file.readUInt32LE(at) === END_RECORD) return at
  }
  throw refuse('damaged', 'is damaged: the end of the zip archive is missing')
}

/**
 * Unpacks a part in chunks without storing it. Counts the shared strings and rejects DTDs. Rejects a part that is
 * larger than its size in the directory.
 */
async function scanPart(file: Buffer, entry: Entry, isTexts: boolean): Promise<void> {
  const { name, method, packed, size, offset } = entry
  if (offset + LOCAL_SIZE > file.length || file.readUInt32LE(offset) !== LOCAL_RECORD)
    throw refuse('damaged', 'is damaged: a part is missing')
  const start = offset + LOCAL_SIZE + file.readUInt16LE(offset + 26) + file.readUInt16LE(offset + 28)
  const bytes = file.subarray(start, start + packed)
  let [seen, texts, before] = [0, 0, '']
  const look = (chunk: Buffer) => {
    seen += chunk.length
    if (seen > size)
      throw refuse('damaged', `contains a part that is larger than the directory claims (${name.slice(0, 80)})`)
    const text = chunk.toString('latin1')
    // The end of the previous chunk is searched too, because a marker may span two chunks.
    if (DTD.test(before + text)) throw refuse('dtd', 'contains a document type definition, which workbooks do not need')
    if (isTexts) {
      for (const mark of TEXT_ENDS) texts += occurrences(before.slice(1 - mark.length) + text, mark)
      if (texts > TEXTS_LIMIT)
        throw refuse('too_many_texts', `contains over ${TEXTS_LIMIT} texts: far more than ${ROWS_LIMIT} products need`)
    }
    before = text.slice(-8)
  }
  if (method === 0) return look(bytes)
  const inflate = createInflateRaw()
  inflate.end(bytes)
  try {
    for await (const chunk of inflate) look(chunk as Buffer)
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('Z_'))
      throw refuse('damaged', `is damaged: a part cannot be unpacked (${name.slice(0, 80)})`)
    throw error
  } finally {
    inflate.destroy()
  }
}

function occurrences(text: string, mark: string): number {
  let count = 0
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) count++
  return count
}
