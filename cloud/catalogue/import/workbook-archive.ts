import { refuseFile, readZip, unpack, writeZip, type ZipEntry } from './zip-archive.ts'
import { ROWS_LIMIT } from './sheet.ts'

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
export function rebuildWorkbook(file: Buffer): Buffer {
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
