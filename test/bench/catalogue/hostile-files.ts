import { deflateRawSync } from 'node:zlib'
import { readZip, writeZip, type ZipEntry } from '../../../cloud/shop/catalogue/import/xlsx-sheet.ts'

/** Workbooks that cost much more to read than to send. Each passes a reader that checks only a part of the archive. */

const MB = 1024 * 1024
const TYPE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const HEADER = ['ean', 'name', 'price', 'vat']

type Content = string | Buffer | ZipEntry
export type Parts = Readonly<Record<string, Content>>

const relations = (targets: Readonly<Record<string, string>>) =>
  `<Relationships>${Object.entries(targets)
    .map(([type, target], i) => `<Relationship Id="rId${i + 1}" Type="${TYPE}/${type}" Target="${target}"/>`)
    .join('')}</Relationships>`
const cell = (text: string) => `<c t="inlineStr"><is><t>${text}</t></is></c>`

/** The parts of a workbook with one product, and more relations of the workbook. */
export function workbookOf(more: Readonly<Record<string, string>> = {}, parts: Parts = {}): Parts {
  return {
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relations({ officeDocument: 'xl/workbook.xml' }),
    'xl/workbook.xml': '<workbook><sheets><sheet name="1" sheetId="1" r:id="rId1"/></sheets></workbook>',
    'xl/_rels/workbook.xml.rels': relations({ worksheet: 'worksheets/sheet1.xml', ...more }),
    'xl/worksheets/sheet1.xml':
      `<worksheet><sheetData><row>${HEADER.map(cell).join('')}</row>` +
      `<row>${['4012345678901', 'Milch', '1', '7'].map(cell).join('')}</row></sheetData></worksheet>`,
    ...parts,
  }
}

/** Writes the parts as an archive. */
export function zipOf(parts: Parts): Buffer {
  return writeZip(Object.entries(parts).map(([name, content]) => ({ name, content })))
}

/** A packed part that states another size. */
function partOf(bytes: Buffer, size: number): ZipEntry {
  return { name: '', method: 8, crc: 0, packed: deflateRawSync(bytes, { level: 9 }), size }
}

const textsOf = (bytes: number) => {
  const one = '<si><t>a</t></si>'
  return Buffer.from(`<sst>${one.repeat(Math.ceil(bytes / one.length))}</sst>`)
}

/** Shared strings under another name. The directory states a size of 0. */
function hiddenTexts(megabytes: number): Buffer {
  const parts = { 'xl/strings.bin': partOf(textsOf(megabytes * MB), 0) }
  return zipOf(workbookOf({ sharedStrings: 'strings.bin' }, parts))
}

/** A harmless directory, and a second one that only readers of zip64 find. */
function twoDirectories(megabytes: number): Buffer {
  const bomb = zipOf(
    workbookOf({ sharedStrings: 'sharedStrings.xml' }, { 'xl/sharedStrings.xml': textsOf(megabytes * MB) }),
  )
  const end = bomb.length - 22
  const [count, start] = [bomb.readUInt16LE(end + 10), bomb.readUInt32LE(end + 16)]
  const harmless = zipOf(workbookOf())
  const harmlessEnd = harmless.length - 22
  const shift = bomb.length
  const moved = Buffer.from(harmless)
  let at = moved.readUInt32LE(harmlessEnd + 16)
  for (let i = 0; i < moved.readUInt16LE(harmlessEnd + 10); i++) {
    moved.writeUInt32LE(moved.readUInt32LE(at + 42) + shift, at + 42)
    at += 46 + moved.readUInt16LE(at + 28)
  }
  const record = Buffer.alloc(56)
  record.writeUInt32LE(0x06064b50)
  record.writeBigUInt64LE(44n, 4)
  record.writeBigUInt64LE(BigInt(count), 24)
  record.writeBigUInt64LE(BigInt(count), 32)
  record.writeBigUInt64LE(BigInt(end - start), 40)
  record.writeBigUInt64LE(BigInt(start), 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50)
  locator.writeBigUInt64LE(BigInt(shift + harmlessEnd), 8)
  locator.writeUInt32LE(1, 16)
  const last = moved.subarray(harmlessEnd)
  last.writeUInt32LE(0xffffffff, 12)
  last.writeUInt32LE(last.readUInt32LE(16) + shift, 16)
  return Buffer.concat([bomb, moved.subarray(0, harmlessEnd), record, locator, last])
}

/** Small elements in one shared string. */
function manyElements(count: number): Buffer {
  const texts = Buffer.from(`<sst><si>${'<r/>'.repeat(count)}</si></sst>`)
  return zipOf(workbookOf({ sharedStrings: 'sharedStrings.xml' }, { 'xl/sharedStrings.xml': texts }))
}

const sheetOf = (data: string) =>
  zipOf(workbookOf({}, { 'xl/worksheets/sheet1.xml': `<worksheet><sheetData>${data}</sheetData></worksheet>` }))

/** Files by name. `short` makes smaller ones for tests. */
export function hostileFiles({ short = false } = {}): Record<string, () => Buffer> {
  const size = short ? 5 : 100
  return {
    'hidden texts': () => hiddenTexts(size),
    'two directories': () => twoDirectories(size),
    '3,900,000 elements': () => manyElements(short ? 900_000 : 3_900_000),
    'as many elements as allowed': () => manyElements(short ? 10_000 : 799_990),
    'empty rows to the last column': () => sheetOf('<row><c r="XFD1"/></row>'.repeat(short ? 2_000 : 20_000)),
    '4,900,000 tags': () => sheetOf(`<row>${cell('x').repeat(100)}</row>`.repeat(short ? 100 : 8_000)),
    'a tag that does not end': () => sheetOf(`<row ${' '.repeat(short ? MB : 40 * MB)}`),
    'a comment that does not end': () => sheetOf(`<!--${'<a/>'.repeat(short ? MB / 8 : (4 * MB) / 4)}`),
    'short rows of CSV': () => Buffer.from(`ean,name,price,vat\n${'a\n'.repeat(short ? MB : 10 * MB)}`),
    'one row of CSV': () => Buffer.from(`ean,name,price,vat\n"${'a'.repeat(short ? MB : 20 * MB)}`),
    'quotation marks of CSV': () => Buffer.from(`ean,name,price,vat\n${'""'.repeat(short ? MB / 2 : 10 * MB)}`),
  }
}

/** The sizes of all parts of an archive, for reports. */
export function unpackedBytes(file: Buffer): number {
  return [...readZip(file).values()].reduce((sum, { size }) => sum + size, 0)
}
