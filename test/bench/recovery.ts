import { checkDevices } from '../../device-drivers/kit/check-devices.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import type { Platform } from '../../policy/platform.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import { mqttBroker } from '../../simulators/devices/mqtt-broker.ts'
import { PcscdSimulator } from '../../simulators/devices/pcsc.ts'
import { ZebraReader } from '../../simulators/devices/zebra-iotc.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import type { Bench, Figure, Result, Sizes, Row } from './figure.ts'
import { median, quantile } from './measure.ts'

const READER = 'Bench reader 00 00'

interface Thing {
  readonly name: string
  readonly entry: Record<string, unknown>
  /** Simulates the device at the other end of a link. */
  serve(platform: Platform): (link: ByteLink) => Promise<void>
}

const THINGS: readonly Thing[] = [
  {
    name: 'LLRP reader',
    entry: { driver: 'llrp', link: { tcp: '10.0.0.7:5084' } },
    serve: (platform) => llrpReader({ platform }).serve,
  },
  {
    name: 'pcscd',
    entry: { driver: 'pcsc', link: { pcsc: 'bench' } },
    serve(platform) {
      const pcscd = new PcscdSimulator({ platform })
      pcscd.plug(READER)
      return pcscd.serve
    },
  },
  {
    name: 'broker',
    entry: { driver: 'zebra-iotc', link: { mqtt: '10.0.0.5' }, topics: 'zebra/FX9600F0F4B5' },
    serve(platform) {
      const broker = mqttBroker()
      void new ZebraReader({ platform, bus: broker })
      return broker.serve
    },
  },
]
const AWAY_S = [2, 30, 600]
/**
 * Targets. A step is one connection attempt and the pause after it. The first attempt after the return of the device
 * must succeed.
 */
const MOST_STEPS = 1
const WITHIN_MS = 15_000
const LOOK_MS = 5

const SIZES = {
  full: { seeds: 100 },
  quick: { seeds: 10 },
  smoke: { seeds: 1 },
} satisfies Sizes

/**
 * Measures in virtual time how many steps the supervisor needs to connect a device that is reachable again. The speed
 * of the machine does not matter.
 */
export const recovery: Figure = { sizes: SIZES, run }

interface Recovery {
  /** Time from the return of the device to the state `ready`, ms. */
  readonly ms: number
  /** Length of the pause in which the device returned, ms. */
  readonly pauseMs: number
  /** Connection attempts after the return of the device. */
  readonly steps: number
}

async function recover({ entry, serve }: Thing, awayMs: number, seed: number): Promise<Recovery> {
  const world = virtualPlatform({ seed })
  const port = memoryPort((link) => void serve(world)(link))
  const tries: number[] = []
  const checked = checkDevices([{ deviceId: 'thing', ...entry }])
  if ('errors' in checked) throw new Error(checked.errors.join('\n'))
  const supervisor = supervise({
    devices: checked.devices,
    platform: world,
    openLink(_, signal) {
      tries.push(world.clock.elapsed())
      return port.open(signal)
    },
  })
  const isReady = () => supervisor.status('thing')?.state === 'ready'
  async function until(what: string, holds: () => boolean): Promise<void> {
    for (let waited = 0; !holds(); waited += LOOK_MS) {
      if (waited > 120_000)
        throw new Error(
          `${entry['driver'] as string} was not ${what} within two minutes: ${JSON.stringify(supervisor.statuses)}`,
        )
      await world.advance(LOOK_MS)
    }
  }
  await until('ready', isReady)
  // Waits until the supervisor has reset its retry delay.
  await world.advance(20_000)
  port.unplug()
  await until('missed', () => !isReady())
  await world.advance(awayMs)
  const backAt = world.clock.elapsed()
  port.plug()
  const before = tries.length
  await until('ready again', isReady)
  const ms = world.clock.elapsed() - backAt
  const pauseMs = (tries[before] ?? backAt) - (tries[before - 1] ?? backAt)
  await world.settle(supervisor.stop())
  return { ms, pauseMs, steps: tries.length - before }
}

async function run({ mode, note }: Bench): Promise<Result> {
  const rows: Row[] = []
  const all: Recovery[] = []
  for (const thing of THINGS) {
    for (const awayS of AWAY_S) {
      note(`${thing.name}, away for ${awayS} s`)
      const runs: Recovery[] = []
      for (let seed = 1; seed <= SIZES[mode].seeds; seed++) runs.push(await recover(thing, awayS * 1_000, seed))
      all.push(...runs)
      rows.push(rowOf(`${thing.name}, away for ${awayS} s`, runs))
    }
  }
  const steps = Math.max(...all.map((run) => run.steps))
  const slowest = Math.max(...all.map((run) => run.ms))
  return {
    title: 'Recovery after the return of a reader, pcscd or a broker, in steps of the supervisor',
    counts:
      'virtual time from the return to ready; ratio: relative to the pause between two attempts in which the device returned',
    rows,
    targets: [
      {
        text: `connection attempts after the return: at most ${MOST_STEPS}`,
        measured: steps,
        limit: MOST_STEPS,
        met: steps <= MOST_STEPS,
      },
      {
        text: `the slowest of ${all.length}, s: at most ${WITHIN_MS / 1_000}, the longest pause`,
        measured: slowest / 1_000,
        limit: WITHIN_MS / 1_000,
        met: slowest <= WITHIN_MS,
      },
    ],
    notes: [
      'the pauses grow from 0.25 s to 15 s with jitter, so a short failure ends soon; the same seeds give the same figures on every machine',
    ],
  }
}

function rowOf(name: string, runs: readonly Recovery[]): Row {
  const shares = runs.map(({ ms, pauseMs }) => ms / Math.max(LOOK_MS, pauseMs))
  const microseconds = median(runs.map(({ ms }) => ms)) * 1_000
  const also = {
    'tries, most': Math.max(...runs.map(({ steps }) => steps)),
    'p99 s':
      quantile(
        runs.map(({ ms }) => ms),
        0.99,
      ) / 1_000,
  }
  return {
    name,
    microseconds,
    perSecond: 1e6 / microseconds,
    ratio: median(shares),
    quartiles: [quantile(shares, 0.25), quantile(shares, 0.75)],
    also,
  }
}
