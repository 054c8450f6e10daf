import { crc32, deflateRawSync } from 'node:zlib'

/** One file of an archive. `size` and `flags` are written into the headers without checks. */
export interface ZipPart {
  name: string
  bytes: Uint8Array | string
  size?: number
  flags?: number
  stored?: boolean
}

/** Writes a zip archive byte by byte (APPNOTE.TXT §4.3), without a library. */
export function makeZip(parts: readonly ZipPart[]): Buffer {
  const bodies: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, bytes, size, flags = 0, stored = false } of parts) {
    const raw = Buffer.from(bytes as Uint8Array)
    const packed = stored ? raw : deflateRawSync(raw)
    const label = Buffer.from(name)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(flags, 2)
    common.writeUInt16LE(stored ? 0 : 8, 4)
    common.writeUInt32LE(crc(raw), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(size ?? raw.length, 18)
    common.writeUInt16LE(label.length, 22)
    const local = Buffer.concat([Buffer.from('PK\u0003\u0004', 'latin1'), common, label, packed])
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE(offset, 10)
    directory.push(Buffer.concat([Buffer.from('PK\u0001\u0002\u0014\u0000', 'latin1'), common, tail, label]))
    bodies.push(local)
    offset += local.length
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(Math.min(parts.length, 0xfffe), 4)
  end.writeUInt16LE(Math.min(parts.length, 0xfffe), 6)
  end.writeUInt32LE(entries.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...bodies, entries, Buffer.from('PK\u0005\u0006', 'latin1'), end])
}

/** zlib.crc32 is missing in some supported Node versions. */
function crc(bytes: Uint8Array): number {
  if (typeof crc32 === 'function') return crc32(bytes)
  let sum = ~0
  for (const byte of bytes) {
    sum ^= byte
    for (let k = 0; k < 8; k++) sum = (sum >>> 1) ^ (0xedb88320 & -(sum & 1))
  }
  return ~sum >>> 0
}

const escape = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const letter = (n: number) => String.fromCharCode(65 + n)

/**
 * The files of a workbook with one sheet. With `shared`, texts are in a shared table, as spreadsheet programs write
 * them; otherwise inline.
 */
export function workbookParts(
  rows: readonly (readonly (string | number | null)[])[],
  { shared = false }: { shared?: boolean } = {},
): ZipPart[] {
  const texts: string[] = []
  const cell = (value: string | number | null, at: string) => {
    if (value === null) return ''
    if (typeof value === 'number') return `<c r="${at}"><v>${value}</v></c>`
    if (!shared) return `<c r="${at}" t="inlineStr"><is><t xml:space="preserve">${escape(value)}</t></is></c>`
    return `<c r="${at}" t="s"><v>${texts.push(value) - 1}</v></c>`
  }
  const data = rows
    .map(
      (cells, r) => `<row r="${r + 1}">${cells.map((value, c) => cell(value, `${letter(c)}${r + 1}`)).join('')}</row>`,
    )
    .join('')
  const xml = (body: string) => `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n${body}`
  const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
  const types = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const relations = (each: readonly [string, string][]) =>
    xml(
      `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${each
        .map(([type, target], i) => `<Relationship Id="rId${i + 1}" Type="${types}/${type}" Target="${target}"/>`)
        .join('')}</Relationships>`,
    )
  return [
    {
      name: '[Content_Types].xml',
      bytes: xml(
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>' +
          '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
      ),
    },
    { name: '_rels/.rels', bytes: relations([['officeDocument', 'xl/workbook.xml']]) },
    {
      name: 'xl/workbook.xml',
      bytes: xml(
        `<workbook xmlns="${main}" xmlns:r="${types}"><sheets><sheet name="Tabelle1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
      ),
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      bytes: relations([
        ['worksheet', 'worksheets/sheet1.xml'],
        ...(shared ? [['sharedStrings', 'sharedStrings.xml'] as [string, string]] : []),
      ]),
    },
    ...(shared
      ? [
          {
            name: 'xl/sharedStrings.xml',
            bytes: xml(
              `<sst xmlns="${main}">${texts.map((t) => `<si><t xml:space="preserve">${escape(t)}</t></si>`).join('')}</sst>`,
            ),
          },
        ]
      : []),
    {
      name: 'xl/worksheets/sheet1.xml',
      bytes: xml(`<worksheet xmlns="${main}"><sheetData>${data}</sheetData></worksheet>`),
    },
  ]
}
