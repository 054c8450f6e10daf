import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { benchAccount, openBenchCloud } from '../bench-cloud.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result, type Target } from '../figure.ts'
import { cpuTime, takeTurns, type Contender, type Samples } from '../measure.ts'
import { fillSales } from './fill-sales.ts'

const SIZES = [10_000, 1_000_000] as const
const QUICK_SIZES = [1_000, 20_000] as const
/** Most that the most sales may cost over the fewest. */
const LIMIT = 1.5

const PERIODS = ['daily', 'weekly', 'monthly'] as const

/** Whether a store's report is slower when a hundred times as much was sold: the report of the whole year. */
export const analyticsRead: Figure = { name: 'analytics-read', run }

async function run({ quick, folder, random, note }: Bench): Promise<Result> {
  const sizes = quick ? QUICK_SIZES : SIZES
  const [calls, rounds] = quick ? [20, 7] : [60, 15]
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
        samples: await takeTurns(contenders, rounds, random, 3),
        base: nameFor(period, sizes[0]),
        most: nameFor(period, sizes[1]),
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
