import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { csvTemplate, xlsxTemplate } from '../../../../cloud/shop/catalogue/import/template.ts'
import { asPrice, asVat, readProducts } from '../../../../cloud/shop/catalogue/import/read-products.ts'
import { writeXlsxSheet } from '../../../../cloud/shop/catalogue/import/xlsx-sheet.ts'
import { Failure } from '../../../../cloud/platform/foundation/failure.ts'
import { hostileFiles, workbookOf, zipOf } from '../../../bench/catalogue/hostile-files.ts'
import { makeZip, workbookParts, type ZipPart } from '../../../support/zip.ts'

const HEADER = ['ean', 'name', 'price', 'vat', 'category', 'unit', 'brand', 'description', 'is_organic', 'is_vegan']
const LINE = '4012345678901,Milch,1.99,7'
const read = (text: string | Buffer) => readProducts(Buffer.from(text as string))
const csv = (...lines: string[]) => read(['ean,name,price,vat', ...lines].join('\n'))
const products = async (text: string | Buffer) => (await read(text)).products.map(({ product }) => product)

/** Returns the codes and the message of the error that a file causes. */
async function refusal(file: Buffer | string): Promise<string> {
  try {
    await read(file)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    expect(error.code).toBe('invalid-argument')
    expect(error.extras.details?.[0]?.path).toBe('file')
    return `${error.extras.details?.map((d) => d.code).join(' ')}: ${error.message}`
  }
  return 'taken'
}

describe('a .csv file', () => {
  const MILK = { ean: '4012345678901', name: 'Milch', price: 1.99, vat: 7 }

  it.each([
    ['commas', `ean,name,price,vat\n${LINE}`],
    ['semicolons and a decimal comma', 'ean;name;price;vat\n4012345678901;Milch;1,99;7'],
    ['tabs', 'ean\tname\tprice\tvat\n4012345678901\tMilch\t1.99\t7'],
    ['a byte order mark', `\ufeffean,name,price,vat\r\n${LINE}\r\n`],
    [
      'UTF-16, as Excel calls "Unicode text"',
      Buffer.from(`\ufeffean\tname\tprice\tvat\r\n4012345678901\tMilch\t1.99\t7\r\n`, 'utf16le'),
    ],
    ['other order and case, spaces, empty lines', '\n\n VAT , Name,EAN,Price\n\n7,Milch,4012345678901, 1.99\n\n'],
    ['quotes around everything', '"ean","name","price","vat"\n"4012345678901","Milch","1,99","7"'],
    ['a currency and a percent sign', 'ean;name;price;vat\n4012345678901;Milch;1,99 €;7 %'],
    ['a vat as a fraction', 'ean,name,price,vat\n4012345678901,Milch,1.99,0.07'],
    ['barcode for ean', `barcode,name,price,vat\n${LINE}`],
    ['a column without a name', 'ean,name,price,vat,\n4012345678901,Milch,1.99,7,note'],
    ['a single carriage return as line end', `ean,name,price,vat\r${LINE}\r`],
  ])('is read with %s', async (_, text) => {
    expect(await products(text as string)).toEqual([MILK])
  })

  it('is read as Windows-1252 with a warning if it is not valid UTF-8', async () => {
    const file = Buffer.from('ean;name;price;vat\n4012345678901;M\xfcsli \x80;1,99;7', 'latin1')
    const { products: found, warnings } = await readProducts(file)
    expect(found[0]?.product.name).toBe('Müsli €')
    expect(warnings).toEqual([expect.stringContaining('Windows-1252')])
  })

  // How Excel and systems of shops write them.
  it.each([
    ['the separator in the first line', 'sep=;\r\nean;name;price;vat\r\n4012345678901;Milch;1,99;7\r\n', 2],
    ['the separator in quotation marks', '"sep=|"\nean|name|price|vat\n4012345678901|Milch|1,99|7', 2],
    ['formulas that protect numbers', 'ean;name;price;vat\n="4012345678901";="Milch";1,99;"=""7"""', 2],
    ['German names of columns', 'EAN-Code;Artikelbezeichnung;VK-Preis;MwSt.\n4012345678901;Milch;1,99;7', 2],
    ['units in the names of columns', 'GTIN;Bezeichnung;Preis (in €);MwSt %\n4012345678901;Milch;1,99;7', 2],
    ['the currency in front', 'ean;name;price;vat\n4012345678901;Milch;€ 1,99;7', 2],
    ['VAT with the error of binary fractions', 'ean,name,price,vat\n4012345678901,Milch,1.99,7.000000000000001', 2],
    ['VAT as such a fraction', 'ean,name,price,vat\n4012345678901,Milch,1.99,0.07000000000000001', 2],
    ['three kinds of line ends', 'ean,name,price,vat\r\n\r\n\n4012345678901,Milch,1.99,7\r', 4],
  ])('is read with %s', async (_, text, row) => {
    const { products: found, errors } = await read(text)
    expect(errors.listed).toEqual([])
    expect(found).toEqual([{ index: 0, row, product: MILK }])
  })

  it('takes quotation marks inside a cell literally, and loses no row behind an open one', async () => {
    const lines = [
      '4012345678901;Monitor 27" schwarz;199;19',
      '4012345678918;Füller "Öko";2,50;19',
      '4012345678925;"27" Monitor;1;19',
      '4012345678932;"Monitor 27;2;19',
      '4012345678949;"Tür ""groß""; weiß";3;19',
      '4012345678956;Brot "lose;4;7',
    ]
    const { products: found, errors } = await read(['ean;name;price;vat', ...lines].join('\n'))
    expect(errors.listed).toEqual([])
    expect(found.map(({ row, product }) => [row, product.name, product.price])).toEqual([
      [2, 'Monitor 27" schwarz', 199],
      [3, 'Füller "Öko"', 2.5],
      [4, '"27" Monitor', 1],
      [5, '"Monitor 27', 2],
      [6, 'Tür "groß"; weiß', 3],
      [7, 'Brot "lose', 4],
    ])
  })

  it('refuses a bad row alone', async () => {
    const { products: found, errors } = await csv(
      `4012345678918,${'x'.repeat(200_000)},1,7`,
      `4012345678925,Milch,1,7${',x'.repeat(101)}`,
      LINE,
    )
    expect(errors.listed.map(({ row, code }) => [row, code])).toEqual([
      [2, 'too_long'],
      [3, 'too_many_cells'],
    ])
    expect(found.map(({ row }) => row)).toEqual([4])
  })

  it.each([
    ['1,19 €', 1.19],
    ['€1.19', 1.19],
    ['EUR 1,19', 1.19],
    ['1.299,00', 1_299],
    ['1,299.00', 1_299],
    ['12.345.678,90 €', 12_345_678.9],
  ])('reads the price %s', (written, price) => {
    expect(asPrice(written)).toBe(price)
  })

  it('reads a long cell in a moment', () => {
    const beganMs = performance.now()
    const long = `1${' '.repeat(90_000)}x`
    expect([asPrice(long), asVat(long)]).toEqual([long, long])
    expect(performance.now() - beganMs).toBeLessThan(1_000)
  })

  it('names the cell, the value and what to write', async () => {
    const { errors } = await read(
      'EAN;Preis;Name;MwSt;Bio\n4012345678901;1.299;Milch;7;\n4012345678918;#N/A;Brot;20;vielleicht\n4012345678925;x;;7;\n4,00638E+12;1;Brot;7;\n;1;Brot;7;',
    )
    const at = (row: number, field: string, code: string, message: unknown) =>
      expect.objectContaining({ row, field, code, message })
    expect(errors.listed).toEqual([
      at(
        2,
        'price',
        'invalid_value',
        'cell B2 (price) contains "1.299": must have at most 2 decimals; write 1.99 or 1,99',
      ),
      at(
        3,
        'price',
        'invalid_type',
        'cell B3 (price) contains "#N/A": this is the error of a formula; write 1.99 or 1,99',
      ),
      at(3, 'vat', 'invalid_value', expect.stringMatching(/^cell D3 \(vat\) contains "20": .*; write 7 or 19$/)),
      at(3, 'is_organic', 'invalid_type', expect.stringMatching(/^cell E3 \(is_organic\) contains "vielleicht": /)),
      at(4, 'name', 'missing', 'cell C4 (name) is empty; write a name'),
      at(4, 'price', 'invalid_type', 'cell B4 (price) contains "x": this is no price; write 1.99 or 1,99'),
      at(
        5,
        'ean',
        'invalid_value',
        'cell A5 (ean) contains "4,00638E+12": was rounded by a spreadsheet: format the column as text, and write all digits',
      ),
      at(6, 'ean', 'missing', 'cell A6 (ean) is empty; write its 8 or 13 digits'),
    ])
  })

  it.each([
    [
      'Excel’s "CSV (MS-DOS)"',
      'Füller größe Öl',
      Buffer.from('46816c6c657220677294e16520996c', 'hex'),
      'code page 850',
    ],
    ['MS-DOS without ü', 'Kräuter', Buffer.from('4b72847574657220', 'hex'), 'code page 850'],
    [
      'Windows and its quotation marks',
      'Die „Große” Öl',
      Buffer.from('44696520844772 6fdf659420d66c'.replace(' ', ''), 'hex'),
      'Windows-1252',
    ],
    [
      'Windows without umlauts',
      'Salz – 5 €',
      Buffer.from('53616c7a20962035208 0'.replace(' ', ''), 'hex'),
      'Windows-1252',
    ],
  ])('is read in the code page of %s', async (_, name, bytes, page) => {
    const file = Buffer.concat([Buffer.from('ean;name;price;vat\n4012345678901;'), bytes, Buffer.from(';1,99;7')])
    const { products: found, warnings } = await readProducts(file)
    expect(found[0]?.product.name).toBe(name)
    expect(warnings).toEqual([expect.stringContaining(page)])
  })

  it('numbers rows like a spreadsheet, and continues after an invalid row', async () => {
    const {
      rows,
      products: found,
      errors,
    } = await csv(
      LINE,
      '',
      ',Nichts,x,7',
      '40123455,Salz,-1,7',
      'not an ean,a,1.999,20',
      '4012345678901,Doppelt,1,7',
      '96385074,Gut,1,19',
    )
    expect(rows).toBe(6)
    expect(found.map(({ row, index }) => [row, index])).toEqual([
      [2, 0],
      [8, 5],
    ])
    expect(errors.listed.map(({ row, index, ean, field, code }) => [row, index, ean, field, code])).toEqual([
      [4, 1, null, 'price', 'invalid_type'],
      [5, 2, '40123455', 'price', 'too_small'],
      [6, 3, 'not an ean', 'ean', 'invalid_value'],
      [6, 3, 'not an ean', 'price', 'invalid_value'],
      [6, 3, 'not an ean', 'vat', 'invalid_value'],
      [7, 4, '4012345678901', 'ean', 'repeated'],
    ])
  })

  it('rejects a row with more cells than the header, because a decimal comma would turn 1,99 into 1', async () => {
    const { products: found, errors } = await read(
      'ean,name,vat,price\n4012345678901,Milch,7,1,99\n96385074,Gut,19,1,,\n',
    )
    expect(found.map(({ product }) => [product.ean, product.price])).toEqual([['96385074', 1]])
    expect(errors.listed.map(({ row, ean, code }) => [row, ean, code])).toEqual([
      [2, '4012345678901', 'too_many_cells'],
    ])
  })

  it('accepts yes and no in several languages', async () => {
    const lines = ['true', 'JA', '1', 'x', 'false', 'nein', '0', '', 'vielleicht'].map(
      (word, i) => `401234567890${i},Milch,1,7,${word}`,
    )
    const { products: found, errors } = await read(['ean,name,price,vat,is_organic', ...lines].join('\n'))
    expect(found.map(({ product }) => product.isOrganic)).toEqual([
      true,
      true,
      true,
      true,
      false,
      false,
      false,
      undefined,
    ])
    expect(errors.listed).toMatchObject([{ field: 'is_organic', row: 10 }])
  })

  it('lists 1,000 errors and counts all', async () => {
    const { errors, rows } = await csv(...Array.from({ length: 3_000 }, () => 'x,y,1,7'))
    expect([errors.listed.length, errors.total, rows]).toEqual([1_000, 3_000, 3_000])
  })

  it.each([
    ['nothing', '', 'empty_file'],
    ['white space', '\n  \n', 'empty_file'],
    ['a header alone', 'ean,name,price,vat\n', 'empty_file'],
    ['no header', `${LINE}\n${LINE}`, 'no_header: file: has no header: row 1'],
    ['an unknown column', `ean,name,price,vat,colour\n${LINE},red`, 'unknown_column: file: unknown column "colour"'],
    ['a missing column', 'ean,name,vat\n4012345678901,Milch,7', 'missing_column: file: the column "price" is missing'],
    ['a column twice', `ean,name,price,vat,EAN\n${LINE},1`, 'repeated_column'],
    [
      'an XML table behind a byte order mark',
      '\ufeff\n<?xml version="1.0"?>',
      'not_a_spreadsheet: file: is a web page or XML',
    ],
    ['a picture', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), 'not_a_spreadsheet'],
    ['10,001 rows', ['ean,name,price,vat', ...Array.from({ length: 10_001 }, () => LINE)].join('\n'), 'too_many_rows'],
    ['100,000 empty rows', `ean,name,price,vat\n${',\n'.repeat(100_000)}`, 'too_many_rows'],
    ['a header of 101 columns', `ean,name,price,vat${',x'.repeat(97)}\n${LINE}`, 'too_many_columns'],
  ])('is rejected with %s', async (_, text, message) => {
    expect(await refusal(text)).toContain(message)
  })

  it('accepts 10,000 rows', async () => {
    const lines = Array.from(
      { length: 10_000 },
      (_, i) => `${4_000_000_000_000 + i},Artikel ${i},${(i / 100).toFixed(2)},7`,
    )
    expect((await csv(...lines)).products).toHaveLength(10_000)
  })
})

describe('an .xlsx workbook', () => {
  const ROWS = [
    HEADER,
    ['4012345678901', 'Müsli & <Nüsse>', 1.99, 7, 'müsli', null, 'Lindwerk', ' a  b ', 'true', null],
    [96385074, 'Salz', 2, 0.19, null, null, null, null, null, 'x'],
  ]
  const EXPECTED = [
    {
      ean: '4012345678901',
      name: 'Müsli & <Nüsse>',
      price: 1.99,
      vat: 7,
      category: 'müsli',
      brand: 'Lindwerk',
      description: 'a  b',
      isOrganic: true,
    },
    { ean: '96385074', name: 'Salz', price: 2, vat: 19, isVegan: true },
  ]
  const good = (): ZipPart[] => workbookParts([HEADER, ['4012345678901', 'Milch', 1, 7]], { shared: true })
  const replaced = (name: string, part: Partial<ZipPart>) =>
    makeZip(good().map((each) => (each.name === name ? { ...each, ...part } : each)))

  const hostile = (name: string) => () => hostileFiles({ short: true })[name]?.() ?? Buffer.alloc(0)
  /** A workbook with another number in its end record, its first entry or the header of its first part. */
  const withField = (
    parts: ZipPart[],
    record: 'end' | 'entry' | 'local',
    at: number,
    change: (n: number) => number,
  ) => {
    const file = makeZip(parts)
    const start = file.readUInt32LE(file.length - 6)
    const from = { end: file.length - 22, entry: start, local: 0 }[record] + at
    file.writeUInt32LE(change(file.readUInt32LE(from)) >>> 0, from)
    return file
  }

  const withoutDirectory = (file: Buffer) => file.fill(0, file.length - 200, file.length - 22)

  it.each([
    ['our own library', async () => Buffer.from(await writeXlsxSheet('Tabelle', ROWS))],
    ['hand, texts inline', async () => makeZip(workbookParts(ROWS as never))],
    ['hand, texts shared', async () => makeZip(workbookParts(ROWS as never, { shared: true }))],
    [
      'a program that separates folders by backslashes',
      async () =>
        makeZip(workbookParts(ROWS as never).map((part) => ({ ...part, name: part.name.replaceAll('/', '\\') }))),
    ],
    ['hand, not packed', async () => makeZip(workbookParts(ROWS as never).map((part) => ({ ...part, stored: true })))],
  ])('is read as written by %s', async (_, write) => {
    expect(await products(await write())).toEqual(EXPECTED)
  })

  it.each([
    [
      'strict relations, prefixes, comments and absolute names',
      {
        '_rels/.rels':
          "<!-- <a --><r:Relationships><r:Relationship Id='a' Target='/Book/Main.xml' Type='http://purl.oclc.org/ooxml/officeDocument/relationships/officeDocument' /></r:Relationships>",
        'book/main.xml':
          '<x:workbook><!--<sheet r:id="rId9"/>--><x:sheets><x:sheet name=">" sheetId="7" rel:id="rId2"></x:sheet></x:sheets></x:workbook>',
        'book/_rels/main.xml.rels':
          '<Relationships><Relationship Target="../Data/./one.xml" Type="http://purl.oclc.org/ooxml/officeDocument/relationships/worksheet" Id="rId2"/></Relationships>',
        'Data/one.xml': workbookOf()['xl/worksheets/sheet1.xml'] ?? '',
      },
    ],
    [
      'a chart before the first sheet',
      {
        'xl/workbook.xml':
          '<workbook><sheets><sheet name="c" r:id="rId9"/><sheet name="1" r:id="rId1"/></sheets></workbook>',
      },
    ],
    [
      'folders and parts that are not read',
      { 'xl/': '', 'xl/media/': '', 'xl/media/a.png': Buffer.alloc(9 * 1024 * 1024) },
    ],
  ])('is read with %s', async (_, parts) => {
    expect(await products(zipOf(workbookOf({}, parts)))).toEqual([
      { ean: '4012345678901', name: 'Milch', price: 1, vat: 7 },
    ])
  })

  it('is read with dates since 1904', async () => {
    const rows = (date1904: string) => ({
      'xl/workbook.xml': `<workbook><workbookPr date1904="${date1904}"/><sheets><sheet name="1" r:id="rId1"/></sheets></workbook>`,
      'xl/styles.xml': '<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
      'xl/worksheets/sheet1.xml':
        '<worksheet><sheetData><row><c t="inlineStr"><is><t>ean</t></is></c><c t="inlineStr"><is><t>name</t></is></c>' +
        '<c t="inlineStr"><is><t>price</t></is></c><c t="inlineStr"><is><t>vat</t></is></c></row>' +
        '<row><c><v>4012345678901</v></c><c s="1"><v>40000</v></c><c><v>1</v></c><c><v>7</v></c></row></sheetData></worksheet>',
    })
    const names = async (date1904: string) =>
      (await products(zipOf(workbookOf({ styles: 'styles.xml' }, rows(date1904))))).map(({ name }) => name)
    expect([await names('0'), await names('1')]).toEqual([['2009-07-06'], ['2013-07-07']])
  })

  it('numbers rows as spreadsheet programs show them', async () => {
    const file = makeZip(workbookParts([[null], HEADER, [null], ['x', 'y', 1, 7]]))
    expect((await read(file)).errors.listed[0]).toMatchObject({ row: 4, index: 0, ean: 'x' })
  })

  const textsOf = (count: number) =>
    `<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">${'<si><t>a</t></si>'.repeat(count)}</sst>`
  const laughs = `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">${Array.from({ length: 9 }, (_, i) => `<!ENTITY lol${i} "${`&lol${i || ''};`.repeat(10)}">`).join('')}]><sst><si><t>&lol8;</t></si></sst>`

  it.each<[string, () => Buffer, string]>([
    ['another kind of zip', () => makeZip([{ name: 'a.txt', bytes: 'x' }]), 'not_a_workbook'],
    ['only the beginning of one', () => makeZip(good()).subarray(0, 200), 'damaged'],
    ['a directory that is overwritten', () => withoutDirectory(makeZip(good())), 'damaged'],
    ['a password', () => replaced('xl/workbook.xml', { flags: 1 }), 'encrypted'],
    [
      'the container of a password, or an old .xls',
      () => Buffer.from('d0cf11e0a1b11ae1000000000000', 'hex'),
      'encrypted',
    ],
    [
      'a zip bomb that states its size',
      () => replaced('xl/worksheets/sheet1.xml', { bytes: Buffer.alloc(70 * 1024 * 1024, ' ') }),
      'too_large_unpacked',
    ],
    [
      'a zip bomb of 30 MB',
      () => replaced('xl/worksheets/sheet1.xml', { bytes: Buffer.alloc(30 * 1024 * 1024, ' ') }),
      'too_large_unpacked',
    ],
    [
      'a zip bomb that states a small size',
      () => replaced('xl/worksheets/sheet1.xml', { bytes: Buffer.alloc(30 * 1024 * 1024, ' '), size: 1_000 }),
      'damaged',
    ],
    [
      'styles of 5 MB',
      () => {
        const numbers = Array.from({ length: 800_000 }, (_, i) => `<n>${(i * 7919).toString(36)}</n>`)
        return zipOf(workbookOf({ styles: 'styles.xml' }, { 'xl/styles.xml': numbers.join('') }))
      },
      'too_large_unpacked',
    ],
    [
      'styles of 300,000 elements',
      () => zipOf(workbookOf({ styles: 'styles.xml' }, { 'xl/styles.xml': '<a/>'.repeat(300_000) })),
      'too_large_unpacked',
    ],
    [
      'a workbook part of 300,000 elements',
      () => zipOf(workbookOf({}, { 'xl/workbook.xml': '<a/>'.repeat(300_000) })),
      'too_large_unpacked',
    ],
    [
      'a cell of 200,000 characters',
      () => replaced('xl/sharedStrings.xml', { bytes: `<sst><si><t>${'x'.repeat(200_000)}</t></si></sst>` }),
      'too_many_texts: file: contains a text of over 131072 bytes',
    ],
    ['shared texts under another name', hostile('hidden texts'), 'damaged'],
    ['a second directory of zip64', hostile('two directories'), 'not_a_workbook: file: is a zip64 archive'],
    ['900,000 elements in one text', hostile('3,900,000 elements'), 'too_many_texts'],
    ['a part twice', () => makeZip([...good(), ...good().slice(-1)]), 'damaged: file: is damaged: a part occurs twice'],
    [
      'a part twice in other case',
      () => makeZip([...good(), { name: 'XL/Workbook.xml', bytes: '' }]),
      'a part occurs twice',
    ],
    ['bytes after its end', () => Buffer.concat([makeZip(good()), Buffer.from('x')]), 'damaged'],
    ['bytes before its directory', () => withField(good(), 'end', 12, (size) => size - 1), 'damaged'],
    ['a size of zip64 in the end record', () => withField(good(), 'end', 12, () => 0xffffffff), 'not_a_workbook'],
    ['a place of zip64 in the end record', () => withField(good(), 'end', 16, () => 0xffffffff), 'not_a_workbook'],
    ['a part with a size of zip64', () => withField(good(), 'entry', 24, () => 0xffffffff), 'not_a_workbook'],
    ['a part with a packed size of zip64', () => withField(good(), 'entry', 20, () => 0xffffffff), 'not_a_workbook'],
    ['a part with a place of zip64', () => withField(good(), 'entry', 42, () => 0xffffffff), 'not_a_workbook'],
    ['a part that reaches into the next', () => withField(good(), 'entry', 20, (size) => size + 50), 'overlap'],
    ['a part of which its header has another name', () => withField(good(), 'local', 30, () => 0x41414141), 'damaged'],
    ['a wrong checksum', () => withField(good().toReversed(), 'entry', 16, (sum) => sum ^ 1), 'damaged'],
    [
      'a part that is smaller than stated',
      () => withField(good().toReversed(), 'entry', 24, (size) => size + 1),
      'damaged',
    ],
    [
      'a sheet outside of the archive',
      () => zipOf(workbookOf({}, { 'xl/_rels/workbook.xml.rels': '<Relationships/>' })),
      'damaged',
    ],
    ['billion laughs', () => replaced('xl/sharedStrings.xml', { bytes: laughs }), 'dtd'],
    [
      'a document type in the sheet',
      () =>
        replaced('xl/worksheets/sheet1.xml', {
          bytes: `<?xml version="1.0"?>${' '.repeat(100_000)}<!DOCTYPE x SYSTEM "http://x.example/">`,
        }),
      'dtd',
    ],
    [
      '1,000,000 texts',
      () => replaced('xl/sharedStrings.xml', { bytes: textsOf(1_000_000), stored: true }),
      'too_many_texts',
    ],
    [
      '300,000 texts that pack badly',
      () => replaced('xl/sharedStrings.xml', { bytes: textsOf(300_000), stored: true }),
      'too_many_texts',
    ],
    [
      '2,000 parts',
      () => makeZip([...good(), ...Array.from({ length: 2_000 }, (_, i) => ({ name: `x${i}`, bytes: '' }))]),
      'too_many_parts',
    ],
    ['no sheet', () => makeZip(good().filter((part) => !part.name.includes('sheet1'))), 'damaged'],
    ['a sheet that is no XML', () => replaced('xl/worksheets/sheet1.xml', { bytes: 'nothing' }), 'empty_file'],
    ['an empty sheet', () => makeZip(workbookParts([])), 'empty_file: file: is empty: the first sheet has no rows'],
    [
      'the wrong sheet first',
      () =>
        makeZip(
          workbookParts([
            ['Umsatz', 'Januar'],
            ['a', 1],
          ]),
        ),
      'but contains "Umsatz", "Januar"',
    ],
    [
      '10,001 rows',
      () => makeZip(workbookParts([HEADER, ...Array.from({ length: 10_001 }, () => ['4012345678901', 'Milch', 1, 7])])),
      'too_many_rows',
    ],
    [
      'a cell in the last possible column',
      () =>
        replaced('xl/worksheets/sheet1.xml', {
          bytes: '<worksheet><sheetData><row r="1"><c r="XFD1"><v>1</v></c></row></sheetData></worksheet>',
        }),
      'too_many_columns',
    ],
  ])('is rejected with %s', async (_, make, message) => {
    expect(await refusal(make())).toContain(message)
  })

  it('is rejected without other failures, whatever is damaged', async () => {
    const file = makeZip(workbookParts(ROWS as never, { shared: true }))
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }),
        async (changes) => {
          const broken = Buffer.from(file)
          for (const [at, byte] of changes) broken[at] = byte
          await refusal(broken)
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('the templates', () => {
  it('can be imported', async () => {
    const [fromCsv, fromXlsx] = [await products(csvTemplate()), await products(Buffer.from(await xlsxTemplate()))]
    expect(fromCsv).toEqual(fromXlsx)
    expect(fromCsv).toMatchObject([{ price: 1.99, vat: 7, isOrganic: true }])
  })
})

describe('any values', () => {
  const word = (max: number) =>
    fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: max })
      .map((s) =>
        s
          .replaceAll(/[\p{Cc}\u2028\u2029\ufffe\uffff]/gu, '')
          .normalize('NFC')
          .trim(),
      )
      .filter((s) => s !== '' && s.length <= max && s.isWellFormed())
  const product = fc.record(
    {
      name: word(40),
      price: fc.integer({ min: 0, max: 100_000_000 }).map((cents) => cents / 100),
      vat: fc.constantFrom(7, 19),
      category: word(20),
      brand: word(20),
      description: word(60),
      isOrganic: fc.boolean(),
    },
    { requiredKeys: ['name', 'price', 'vat'] },
  )
  const list = fc
    .array(product, { minLength: 1, maxLength: 12 })
    .map((all) => all.map((p, i) => ({ ean: String(4_000_000_000_000 + i), ...p })))
  const cellsOf = (p: Record<string, unknown>) =>
    [
      p['ean'],
      p['name'],
      p['price'],
      p['vat'],
      p['category'],
      null,
      p['brand'],
      p['description'],
      p['isOrganic'] === undefined ? null : String(p['isOrganic']),
      null,
    ].map((v) => v ?? null) as (string | number | null)[]

  it('survive a CSV file unchanged', async () => {
    const quote = (cell: string | number | null, separator: string) => {
      const text = String(cell ?? '')
      return text.includes(separator) || /["\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
    }
    await fc.assert(
      fc.asyncProperty(
        list,
        fc.constantFrom(',', ';', '\t'),
        fc.constantFrom('\n', '\r\n'),
        fc.boolean(),
        async (all, separator, end, isGerman) => {
          const price = (n: number | string | null) =>
            isGerman && typeof n === 'number' ? String(n).replace('.', ',') : n
          const lines = [HEADER, ...all.map((p) => cellsOf(p).map(price))].map((cells) =>
            cells.map((cell) => quote(cell, separator)).join(separator),
          )
          expect(await products(lines.join(end))).toEqual(all)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('survive a workbook of any writer unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(list, fc.constantFrom('inline', 'shared', 'library'), async (all, by) => {
        const rows = [HEADER, ...all.map(cellsOf)]
        const file =
          by === 'library'
            ? Buffer.from(await writeXlsxSheet('x', rows))
            : makeZip(workbookParts(rows, { shared: by === 'shared' }))
        expect(await products(file)).toEqual(all)
      }),
      { numRuns: 100 },
    )
  })
})

describe('files that other programs wrote from one sheet', () => {
  const bytesOf = (name: string) => readFileSync(join(import.meta.dirname, 'files', name))
  const SHOP = [
    { ean: '4006381333931', name: 'Stabilo Füller 27"', price: 1.99, vat: 19, category: 'Büro', isOrganic: true },
    { ean: '4012345678901', name: 'Hafermilch; 1 l', price: 1.19, vat: 7, category: 'Getränke', isOrganic: false },
    { ean: '96385074', name: 'Öl „Größe“ – extra', price: 1_299, vat: 7 },
    { ean: '4012345678949', name: 'Formel', price: 1.5, vat: 7 },
  ]

  it.each([
    ['excel-2007.xlsx', '2026-01-19'],
    ['semicolon-utf8.csv', '19. Jan'],
    ['comma-utf8.csv', '19. Jan'],
    ['tab-utf16.csv', '19. Jan'],
    ['semicolon-1252-quoted.csv', '19. Jan'],
  ])('%s: has the same products and the same wrong cells (LibreOffice 7.4)', async (name, date) => {
    const { products: found, errors } = await readProducts(bytesOf(name))
    expect(found.map(({ product }) => product)).toEqual(SHOP)
    expect(errors.listed.map(({ row, message }) => [row, message.split(': ')[0]])).toEqual([
      [5, 'cell B5 (name) contains "mehr zeilig"'],
      [6, `cell C6 (price) contains "${date}"`],
      [7, 'cell C7 (price) contains "#N/A"'],
    ])
  })

  it('semicolon-850.csv: lacks characters of that code page, which makes errors of its rows', async () => {
    const { products: found, errors, warnings } = await readProducts(bytesOf('semicolon-850.csv'))
    expect(warnings).toEqual([expect.stringContaining('code page 850')])
    expect(found.map(({ row }) => row)).toEqual([3, 8])
    expect(errors.listed[0]?.message).toBe('cell C2 (price) contains "1,99 ?": this is no price; write 1.99 or 1,99')
  })

  it.each([
    ['exceljs.xlsx', 'exceljs 4.4: formatted text and links in cells'],
    ['gnumeric.xlsx', 'Gnumeric 1.12'],
    ['gnumeric.txt', 'Gnumeric 1.12: all cells in quotation marks'],
    ['miller.csv', 'Miller 6.6'],
    ['perl.xlsx', 'Excel::Writer::XLSX 1.10: numbers as texts'],
    ['php.csv', 'fputcsv of PHP 8.2'],
    ['python-utf8-sig.csv', 'csv of Python 3.11'],
    ['sheetjs.xlsx', 'SheetJS 0.18'],
    ['sqlite.csv', 'the SQLite 3.40 shell'],
    ['xlsxwriter-strings.xlsx', 'XlsxWriter 3.0: formulas as prices, VAT as per cent'],
  ])('%s: has the same products and the same wrong cell (%s)', async (name) => {
    const { products: found, errors } = await readProducts(bytesOf(name))
    expect(found.map(({ product }) => product)).toEqual(SHOP)
    expect(errors.listed.map(({ row, message }) => [row, message.split(': ')[0]])).toEqual([
      [6, 'cell C6 (price) contains "#N/A"'],
    ])
  })

  it('openpyxl.xlsx: lacks the value of a formula, because no spreadsheet program has computed it', async () => {
    const { products: found, errors } = await readProducts(bytesOf('openpyxl.xlsx'))
    expect(found.map(({ row }) => row)).toEqual([2, 3, 4])
    expect(errors.listed.map(({ row, field }) => [row, field])).toEqual([
      [5, 'price'],
      [6, 'price'],
    ])
  })

  it.each(['sheet.ods', 'old.xls', 'sheetjs-2003.xml', 'sheetjs-html.xls', 'sheetjs.xlsb'])(
    '%s: is refused with the remedy',
    async (name) => {
      expect(await refusal(bytesOf(name))).toContain('.xlsx')
    },
  )
})
