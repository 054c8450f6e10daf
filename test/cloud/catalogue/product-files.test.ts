import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { csvTemplate, xlsxTemplate } from '../../../cloud/catalogue/import/template.ts'
import { readProducts } from '../../../cloud/catalogue/import/read-products.ts'
import { writeXlsxSheet } from '../../../cloud/catalogue/import/xlsx-sheet.ts'
import { Failure } from '../../../cloud/foundation/failure.ts'
import { makeZip, workbookParts, type ZipPart } from '../../support/zip.ts'

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
      [6, 3, 'not an ean', 'ean', 'custom'],
      [6, 3, 'not an ean', 'price', 'custom'],
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
    expect([errors.listed.length, errors.count(), rows]).toEqual([1_000, 3_000, 3_000])
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
      'an open quotation mark',
      `ean,name,price,vat\n4012345678901,"Milch,1,7\n${LINE}`,
      'damaged: file: cannot be read as CSV at row 2',
    ],
    ['a line without end', `ean,name,price,vat\n4012345678901,${'x'.repeat(200_000)},1,7`, 'damaged'],
    ['a picture', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), 'not_a_spreadsheet'],
    ['10,001 rows', ['ean,name,price,vat', ...Array.from({ length: 10_001 }, () => LINE)].join('\n'), 'too_many_rows'],
    ['100,000 empty rows', `ean,name,price,vat\n${',\n'.repeat(100_000)}`, 'too_many_rows'],
    ['101 columns', `ean,name,price,vat\n${LINE}${',x'.repeat(101)}`, 'too_many_columns'],
  ])('is rejected with %s', async (_, text, message) => {
    expect(await refusal(text)).toContain(message)
  })

  it('lets other work run while it is read', async () => {
    let turns = 0
    let isDone = false
    const count = () => {
      turns++
      if (!isDone) setImmediate(count)
    }
    setImmediate(count)
    await refusal(`ean,name,price,vat\n${`1,${'x'.repeat(900)},1,7\n`.repeat(9_000)}`)
    isDone = true
    expect(turns).toBeGreaterThan(100)
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

  const withoutDirectory = (file: Buffer) => file.fill(0, file.length - 200, file.length - 22)

  it.each([
    ['our own library', async () => Buffer.from(await writeXlsxSheet('Tabelle', ROWS))],
    ['hand, texts inline', async () => makeZip(workbookParts(ROWS as never))],
    ['hand, texts shared', async () => makeZip(workbookParts(ROWS as never, { shared: true }))],
    ['hand, not packed', async () => makeZip(workbookParts(ROWS as never).map((part) => ({ ...part, stored: true })))],
  ])('is read as written by %s', async (_, write) => {
    expect(await products(await write())).toEqual(EXPECTED)
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
      () =>
        makeZip([
          ...good(),
          {
            name: 'xl/styles.xml',
            bytes: Buffer.from(Array.from({ length: 800_000 }, (_, i) => (i * 7919).toString(36)).join(' ')),
          },
        ]),
      'too_large_unpacked',
    ],
    ['billion laughs', () => replaced('xl/sharedStrings.xml', { bytes: laughs }), 'dtd'],
    [
      'a document type in the sheet',
      () =>
        replaced('xl/worksheets/sheet1.xml', {
          bytes: `<?xml version="1.0"?>${' '.repeat(200_000)}<!DOCTYPE x SYSTEM "http://x.example/">`,
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
      .map((s) => s.replaceAll(/[\p{Cc}\u2028\u2029\ufffe\uffff]/gu, '').trim())
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
