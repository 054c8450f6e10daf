import { streamXlsxRows, XlsxStreamWriter } from 'hucre/xlsx'
import { Failure, invalid } from '../../../platform/foundation/failure.ts'
import {
  EMPTY_ROWS_LIMIT,
  isEmptyRow,
  limitedRow,
  tooManyEmptyRows,
  type Cell,
  type Sheet,
  type SheetRow,
  ROWS_LIMIT,
} from './sheet.ts'
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

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
function refuseFile(code: string, message: string): Failure {
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
function unpack({ name, method, crc, packed, size }: ZipEntry): Buffer {
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

/**
 * Rebuilds an uploaded workbook, so that hucre sees nothing that was not checked here. Follows the relations from the
 * root to the first sheet, unpacks the parts on the way within limits, and writes a new archive. It contains the first
 * sheet, the shared strings and the styles as uploaded, under fixed names. All other parts are written here.
 */

const MB = 1024 * 1024
/** Largest part of each kind, unpacked bytes and XML tags. hucre builds a tree of all kinds but the sheet. */
const LIMITS = {
  part: { bytes: 4 * MB, tags: 200_000, code: 'too_large_unpacked', name: 'a part that is not a sheet' },
  // The largest valid file has 100,000 texts, in 7 MB and 400,000 tags: 10,000 rows of 10 columns.
  texts: { bytes: 16 * MB, tags: 800_000, code: 'too_many_texts', name: 'shared texts' },
  // 10,000 rows of 100 columns have 4,000,000 tags.
  sheet: { bytes: 64 * MB, tags: 5_000_000, code: 'too_large_unpacked', name: 'a sheet' },
}

/** Largest text or tag, bytes. A cell of a spreadsheet program has at most 32,767 characters of 4 bytes. */
const TEXT_LIMIT = 128 * 1024

const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006'
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
const ROOT_RELATIONS = '_rels/.rels'

interface Relation {
  readonly id: string
  readonly type: string
  /** Name of the part, from the root. */
  readonly target: string
}

/** Returns a workbook with only the first sheet. Throws 400 if the file is damaged, encrypted or too large. */
function rebuildWorkbook(file: Buffer): Buffer {
  const parts = readZip(file)
  if (!parts.has('[content_types].xml'))
    throw refuseFile('not_a_workbook', 'is a zip archive but not an .xlsx workbook: save it as .xlsx')
  const textOf = (name: string) => decode(checked(required(parts, name), LIMITS.part))
  const workbookName = find(relationsOf(textOf(ROOT_RELATIONS), ''), 'officeDocument')?.target ?? ''
  const folder = workbookName.slice(0, workbookName.lastIndexOf('/') + 1)
  const workbook = textOf(workbookName)
  const relations = relationsOf(textOf(`${folder}_rels/${workbookName.slice(folder.length)}.rels`), folder)
  // The first sheet may be a chart.
  const sheets = new Map(relations.flatMap(({ id, type, target }) => (isType(type, 'worksheet') ? [[id, target]] : [])))
  const sheetId = elements(workbook, 'sheet')
    .flatMap(idOf)
    .find((id) => sheets.has(id))
  if (sheetId === undefined) throw refuseFile('damaged', 'has no sheet with rows: save it again as an .xlsx workbook')
  const sheet = required(parts, sheets.get(sheetId) ?? '')
  const texts = parts.get(find(relations, 'sharedStrings')?.target.toLowerCase() ?? '')
  const styles = parts.get(find(relations, 'styles')?.target.toLowerCase() ?? '')
  checked(sheet, LIMITS.sheet)
  if (texts) checked(texts, LIMITS.texts)
  if (styles) checked(styles, LIMITS.part)
  const is1904 = elements(workbook, 'workbookPr').some(({ date1904 }) => date1904 === '1' || date1904 === 'true')
  return writeZip([
    { name: '[Content_Types].xml', content: `<Types xmlns="${PACKAGE}/content-types"/>` },
    { name: ROOT_RELATIONS, content: relationsXml([['officeDocument', 'xl/workbook.xml']]) },
    { name: 'xl/workbook.xml', content: workbookXml(is1904) },
    {
      name: 'xl/_rels/workbook.xml.rels',
      content: relationsXml([
        ['worksheet', 'sheet.xml'],
        ...(texts ? [['sharedStrings', 'texts.xml'] as const] : []),
        ...(styles ? [['styles', 'styles.xml'] as const] : []),
      ]),
    },
    ...(texts ? [{ name: 'xl/texts.xml', content: texts }] : []),
    ...(styles ? [{ name: 'xl/styles.xml', content: styles }] : []),
    { name: 'xl/sheet.xml', content: sheet },
  ])
}

function required(parts: ReadonlyMap<string, ZipEntry>, name: string): ZipEntry {
  const entry = parts.get(name.toLowerCase())
  if (!entry) throw refuseFile('damaged', `is damaged: the part ${name.slice(0, 80)} is missing`)
  return entry
}

/** Unpacks a part within its limits. Rejects declarations, such as a DTD. */
function checked(entry: ZipEntry, limit: (typeof LIMITS)[keyof typeof LIMITS]): Buffer {
  const tooLarge = (what: string) =>
    refuseFile(limit.code, `contains ${limit.name} of over ${what}: far more than ${ROWS_LIMIT} products need`)
  if (entry.size > limit.bytes) throw tooLarge(`${limit.bytes / MB} MB`)
  const bytes = unpack(entry)
  const [OPEN, EXCLAMATION, DASH, BRACKET] = [0x3c, 0x21, 0x2d, 0x5b]
  let tags = 0
  let previous = 0
  for (let at = 0; at <= bytes.length; at++) {
    if (at < bytes.length && bytes[at] !== OPEN) continue
    if (at - previous > TEXT_LIMIT) throw refuseFile(limit.code, `contains a text of over ${TEXT_LIMIT} bytes`)
    previous = at
    if (++tags > limit.tags) throw tooLarge(`${limit.tags} XML tags`)
    // Comments and CDATA are the only other constructs with an exclamation mark.
    if (bytes[at + 1] === EXCLAMATION && bytes[at + 2] !== DASH && bytes[at + 2] !== BRACKET)
      throw refuseFile('dtd', 'contains a document type definition, which workbooks do not need')
  }
  return bytes
}

/** The text of an XML part without comments. */
function decode(bytes: Buffer): string {
  const pieces: string[] = []
  const text = bytes.toString('utf8')
  let from = 0
  for (let at = text.indexOf('<!--'); at >= 0; at = text.indexOf('<!--', from)) {
    pieces.push(text.slice(from, at))
    from = text.indexOf('-->', at + 4) + 3
    if (from < 3) throw refuseFile('damaged', 'is damaged: a comment does not end')
  }
  return [...pieces, text.slice(from)].join('')
}

type Attributes = Readonly<Record<string, string>>

/** Attributes of all elements with this local name. */
function elements(xml: string, localName: string): Attributes[] {
  const tags = new RegExp(`<(?:[\\w.-]+:)?${localName}(?=[\\s/>])((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>`, 'g')
  return [...xml.matchAll(tags)].map(([, attributes = '']) => {
    const pairs = attributes.matchAll(/([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)
    return Object.fromEntries([...pairs].map(([, name = '', double, single]) => [name, double ?? single ?? '']))
  })
}

/** The relation of a sheet: `r:id`, with any prefix. */
function idOf(sheet: Attributes): string[] {
  return Object.entries(sheet).flatMap(([name, value]) => (name.endsWith(':id') ? [value] : []))
}

function relationsOf(xml: string, folder: string): Relation[] {
  return elements(xml, 'Relationship').map(({ Id = '', Type = '', Target = '' }) => {
    const names = (Target.startsWith('/') ? Target : `${folder}${Target}`).split('/')
    const path: string[] = []
    for (const name of names) {
      if (name === '..') path.pop()
      else if (name !== '.' && name !== '') path.push(name)
    }
    return { id: Id, type: Type, target: path.join('/') }
  })
}

/** The types of strict and transitional workbooks have the same end. */
const isType = (type: string, end: string) => type.endsWith(`/${end}`)
const find = (relations: readonly Relation[], end: string) => relations.find(({ type }) => isType(type, end))

function relationsXml(relations: readonly (readonly [type: string, target: string])[]): string {
  const rows = relations.map(
    ([type, target], i) => `<Relationship Id="rId${i + 1}" Type="${OFFICE}/${type}" Target="${target}"/>`,
  )
  return `<Relationships xmlns="${PACKAGE}/relationships">${rows.join('')}</Relationships>`
}

function workbookXml(is1904: boolean): string {
  const sheets = '<sheets><sheet name="1" sheetId="1" r:id="rId1"/></sheets>'
  return `<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><workbookPr date1904="${is1904 ? 1 : 0}"/>${sheets}</workbook>`
}

/** Wraps hucre, which reads and writes .xlsx files. */

/** Rows of the first sheet of a workbook. Throws 400 for files that are not workbooks or are unsafe to unpack. */
export function readXlsxSheet(file: Buffer): Sheet {
  return { rows: rowsOf(rebuildWorkbook(file)), warnings: [] }
}

async function* rowsOf(file: Buffer): AsyncGenerator<SheetRow> {
  let empty = 0
  try {
    for await (const { index, values } of streamXlsxRows(file, { sheet: 0 })) {
      if (!isEmptyRow(values)) yield limitedRow(index + 1, values)
      else if (++empty > EMPTY_ROWS_LIMIT) throw tooManyEmptyRows()
    }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw invalid(
      'file',
      'cannot be read as an .xlsx workbook: open it in a spreadsheet program and save it again',
      'damaged',
    )
  }
}

/** Writes a workbook with one sheet. */
export async function writeXlsxSheet(name: string, rows: readonly (readonly Cell[])[]): Promise<Uint8Array> {
  const writer = new XlsxStreamWriter({ name })
  for (const row of rows) writer.addRow([...row])
  return writer.finish()
}
