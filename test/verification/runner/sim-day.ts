import { existsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { makeDayShop } from '../simulation/day/day-shop.ts'
import { runDay, type DayResult } from '../simulation/day/run-day.ts'
import type { DayOptionsOfTills } from '../simulation/day/day-store.ts'
import { INVARIANTS } from '../simulation/virtual/core.ts'
import { prepareToSimulate } from './sim-worker.ts'

export interface ShowDayOptions {
  readonly seed: number
  readonly shoppers: number
  readonly hours: number
  readonly tills: DayOptionsOfTills
  readonly trace: boolean
  /** File for the result. */
  readonly json: string | undefined
}

/** Content of the JSON file (option `json`): the result of a store day. */
export interface DayRecord {
  kind: 'day'
  seed: number
  shoppers: number
  hours: number
  hash: string
  violations: { invariant: string; detail: string }[]
  unitsReleased: number
  unitsSold: number
  /** Of `unitsSold`: sold by tills. */
  unitsOfTills: number
  /** How often staff had to help, and how often an alarm for paid goods was the reason. */
  staffCalls: number
  needlessAlarms: number
  alarmsOfThieves: number
  decisions: number
  offlineDecisions: number
  /**
   * Number of offline decisions about receipts that were compared with the policy, and how many of these were stricter
   * than the policy.
   */
  offline: { compared: number; stricter: number }
  decisionMs: { p50: number; p99: number }
  journalRows: number
  steps: number
  cpuSeconds: number
  cpuMsPerShopper: number
}

const LAST_LINES = 60
const ALL_LINES = 5_000_000

/** Runs a day and prints the result. Resolves to true if no invariant failed. */
export async function showDay({ seed, shoppers, hours, tills, trace, json }: ShowDayOptions): Promise<boolean> {
  const { result, cpuSeconds } = await measureDay(
    { seed, shoppers, hours, tills, keepLines: trace ? ALL_LINES : LAST_LINES },
    (text) => process.stderr.write(process.stderr.isTTY ? `\r${text} ` : `${text}\n`),
  )
  if (process.stderr.isTTY) process.stderr.write('\n')
  const record = recordOf(result, hours, cpuSeconds)
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(record, null, 2)}\n`)
  if (trace || result.violations.length > 0) process.stdout.write(`${result.lines.join('\n')}\n`)
  process.stdout.write(asText(result, record))
  return result.violations.length === 0
}

/**
 * Runs a day and reports its progress to `say`. `cpuSeconds` covers all threads of this process after the creation of
 * the shop.
 */
export async function measureDay(
  options: { seed: number; shoppers: number; hours: number; tills?: DayOptionsOfTills; keepLines?: number },
  say: (text: string) => void,
): Promise<{ result: DayResult; cpuSeconds: number }> {
  prepareToSimulate()
  const shop = await makeDayShop(existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
  try {
    const began = process.cpuUsage()
    const used = () => {
      const { user, system } = process.cpuUsage(began)
      return (user + system) / 1e6
    }
    const result = await runDay(shop, {
      ...options,
      onProgress: ({ time, tally }) =>
        say(
          `${time}  ${tally.came} of ${options.shoppers} shoppers came, ${tally.left} left, ${tally.decisions} decisions, ${tally.alarms.size} alarms, ${used().toFixed(1)} s of CPU time`,
        ),
    })
    return { result, cpuSeconds: used() }
  } finally {
    shop.remove()
  }
}

/** Figures of a day for the report. */
export function recordOf(
  { seed, shoppers, hash, violations, unitsReleased, journalRows, steps, tally, offline }: DayResult,
  hours: number,
  cpuSeconds: number,
): DayRecord {
  const sorted = [...tally.decisionMs].sort((a, b) => a - b)
  const at = (share: number) =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 100) / 100
  return {
    kind: 'day',
    seed,
    shoppers,
    hours,
    hash,
    violations: violations.map(({ invariant, detail }) => ({ invariant, detail })),
    unitsReleased,
    unitsSold: tally.unitsSold,
    unitsOfTills: tally.unitsOfTills,
    staffCalls: tally.staffCalls,
    needlessAlarms: tally.needlessAlarms,
    alarmsOfThieves: tally.alarmsOfThieves,
    decisions: tally.decisions,
    offlineDecisions: tally.offline,
    offline,
    decisionMs: { p50: at(0.5), p99: at(0.99) },
    journalRows,
    steps,
    cpuSeconds: Math.round(cpuSeconds * 10) / 10,
    cpuMsPerShopper: Math.round((cpuSeconds * 10_000) / Math.max(1, shoppers)) / 10,
  }
}

function asText({ tally, violations }: DayResult, record: DayRecord): string {
  const rows: (readonly [string, string])[] = [
    [
      'shoppers',
      `${record.shoppers}: ${tally.bought} bought, ${tally.thieves} stole, ${tally.cancelled} changed their mind, ${tally.returned} brought it back`,
    ],
    [
      'units released',
      `${record.unitsReleased} of ${record.unitsSold - record.unitsOfTills} that shoppers paid for and carried out`,
    ],
    ...(record.unitsOfTills > 0
      ? ([['sold by tills', `${record.unitsOfTills} units, which shoppers carried out with their tags`]] as const)
      : []),
    [
      'alarms',
      `${record.alarmsOfThieves} of ${tally.unitsStolen} stolen units, ${record.needlessAlarms === 0 ? 'no paid one' : `and for ${record.needlessAlarms} shoppers who had paid`}`,
    ],
    [
      'staff',
      `${record.staffCalls} calls, ${Math.round((record.staffCalls * 1_000) / Math.max(1, record.shoppers))} per 1,000 shoppers`,
    ],
    [
      'decisions',
      `${record.decisions}, ${record.offlineDecisions} of them offline; ${tally.unanswered} were not answered`,
    ],
    [
      'CPU time of a decision',
      `p50 ${record.decisionMs.p50} ms, p99 ${record.decisionMs.p99} ms, of agent, cloud and simulation together`,
    ],
    [
      'offline by the rules',
      `${record.offline.compared} answers compared with the policy, ${record.offline.stricter} were stricter because a fact was unknown`,
    ],
    ['rows of the journals', String(record.journalRows)],
    ['CPU time', `${record.cpuSeconds} s of one core, ${record.cpuMsPerShopper} ms a shopper, ${record.steps} steps`],
    ['seed', `${record.seed}  ${record.hash}`],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  const verdict =
    violations.length === 0
      ? 'no violation'
      : violations
          .map((v) => `${v.invariant} (${INVARIANTS[v.invariant]}) at ${v.atMs / 1_000} s: ${v.detail}`)
          .join('\n')
  return `${rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`).join('\n')}\n${verdict}\n`
}
