import { CORES, startProgram } from './child.ts'
import type { Bench, Figure, Result, Sizes, Row } from './figure.ts'
import type { GateQuestion, GateRun } from './gate-program.ts'
import type { ReaderOptions } from './gate-reader.ts'
import { quantile } from './measure.ts'
import type { Memory } from './memory-of.ts'

const GATES = 4
const READS_PER_SECOND = 1_500
/** Targets. The agent must decide while a person walks through the gate, which takes less than a second. */
const P99_MS = 25
const RSS_MB = 200

const SIZES = {
  full: { items: 500_000, replayed: 20_000, warmUpMs: 1_000, forMs: 60_000 },
  quick: { items: 500_000, replayed: 20_000, warmUpMs: 1_000, forMs: 5_000 },
  smoke: { items: 20_000, replayed: 1_000, warmUpMs: 100, forMs: 500 },
} satisfies Sizes

/** Measures the delay of an alarm while the readers report all goods around the gates. */
export const gate: Figure = { sizes: SIZES, run }

async function run({ mode, folder, note }: Bench): Promise<Result> {
  const program = await startProgram('gate-program.js', CORES.server, [folder])
  const ask = <A>(question: GateQuestion) => program.request<A>(question)
  const { items, replayed: oldReads, warmUpMs, forMs } = SIZES[mode]
  // Each run uses different items.
  const [firstOfRuns, firstOfWarmUp] = [items * 0.02, items * 0.8]
  const reader: ReaderOptions = {
    gates: GATES,
    readsPerSecond: READS_PER_SECOND,
    stationary: 300,
    firstItem: 0,
    leavesEveryMs: 50,
    forMs,
  }
  const left = Math.ceil(forMs / reader.leavesEveryMs) + GATES
  try {
    note(`${items.toLocaleString('en')} items into the replica`)
    const loaded = await ask<{ ms: number }>({ ask: 'load', items })
    await ask<GateRun>({
      ask: 'run',
      reader: { ...reader, readsPerSecond: 0, forMs: warmUpMs, firstItem: firstOfWarmUp },
    })
    note('only tags that leave')
    const alone = await ask<GateRun>({ ask: 'run', reader: { ...reader, readsPerSecond: 0, firstItem: firstOfRuns } })
    note(`${GATES} gates with ${READS_PER_SECOND.toLocaleString('en')} reads a second each`)
    const busy = await ask<GateRun>({
      ask: 'run',
      reader: { ...reader, firstItem: firstOfRuns + GATES * reader.stationary + left },
    })
    const replayed = await ask<GateRun>({ ask: 'replay', reads: oldReads, items })
    const memory = await ask<Memory>({ ask: 'memory' })
    const [base, p99] = [quantile(alone.latencies, 0.5), quantile(busy.latencies, 0.99)]
    return {
      title: '10  An unpaid tag leaves: first read outside to the siren’s command',
      counts: `wall time from the reader’s thread to the command; one tag every ${reader.leavesEveryMs} ms`,
      rows: [
        rowOf('nothing else read, p50', base, base, alone),
        rowOf('nothing else read, p99', quantile(alone.latencies, 0.99), base, alone),
        rowOf(`${GATES} × ${READS_PER_SECOND} reads/s, p50`, quantile(busy.latencies, 0.5), base, busy),
        rowOf(`${GATES} × ${READS_PER_SECOND} reads/s, p99`, p99, base, busy),
      ],
      targets: [
        {
          text: `p99 under load, ms: at most ${P99_MS}`,
          measured: p99 / 1_000,
          limit: P99_MS,
          met: p99 / 1_000 <= P99_MS,
        },
        {
          text: `memory of the program with ${items.toLocaleString('en')} items, MB: below ${RSS_MB}`,
          measured: memory.rss,
          limit: RSS_MB,
          met: memory.rss < RSS_MB,
        },
        {
          text: `alarms of ${oldReads.toLocaleString('en')} reads that were over 2 s old: none`,
          measured: replayed.alarms,
          limit: 0,
          met: replayed.alarms === 0 && replayed.reads === oldReads,
        },
        {
          text: 'tags that left without an alarm: none',
          measured: left - GATES - busy.latencies.length,
          limit: 0,
          met: busy.latencies.length >= left - GATES - 1,
        },
      ],
      notes: [
        `the replica was filled in ${(loaded.ms / 1_000).toFixed(1)} s; peak memory ${memory.peak.toFixed(0)} MB, including the thread of the readers`,
      ],
    }
  } finally {
    await program.stop()
  }
}

function rowOf(name: string, microseconds: number, base: number, { latencies, reads }: GateRun): Row {
  const ratios = latencies.map((latency) => latency / base)
  return {
    name,
    microseconds,
    perSecond: 1e6 / microseconds,
    ratio: microseconds / base,
    quartiles: [quantile(ratios, 0.25), quantile(ratios, 0.75)],
    also: { tags: latencies.length, reads },
  }
}
