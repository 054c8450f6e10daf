import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { benchAccount, openBenchCloud } from '../bench-cloud.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result, type Sizes, type Target } from '../figure.ts'
import { cpuTime, takeTurns, type Contender, type Samples } from '../measure.ts'
import { fillSales } from './fill-sales.ts'

/** Maximum ratio of the cost with the most sales to the cost with the fewest. */
const LIMIT = 1.5

const PERIODS = ['daily', 'weekly', 'monthly'] as const

const SIZES = {
  full: { purchases: [10_000, 1_000_000], calls: 60, rounds: 15, warmUps: 3 },
  quick: { purchases: [1_000, 20_000], calls: 20, rounds: 7, warmUps: 3 },
  smoke: { purchases: [10, 20], calls: 2, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Measures whether the report of a whole year is slower after a hundred times as many sales. */
export const analyticsRead: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { purchases: sizes, calls, rounds, warmUps } = SIZES[mode]
  const clouds: Filled[] = []
  try {
    for (const size of sizes) clouds.push(await openFilled(join(folder, String(size)), size, note))
    const nameFor = (period: string, size: number) => `${period}, ${size.toLocaleString('en')} purchases`
    const measured: { samples: Samples; base: string; most: string }[] = []
    for (const period of PERIODS) {
      const contenders: Contender[] = clouds.map((cloud) => ({
        name: nameFor(period, cloud.size),
        slice: () =>
          cpuTime(calls, async () => {
            for (let i = 0; i < calls; i++) await cloud.read(period)
          }),
      }))
      measured.push({
        samples: await takeTurns(contenders, rounds, random, warmUps),
        base: nameFor(period, Math.min(...sizes)),
        most: nameFor(period, Math.max(...sizes)),
      })
    }
    const targets: Target[] = measured.map(({ samples, base, most }) => costsAtMost(samples, most, base, LIMIT))
    return {
      title: `12 fetchAnalytics of a whole year after ${sizes.map((size) => size.toLocaleString('en')).join(' and ')} purchases (SQLite)`,
      counts: 'CPU time of the process, all threads, per call without a socket',
      rows: measured.flatMap(({ samples, base }) => rowsOf(samples, base)),
      targets,
      notes: [],
    }
  } finally {
    for (const cloud of clouds) await cloud.stop()
  }
}

interface Filled {
  size: number
  read(period: string): Promise<void>
  stop(): Promise<void>
}

async function openFilled(data: string, size: number, note: (text: string) => void): Promise<Filled> {
  const { running, platform } = await openBenchCloud(data)
  const { tenant, key } = await benchAccount(running.database, platform)
  const { storeId, from, to } = await fillSales(running.database, tenant, size, platform, (done) =>
    note(`${done.toLocaleString('en')} of ${size.toLocaleString('en')} purchases are in`),
  )
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return {
    size,
    async read(period) {
      const response = await running.cloud.app.request('/api/v1/fetchAnalytics', {
        method: 'POST',
        headers,
        body: JSON.stringify({ storeId, from, to, period }),
      })
      const text = await response.text()
      if (response.status !== 200 || !text.includes('revenue'))
        throw new Error(`fetchAnalytics answered ${response.status}: ${text.slice(0, 300)}`)
    },
    async stop() {
      await running.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}
