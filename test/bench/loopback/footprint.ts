import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { realPlatform } from '../../../host/platform.ts'
import { pause } from '../../../policy/platform.ts'
import { FigureUnavailable, type Bench, type Figure, type Result, type Row, type Sizes } from '../figure.ts'
import { eanOf, NODE_OPTIONS, registerItems, withLoopbackStore, type LoopbackStore } from './loopback-store.ts'
import { costsOf, type Costs } from './process-costs.ts'

/** A busy lane: shoppers in an hour, and tagged items of each. Each item is released once and carried out. */
const SHOPPERS_AN_HOUR = 120
const ITEMS_OF_SHOPPER = 3
const SHOPPER_EVERY_MS = 3_600_000 / SHOPPERS_AN_HOUR
/** Reads of each tag at the gate: half inside, half outside. */
const READS_OF_TAG = 16
const READ_EVERY_MS = 75
const BUSY_HOURS = 12

/**
 * SanDisk rates its High Endurance card of 32 GB at 2,500 hours of video at 26 Mbit/s, in large sequential writes:
 * 29 TB. The factor is an assumption: a card moves this many bytes in its flash for each byte of a small write.
 */
const CARD_BYTES = (2_500 * 3_600 * 26e6) / 8
const WRITE_AMPLIFICATION = 20
const CARD_YEARS = 10

const SIZES = {
  full: { settleMs: 300_000, forMs: 1_800_000 },
  quick: { settleMs: 20_000, forMs: 120_000 },
  smoke: { settleMs: 0, forMs: 200 },
} satisfies Sizes

/** Measures memory, CPU time and disk writes of an idle and of a busy agent. */
export const footprint: Figure = { sizes: SIZES, run }

async function run(bench: Bench): Promise<Result> {
  if (!existsSync('/proc/self/io')) throw new FigureUnavailable('this system has no /proc/PID/io: use Linux')
  const { settleMs, forMs } = SIZES[bench.mode]
  const platform = realPlatform()
  return withLoopbackStore(bench.folder, async (store) => {
    const bare = await startBare(bench.folder)
    try {
      const shoppers = Math.max(1, Math.floor(forMs / SHOPPER_EVERY_MS))
      const epcs = await registerItems(store, shoppers * ITEMS_OF_SHOPPER, 1)
      const [agentPid = 0, barePid = 0] = [store.agent.child.pid, bare.child.pid]
      bench.note(`settles for ${settleMs / 1_000} s`)
      await pause(platform.timers, settleMs)
      const nothing = async () => {}
      const measure = (work: Record<'agent' | 'bare', () => Promise<void>>) =>
        Promise.all([costsOf(barePid, forMs, platform, work.bare), costsOf(agentPid, forMs, platform, work.agent)])
      bench.note(`idle for ${forMs / 1_000} s`)
      const idle = await measure({ agent: nothing, bare: nothing })
      bench.note(`busy for ${forMs / 1_000} s`)
      const busy = await measure({
        agent: () => atTheRate(shoppers, forMs, (n) => serveShopper(store, epcs, n)),
        bare: () => atTheRate(shoppers, forMs, () => sendAlike(bare.port)),
      })
      return resultOf(idle, busy)
    } finally {
      bare.child.disconnect()
    }
  })
}

async function startBare(folder: string): Promise<{ child: ChildProcess; port: number }> {
  const program = fileURLToPath(new URL('../peers/bare-agent.js', import.meta.url))
  const child = fork(program, [folder], { execArgv: [NODE_OPTIONS] })
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { child, port }
}

/** Serves `count` shoppers, one after the other, in equal distances over `forMs`. */
async function atTheRate(count: number, forMs: number, serve: (n: number) => Promise<void>): Promise<void> {
  const { clock, timers } = realPlatform()
  const startMs = clock.elapsed()
  for (let n = 0; n < count; n++) {
    await serve(n)
    await pause(timers, Math.max(0, startMs + ((n + 1) * forMs) / count - clock.elapsed()))
  }
}

/** One shopper pays for tagged items, has them detached one by one, and carries them out. */
async function serveShopper(store: LoopbackStore, epcs: readonly string[], n: number): Promise<void> {
  const carried = epcs.slice(n * ITEMS_OF_SHOPPER, (n + 1) * ITEMS_OF_SHOPPER)
  await store.buy([{ ean: eanOf(store), quantity: carried.length, epcs: carried }])
  const deviceId = store.devices.self_checkout_detacher
  for (const epc of carried) {
    const answer = await store.authorize({ deviceId, protectionAction: 'detach_hard_tag', epc })
    if (answer['authorized'] !== true) throw new Error(`the release of ${epc} failed: ${JSON.stringify(answer)}`)
  }
  const { timers } = realPlatform()
  for (let read = 0; read < READS_OF_TAG; read++) {
    for (const epc of carried) store.gate.see(epc, { antenna: read < READS_OF_TAG / 2 ? 1 : 2, rssiDbm: -52 })
    await pause(timers, READ_EVERY_MS)
  }
}

/** The same number of requests and passages to the bare program, in bodies of the size of a stored claim. */
async function sendAlike(port: number): Promise<void> {
  for (let i = 0; i < 2 * ITEMS_OF_SHOPPER; i++)
    await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x'.repeat(400) })
}

function resultOf([bareIdle, idle]: readonly Costs[], [bareBusy, busy]: readonly Costs[]): Result {
  if (!bareIdle || !idle || !bareBusy || !busy) throw new Error('a measurement is missing')
  const idleDay = perSecond(idle.writtenBytes, idle) * 86_400
  const busyDay = perSecond(busy.writtenBytes, busy) * 86_400
  const shopDay = (busyDay * BUSY_HOURS + idleDay * (24 - BUSY_HOURS)) / 24
  const years = (day: number) => CARD_BYTES / WRITE_AMPLIFICATION / Math.max(day, 1) / 365
  const measured = years(shopDay)
  return {
    title: '12  Footprint of an agent at a lane',
    counts: 'one op is one second of operation, µs are its CPU time; the rest is calculated for an hour and a day',
    rows: [
      rowOf('bare Node, idle', bareIdle, bareIdle),
      rowOf('agent, idle', idle, bareIdle),
      rowOf('bare Node, busy', bareBusy, bareBusy),
      rowOf('agent, busy', busy, bareBusy),
    ],
    targets: [
      {
        text: `years of a 32 GB card with ${BUSY_HOURS} busy hours a day: at least ${CARD_YEARS}`,
        measured,
        limit: CARD_YEARS,
        met: measured >= CARD_YEARS,
      },
    ],
    notes: [
      `busy: ${SHOPPERS_AN_HOUR} shoppers an hour with ${ITEMS_OF_SHOPPER} tags each, so ${SHOPPERS_AN_HOUR * ITEMS_OF_SHOPPER} releases and ${SHOPPERS_AN_HOUR * ITEMS_OF_SHOPPER * READS_OF_TAG} gate reads an hour; measured for ${busy.seconds.toFixed(0)} s`,
      `a day of the shop writes ${(shopDay / 1e6).toFixed(1)} MB; the card takes ${(CARD_BYTES / 1e12).toFixed(1)} TB in large writes, and we assume ${WRITE_AMPLIFICATION} × as much wear by small ones`,
      `share of the card a year: idle ${(100 / years(idleDay)).toFixed(2)} %, busy all day ${(100 / years(busyDay)).toFixed(2)} %`,
    ],
  }
}

function perSecond(value: number, { seconds }: Costs): number {
  return value / seconds
}

function rowOf(name: string, costs: Costs, base: Costs): Row {
  const microseconds = perSecond(costs.cpuSeconds, costs) * 1e6
  const ratio = microseconds / (perSecond(base.cpuSeconds, base) * 1e6)
  return {
    name,
    microseconds,
    perSecond: 1e6 / microseconds,
    ratio,
    quartiles: [ratio, ratio],
    also: {
      'RSS MB': costs.rssMb,
      'RSS ratio': costs.rssMb / base.rssMb,
      'max MB': costs.peakMb,
      'CPU s/h': perSecond(costs.cpuSeconds, costs) * 3_600,
      'MB/day': (perSecond(costs.writtenBytes, costs) * 86_400) / 1e6,
    },
  }
}
