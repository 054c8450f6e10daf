import { join } from 'node:path'
import { benchAccount, openBenchCloud } from '../bench-cloud.ts'
import { CORES, startProgram } from '../child.ts'
import type { PreparedAccount } from '../cloud-program.ts'
import type { Bench, Figure, Result, Sizes, Row } from '../figure.ts'
import { withPrograms } from '../http-contender.ts'
import type { Memory } from '../memory-of.ts'
import { fillSales, LINES_EACH } from './fill-sales.ts'

/** Maximum ratio of the memory of the large export to that of the small one. */
const LIMIT = 1.2
const LOOK_MS = 20

const SIZES = {
  full: { lines: [10_000, 1_000_000] },
  quick: { lines: [2_000, 40_000] },
  smoke: { lines: [20, 40] },
} satisfies Sizes

/** Measures whether the cloud needs more memory to stream a hundred times as many sales. */
export const salesExport: Figure = { sizes: SIZES, run }

interface Exported {
  lines: number
  format: string
  bytes: number
  microseconds: number
  peakMb: number
}

async function run({ mode, folder, note }: Bench): Promise<Result> {
  const sizes = SIZES[mode].lines
  const exported: Exported[] = []
  for (const lines of sizes) {
    const data = join(folder, String(lines))
    const period = await fill(data, lines, note)
    // Each format runs in a separate process, so that memory figures do not mix.
    for (const format of ['json', 'csv']) exported.push(await exportAll(data, lines, format, period))
  }
  const [small, large] = sizes.map((lines) =>
    Math.max(...exported.filter((e) => e.lines === lines).map((e) => e.peakMb)),
  )
  const measured = (large ?? Number.NaN) / (small ?? Number.NaN)
  const base = exported[0]
  return {
    title: `13 exportSalesData of ${sizes.map((lines) => lines.toLocaleString('en')).join(' and ')} lines (SQLite)`,
    counts: 'wall time at the client per line; peak memory of the process during the response',
    rows: exported.map((e): Row => {
      const [cost, against] = [e.microseconds / e.lines, (base?.microseconds ?? 0) / (base?.lines ?? 1)]
      const ratio = cost / against
      return {
        name: `${e.format}, ${e.lines.toLocaleString('en')} lines`,
        microseconds: cost,
        perSecond: 1e6 / cost,
        ratio,
        quartiles: [ratio, ratio],
        also: { MB: e.bytes / 1e6, 'RSS MB': e.peakMb },
      }
    }),
    targets: [
      {
        text: `the large export needs at most ${LIMIT} × the memory of the small one`,
        measured,
        limit: LIMIT,
        met: measured <= LIMIT,
      },
    ],
    notes: [],
  }
}

async function fill(
  data: string,
  lines: number,
  note: (text: string) => void,
): Promise<{ storeId: string; from: string; to: string }> {
  const { running, platform } = await openBenchCloud(data)
  const { tenant } = await benchAccount(running.database, platform)
  const purchases = lines / LINES_EACH
  const period = await fillSales(running.database, tenant, purchases, platform, (done) =>
    note(`${done.toLocaleString('en')} of ${purchases.toLocaleString('en')} purchases are in`),
  )
  await running.stop()
  return period
}

async function exportAll(data: string, lines: number, format: string, period: object): Promise<Exported> {
  return withPrograms(async (keep) => {
    const server = await keep(startProgram('cloud-program.js', CORES.server, [data]))
    const { port, base, authorization } = await server.request<PreparedAccount>({ kind: 'account' })
    const from = performance.now()
    const response = await fetch(`http://127.0.0.1:${port}${base}/exportSalesData`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ ...period, format }),
    })
    if (response.status !== 200 || !response.body)
      throw new Error(`exportSalesData answered ${response.status}: ${await response.text()}`)
    let [bytes, peakMb, looked] = [0, 0, 0]
    for await (const chunk of response.body) {
      bytes += chunk.length
      if (performance.now() - looked < LOOK_MS) continue
      peakMb = Math.max(peakMb, (await server.request<Memory>({ kind: 'memory' })).rss)
      looked = performance.now()
    }
    return { lines, format, bytes, microseconds: (performance.now() - from) * 1_000, peakMb }
  })
}
