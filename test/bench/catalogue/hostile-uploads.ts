import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { crc32, deflateSync } from 'node:zlib'
import { COLUMNS } from '../../../cloud/shop/catalogue/import/sheet.ts'
import { writeXlsxSheet } from '../../../cloud/shop/catalogue/import/xlsx-sheet.ts'
import { benchAccount, openBenchCloud } from '../bench-cloud.ts'
import { rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { median, samplesOf, takeTurns, type Contender } from '../measure.ts'
import { addStore } from './fill-store.ts'
import { hostileFiles } from './hostile-files.ts'
import { benchProduct } from './products.ts'

const SIZES = {
  full: { megabytes: 100, rounds: 5 },
  quick: { megabytes: 100, rounds: 2 },
  smoke: { megabytes: 5, rounds: 1 },
} satisfies Sizes

/** Longest time without an answer that callers do not notice, ms. */
const AIM_MS = 200
const BOUNDARY = '-'.repeat(24) + 'hostile'
const IDLE = 'no upload'
/** Takes the whole time limit of an upload, 30 s. */
const LEFT_OUT = 'empty rows to the last column'

/** Measures how long uploads of large and hostile files block the event loop of the cloud. */
export const hostileUploads: Figure = { sizes: SIZES, run }

interface Upload {
  readonly operation: string
  readonly type: string
  readonly body: Buffer
}

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { megabytes, rounds } = SIZES[mode]
  const { running, platform } = await openBenchCloud(join(folder, 'cloud'))
  try {
    const { tenant, key } = await benchAccount(running.database, platform)
    const storeId = await addStore(running.database, tenant, platform)
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const product = { method: 'POST', headers, body: JSON.stringify({ storeId, ...benchProduct(1) }) }
    const inserted = await running.cloud.app.request('/api/v1/insertProduct', product)
    const { productId } = (await inserted.json()) as { productId: string }
    const uploads = await uploadsOf({ storeId, productId }, megabytes < SIZES.full.megabytes)
    const send = async ({ operation, type, body }: Upload) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': type }
      const request = { method: 'POST', headers, body: body as Buffer<ArrayBuffer> }
      const answer = await running.cloud.app.request(`/api/v1/${operation}`, request)
      const text = await answer.text()
      if (answer.status >= 500) throw new Error(`${operation} answered ${answer.status}: ${text.slice(0, 300)}`)
      return `${answer.status} ${text.slice(0, 80)}`
    }
    const contender = (name: string, work: () => Promise<string>): Contender => ({
      name,
      async slice() {
        const delay = monitorEventLoopDelay({ resolution: 1 })
        delay.enable()
        const outcome = await work()
        await wait(20)
        delay.disable()
        note(`${name}: ${outcome}, ${(delay.max / 1e6).toFixed(0)} ms`)
        return delay.max / 1_000
      },
    })
    const contenders = Object.entries(uploads).map(([name, upload]) => contender(name, () => send(upload)))
    const idle = contender(IDLE, () => wait(500, 'idle'))
    const samples = await takeTurns([idle, ...contenders], rounds, random)
    const worst = Math.max(...contenders.map(({ name }) => median(samplesOf(samples, name)) / 1_000))
    return {
      title: '9b  Longest block of the event loop while an upload is read',
      counts:
        'longest time between two turns of the event loop of the cloud, median of the rounds; other processes count',
      rows: rowsOf(samples, IDLE),
      targets: [{ text: `at most ${AIM_MS} ms`, measured: worst, limit: AIM_MS, met: worst <= AIM_MS }],
      notes: [],
    }
  } finally {
    await running.stop()
  }
}

async function uploadsOf(
  { storeId, productId }: { storeId: string; productId: string },
  short: boolean,
): Promise<Record<string, Upload>> {
  const rows = Array.from({ length: short ? 100 : 10_000 }, (_, i) => [4_000_000_000_000 + i, `Produkt ${i}`, 1.99, 7])
  const cells = [COLUMNS.slice(0, 4), ...rows]
  const files: Record<string, Buffer> = {
    '10,000 products, .xlsx': Buffer.from(await writeXlsxSheet('1', cells)),
    '10,000 products, .csv': Buffer.from(cells.join('\r\n')),
  }
  for (const [name, make] of Object.entries(hostileFiles({ short }))) if (name !== LEFT_OUT) files[name] = make()
  const pixels = short ? 1_000_000 : 40_000_000
  const uploads = Object.entries(files).map(([name, file]) => [name, form('importProducts', { storeId }, 'file', file)])
  const picture = form('uploadImageToProduct', { productId }, 'snapshot', pngOf(1, pixels))
  const parts = '--X\r\nContent-Disposition: form-data; name="x"\r\n\r\n\r\n'.repeat(short ? 1_000 : 380_000)
  return {
    ...(Object.fromEntries(uploads) as Record<string, Upload>),
    'a picture of one column': picture,
    '380,000 parts': {
      operation: 'importProducts',
      type: 'multipart/form-data; xboundary=zzz; boundary=X',
      body: Buffer.from(`${parts}--X--\r\n`),
    },
  }
}

function form(operation: string, fields: Record<string, string>, name: string, file: Buffer): Upload {
  const texts = Object.entries({ ...(operation === 'importProducts' && { dryRun: 'true' }), ...fields })
  const head = texts.map(
    ([key, text]) => `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${key}"\r\n\r\n${text}\r\n`,
  )
  const start = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"; filename="f"\r\n\r\n`
  const body = Buffer.concat([Buffer.from(head.join('') + start), file, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)])
  return { operation, type: `multipart/form-data; boundary=${BOUNDARY}`, body }
}

/** A black picture. */
function pngOf(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    const named = Buffer.concat([Buffer.from(type), data])
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(named))
    return Buffer.concat([length, named, sum])
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width)
  head.writeUInt32BE(height, 4)
  head[8] = 8
  const rows = deflateSync(Buffer.alloc(height * (width + 1)), { level: 9 })
  const magic = Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1')
  return Buffer.concat([magic, chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))])
}
