import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { streamXlsxRows } from 'hucre/xlsx'
import { COLUMNS, type Column } from '../../../cloud/shop/catalogue/import/sheet.ts'
import { writeXlsxSheet } from '../../../cloud/shop/catalogue/import/xlsx-sheet.ts'
import { openBenchCloud, benchAccount } from '../bench-cloud.ts'
import { rowsOf, type Bench, type Figure, type Result, type Sizes, type Row } from '../figure.ts'
import { median, takeTurns, wallTime, type Contender } from '../measure.ts'
import { addStore } from './fill-store.ts'
import { benchProduct } from './products.ts'

const NAMES = {
  csv: { parser: 'csv-parse alone, .csv', ours: 'importProducts, .csv' },
  xlsx: { parser: 'hucre alone, .xlsx', ours: 'importProducts, .xlsx' },
}

const SIZES = {
  full: { rows: 10_000, rounds: 7 },
  quick: { rows: 10_000, rounds: 2 },
  smoke: { rows: 50, rounds: 1 },
} satisfies Sizes

/** Compares the import of a file of 10,000 products with only parsing that file. */
export const productImport: Figure = { sizes: SIZES, run }

type Kind = keyof typeof NAMES

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { rows: count, rounds } = SIZES[mode]
  const importer = await openImporter(join(folder, 'cloud'))
  try {
    const cpu = new Map<string, number[]>()
    let files = 0
    const contender = (name: string, kind: Kind, work: (file: Buffer) => Promise<number>): Contender => ({
      name,
      async slice() {
        const file = await fileOf(kind, files++ * count, count)
        const before = process.cpuUsage()
        const cost = await wallTime(count, async () => {
          const rows = await work(file)
          if (rows !== count) throw new Error(`${name}: ${rows} rows of ${count}`)
        })
        const { user, system } = process.cpuUsage(before)
        cpu.set(name, [...(cpu.get(name) ?? []), (user + system) / count])
        note(`${name}: ${cost.toFixed(1)} µs a row`)
        return cost
      },
    })
    const read: Record<Kind, (file: Buffer) => Promise<number>> = { csv: countCsv, xlsx: countXlsx }
    const contenders = (['csv', 'xlsx'] as const).flatMap((kind) => [
      contender(NAMES[kind].parser, kind, read[kind]),
      contender(NAMES[kind].ours, kind, (file) => importer.send(kind, file)),
    ])
    const samples = await takeTurns(contenders, rounds, random)
    const also = Object.fromEntries([...cpu].map(([name, values]) => [name, { 'CPU µs': median(values.slice(1)) }]))
    const rowsFor = ({ parser, ours }: (typeof NAMES)[Kind]): Row[] =>
      rowsOf(new Map([...samples].filter(([name]) => name === parser || name === ours)), parser, also)
    return {
      title: `9  A file of ${count.toLocaleString('en')} new products (SQLite, synchronous=FULL)`,
      counts:
        'wall time of the process without a socket, per row; an import against the parser of its own kind of file',
      rows: [...rowsFor(NAMES.csv), ...rowsFor(NAMES.xlsx)],
      targets: [],
      notes: [],
    }
  } finally {
    await importer.stop()
  }
}

/** Cells by column. */
function cellsOf(number: number): Record<Column, string | number> {
  const { price, ...product } = benchProduct(number)
  return {
    ...product,
    price: Number(price.toFixed(2)),
    is_organic: 'true',
    is_vegan: 'false',
    deposit: '',
    deposit_vat: '',
  }
}

/** Creates a file of new products, as a spreadsheet program writes it. */
async function fileOf(kind: Kind, from: number, count: number): Promise<Buffer> {
  const rows = Array.from({ length: count }, (_, i) => {
    const cells = cellsOf(from + i)
    return COLUMNS.map((column) => cells[column] ?? '')
  })
  if (kind === 'xlsx') return Buffer.from(await writeXlsxSheet('products', [COLUMNS, ...rows]))
  return Buffer.from([COLUMNS, ...rows].map((cells) => cells.map((cell) => `"${cell}"`).join(';')).join('\r\n'))
}

function countCsv(file: Buffer): Promise<number> {
  return Promise.resolve(parse(file, { delimiter: ';' }).length - 1)
}

async function countXlsx(file: Buffer): Promise<number> {
  let rows = -1
  for await (const { values } of streamXlsxRows(file, { sheet: 0 })) if (values.length > 0) rows++
  return rows
}

async function openImporter(
  data: string,
): Promise<{ send(kind: Kind, file: Buffer): Promise<number>; stop(): Promise<void> }> {
  const { running, platform } = await openBenchCloud(data)
  const { tenant, key } = await benchAccount(running.database, platform)
  const storeId = await addStore(running.database, tenant, platform)
  return {
    async send(kind, file) {
      const form = new FormData()
      form.set('storeId', storeId)
      form.set('file', new File([new Uint8Array(file)], `products.${kind}`))
      const response = await running.cloud.app.request('/api/v1/importProducts', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: form,
      })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`importProducts answered ${response.status}: ${text.slice(0, 300)}`)
      const { imported, errorCount } = JSON.parse(text) as { imported: number; errorCount: number }
      if (errorCount > 0) throw new Error(`importProducts refused ${errorCount} rows: ${text.slice(0, 300)}`)
      return imported
    },
    stop: running.stop,
  }
}
