import type { AuthorizeAnswer } from '../decisions/request.ts'
import type { GateCounts } from '../lanes/gate/gate-lane.ts'
import { REGISTRATION_FAULTS } from './registration.ts'
import type { AgentStatus } from './agent-status.ts'

/** Counters since the start. */
export interface Counters {
  granted: number
  denied: number
  confirmed: number
  failed: number
  unknown: number
  /** People counted in and out, by device. */
  readonly people: Map<string, { in: number; out: number }>
}

/** Creates counters at zero. */
export function newCounters(): Counters {
  return { granted: 0, denied: 0, confirmed: 0, failed: 0, unknown: 0, people: new Map() }
}

/** Counts a decision and its outcome. */
export function countAnswer(counters: Counters, { authorized, outcome }: AuthorizeAnswer): void {
  counters[authorized ? 'granted' : 'denied']++
  if (outcome) counters[outcome]++
}

/** Counts a person who passed. Returns the new count of this direction. */
export function countPerson({ people }: Counters, deviceId: string, direction: 'in' | 'out'): number {
  const count = people.get(deviceId) ?? { in: 0, out: 0 }
  people.set(deviceId, count)
  return ++count[direction]
}

const STATES = ['absent', 'opening', 'identifying', 'ready', 'degraded', 'stopped', ...REGISTRATION_FAULTS] as const

/** Returns the metrics in the text format of Prometheus. */
export function metricsText(
  status: AgentStatus,
  counters: Counters,
  gates: ReadonlyMap<string, GateCounts>,
  lostLogLines: number,
  waitingNotices: number,
): string {
  const lines: string[] = []
  const metric = (name: string, type: 'gauge' | 'counter', help: string, values: [labels: string, value: number][]) => {
    lines.push(`# HELP untag_${name} ${help}`, `# TYPE untag_${name} ${type}`)
    for (const [labels, value] of values) lines.push(`untag_${name}${labels} ${value}`)
  }
  metric('online', 'gauge', '1 if the cloud is online.', [['', Number(status.online)]])
  metric('queue_depth', 'gauge', 'Journal rows that wait for the cloud.', [['', status.queueDepth]])
  metric('release_notices_waiting', 'gauge', 'Release notices that other agents of the store have not acknowledged.', [
    ['', waitingNotices],
  ])
  metric('healthy', 'gauge', '1 if ledger and clock are trusted.', [['', Number(status.fault === null)]])
  metric('emergency', 'gauge', '1 if an emergency input is active.', [['', Number(status.emergency !== null)]])
  metric('log_lines_lost_total', 'counter', 'Log lines dropped because their reader was too slow.', [
    ['', lostLogLines],
  ])
  metric('decisions_total', 'counter', 'Requests decided.', [
    ['{result="granted"}', counters.granted],
    ['{result="denied"}', counters.denied],
  ])
  metric('outcomes_total', 'counter', 'Actuations by outcome.', [
    ['{outcome="confirmed"}', counters.confirmed],
    ['{outcome="failed"}', counters.failed],
    ['{outcome="unknown"}', counters.unknown],
  ])
  const kinds = ['reads', 'late', 'entering', 'passed', 'alarms'] as const
  metric(
    'gate_total',
    'counter',
    'Reads at each gate, those too late to alarm, and tags that entered, left and alarmed.',
    [...gates].flatMap(([deviceId, counts]) =>
      kinds.map((kind): [string, number] => [`{device="${label(deviceId)}",kind="${kind}"}`, counts[kind]]),
    ),
  )
  const ways = ['in', 'out'] as const
  metric(
    'people_total',
    'counter',
    'People counted in and out.',
    [...counters.people].flatMap(([deviceId, count]) =>
      ways.map((way): [string, number] => [`{device="${label(deviceId)}",direction="${way}"}`, count[way]]),
    ),
  )
  metric('items', 'gauge', 'Names of items in the replica.', [['', status.items.known]])
  metric('items_age_seconds', 'gauge', 'Seconds since the items were last complete; -1: never.', [
    ['', status.items.ageSeconds ?? -1],
  ])
  metric(
    'device_state',
    'gauge',
    'State of each device.',
    status.devices.flatMap((d) =>
      STATES.map((state): [string, number] => [
        `{device="${label(d.deviceId)}",state="${state}"}`,
        Number(d.state === state),
      ]),
    ),
  )
  return `${lines.join('\n')}\n`
}

function label(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
