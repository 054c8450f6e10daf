import { join } from 'node:path'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { realPlatform } from '../../../host/platform.ts'
import { pause } from '../../../policy/platform.ts'
import { eventually } from '../../verification/kills/store-processes.ts'
import type { Bench, Figure, Result, Sizes, Target } from '../figure.ts'
import { quantile } from '../measure.ts'
import { withLoopbackStore, type LoopbackStore } from './loopback-store.ts'
import { openTill, saleOf } from './reporting-till.ts'
import { waitRows } from './waits.ts'

/** p95 from the scan of a code to the command of the barrier, ms. */
const P95_MS = 300
const READY_MS = 60_000
const LONGEST_MS = 10_000
/** Coil of the barrier. */
const BARRIER = 0

const SIZES = {
  full: { codes: 50, betweenMs: 200 },
  quick: { codes: 50, betweenMs: 200 },
  smoke: { codes: 2, betweenMs: 100 },
} satisfies Sizes

/** Measures the time from the scan of a code that a till printed to the command of the barrier, with and without cloud. */
export const codeToBarrier: Figure = { sizes: SIZES, run }

async function run({ mode, folder, note }: Bench): Promise<Result> {
  const { codes, betweenMs } = SIZES[mode]
  const platform = realPlatform()
  let opened = () => {}
  const board = new RelayBoard({
    platform,
    locks: [{ coil: BARRIER, input: BARRIER, openMs: 30, closeMs: 30 }],
    onChange: ({ coil, on }) => void (coil === BARRIER && on && opened()),
  })
  /** Scans a code. Returns the time until the barrier gets its command, ms. */
  const scan = async ({ scanners }: LoopbackStore, code: string): Promise<number> => {
    const isOpen = new Promise<number>((resolve, reject) => {
      const cancel = platform.timers.after(LONGEST_MS, () => reject(new Error(`the barrier stays closed for ${code}`)))
      opened = () => {
        cancel()
        resolve(platform.clock.elapsed())
      }
    })
    const from = platform.clock.elapsed()
    await scanners.gate.scan(code)
    const waited = (await isOpen) - from
    // The next shopper comes when the barrier is closed.
    while (board.coils[BARRIER]) await pause(platform.timers, betweenMs)
    await pause(platform.timers, betweenMs)
    return waited
  }
  const work = async (store: LoopbackStore) => {
    const { api, storeId, wire } = store
    const till = await openTill(store, String(store.agent.ready['url']), join(store.folder, 'edge'))
    const newCodes = () =>
      Array.from({ length: codes }, () => Buffer.from(platform.random.bytes(8)).toString('hex').toUpperCase())
    note(`${codes} codes with the cloud, ${codes} without`)
    const known = newCodes()
    const sales = known.map((code, i) => saleOf(`C-${i}`, { code }))
    await api.call('recordSales', { storeId, sales })
    const online: number[] = []
    for (const code of known) online.push(await scan(store, code))
    wire.cut()
    await eventually('the agent without the cloud', async () => (await store.status())['online'] === false, READY_MS)
    const offline: number[] = []
    for (const code of newCodes()) {
      await till.sell({ code })
      offline.push(await scan(store, code))
    }
    return resultOf(online, offline)
  }
  return withLoopbackStore(folder, work, board)
}

function resultOf(online: readonly number[], offline: readonly number[]): Result {
  const base = quantile(offline, 0.5)
  return {
    title: 'The code of a till opens a barrier',
    counts: 'wall time from the scan to the command at a simulated Modbus TCP board; agent and cloud on one machine',
    rows: [...waitRows('without the cloud', offline, base), ...waitRows('with the cloud', online, base)],
    targets: [targetOf('with the cloud', online), targetOf('without the cloud', offline)],
    notes: [
      `${online.length} codes each; with the cloud, only the cloud knows the sale and the agent asks for its receipt`,
    ],
  }
}

function targetOf(name: string, waits: readonly number[]): Target {
  const measured = quantile(waits, 0.95)
  return { text: `${name}: p95, ms: at most ${P95_MS}`, measured, limit: P95_MS, met: measured <= P95_MS }
}
