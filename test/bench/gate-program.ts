import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { realPlatform } from '../../host/platform.ts'
import { openItemFile } from '../../edge-agent/items/item-file.ts'
import { Replica } from '../../edge-agent/items/replica.ts'
import { openDeviceJournal } from '../../edge-agent/devices/device-journal.ts'
import { Gates } from '../../edge-agent/lanes/gate/gates.ts'
import { openLedger } from '../../edge-agent/ledger/ledger.ts'
import { GatePolicy, DEFAULT_POLICY } from '../../policy/store-policy.ts'
import { answerBench } from './child.ts'
import { epcOf, type ReaderOptions, type ReaderReport } from './gate-reader.ts'
import { memoryOf, type Memory } from './memory-of.ts'
import { LEDGER } from './tokens.ts'

/**
 * Requests to a program with the gates of one agent. Replica, ledger and journal are on the disk. The simulated readers
 * run in another thread.
 */
export type GateQuestion =
  | { ask: 'load'; items: number }
  | { ask: 'run'; reader: ReaderOptions }
  | { ask: 'replay'; reads: number; items: number }
  | { ask: 'memory' }

export interface GateRun {
  /** Time from the report of the reader to the decision that switches the siren on, µs. One value per tag that left. */
  latencies: number[]
  reads: number
  alarms: number
}

const [folder = '.'] = process.argv.slice(2)
const platform = realPlatform()
const log = {
  info: () => undefined,
  warn: () => undefined,
  error: (fields: object) => process.stderr.write(`${JSON.stringify(fields)}\n`),
}
const ledger = openLedger({
  file: join(folder, 'ledger.db'),
  ...LEDGER,
  onFailure: (failure) => {
    throw failure
  },
})
const disk = openItemFile(join(folder, 'items.db'), (error) => {
  throw error
})
// Stores an empty list of stationary tags for each gate, because a gate without a stored list first learns which tags
// are stationary.
for (let gate = 0; gate < 64; gate++) disk.saveStationaryTags(`gate-${gate}`, [])
const replica = new Replica({ disk, platform, log })
const alarms = new Map<string, bigint>()
// Every item causes its own alarm, so that each decision is measured.
const policy = {
  ...DEFAULT_POLICY,
  gate: GatePolicy.parse({ bulk: { tags: 100, seconds: 1 }, replenishment: { tags: 0 } }),
}
const gates = new Gates({
  claimExit: () => Promise.resolve('refused'),
  onLeft: () => undefined,
  isSaleOver: () => false,
  platform,
  items: replica,
  memory: disk,
  journal: openDeviceJournal({
    platform,
    ledger,
    storeId: 'st_bench',
    nowMs: platform.clock.wall,
    isEmergency: () => false,
    log,
  }),
  pieces: { covers: () => false, hasPassed: () => false, end: () => undefined, settled: () => Promise.resolve() },
  nowMs: platform.clock.wall,
  policy: () => policy,
  isOnline: () => false,
  syncItems: () => Promise.resolve(),
  signal: () => undefined,
  sirenSecondsOf: () => 5,
  antennasOf: () => ({ inside: [1], outside: [2] }),
  onAlarm: (_gate, epc) => void alarms.set(epc, process.hrtime.bigint()),
  ledger,
  operatorName: () => undefined,
  onAwaited: () => undefined,
  onHandled: () => undefined,
  log,
})

const PAGE = 2_000

async function load(items: number): Promise<{ ms: number }> {
  const from = platform.clock.elapsed()
  for (let after = 0; after < items; after += PAGE) {
    const count = Math.min(PAGE, items - after)
    const entries = Array.from({ length: count }, (_, i) => ({
      seq: after + i + 1,
      status: 'sellable' as const,
      epc: epcOf(after + i),
      price: 4_990,
      category: (after + i) % 40,
      brand: (after + i) % 20,
    }))
    replica.applyPage({
      aud: 'st_bench',
      iat: 0,
      exp: 1,
      epoch: 0,
      ver: after + count,
      after,
      floor: 0,
      categories: Array.from({ length: 40 }, (_, n) => `Warengruppe ${n}`),
      brands: Array.from({ length: 20 }, (_, n) => `Marke ${n}`),
      entries,
    })
    await new Promise((resolve) => setImmediate(resolve))
  }
  replica.compareHead({ epoch: 0, ver: items, floor: 0 }, platform.clock.wall())
  return { ms: platform.clock.elapsed() - from }
}

function run(reader: ReaderOptions): Promise<GateRun> {
  const worker = new Worker(new URL('gate-reader.js', import.meta.url), { workerData: reader })
  const latencies: number[] = []
  const before = total()
  replica.compareHead({ epoch: 0, ver: replica.position()[1], floor: 0 }, platform.clock.wall())
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.on('message', (report: ReaderReport | 'done') => {
      if (report === 'done') {
        const after = total()
        void worker.terminate()
        return resolve({ latencies, reads: after.reads - before.reads, alarms: after.alarms - before.alarms })
      }
      const seenAtMs = platform.clock.elapsed()
      const name = `gate-${report.gate}`
      gates.onReads(
        name,
        name,
        report.reads.map((read) => ({ ...read, seenAtMs })),
      )
      const decided = report.leaving === undefined ? undefined : alarms.get(report.leaving)
      if (decided !== undefined) latencies.push(Number(decided - report.sentNs) / 1_000)
      alarms.clear()
    })
  })
}

/** Sends all buffered reads of a reconnected reader at once. */
function replay(reads: number, items: number): GateRun {
  const before = total()
  for (let i = 0; i < reads; i += 100) {
    const seenAtMs = platform.clock.elapsed() - 2_001 - i
    const report = Array.from({ length: 100 }, (_, n) => ({
      tag: { epc: epcOf((i + n) % items) },
      antenna: 1 + (n % 2),
      seenAtMs,
    }))
    gates.onReads('gate-0', 'gate-0', report)
  }
  const after = total()
  return { latencies: [], reads: after.reads - before.reads, alarms: after.alarms - before.alarms }
}

function total(): { reads: number; alarms: number } {
  const all = [...gates.counts().values()]
  return {
    reads: all.reduce((sum, gate) => sum + gate.reads, 0),
    alarms: all.reduce((sum, gate) => sum + gate.alarms, 0),
  }
}

function memory(): Memory {
  return memoryOf()
}

answerBench(
  async (question) => {
    const asked = question as GateQuestion
    if (asked.ask === 'load') return load(asked.items)
    if (asked.ask === 'run') return run(asked.reader)
    return asked.ask === 'replay' ? replay(asked.reads, asked.items) : memory()
  },
  async () => {
    await gates.stop()
    replica.close()
    ledger.close()
  },
)
