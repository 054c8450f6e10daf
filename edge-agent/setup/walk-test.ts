import { printable } from '../../policy/printable.ts'
import type { ConfiguredDevice } from '../health/agent-status.ts'

/** Kinds of test tags: the gate must alarm for `unpaid` ones, and stay silent for `paid` ones. */
export type TestTagKind = 'unpaid' | 'paid'

/** One walk of a walk test. */
export interface Walk {
  /** How the tag was carried, such as `hip, flat`. */
  readonly position: string
  readonly kind: TestTagKind
  readonly tag: string
  /** Number of reads of the tag. */
  readonly reads: number
  /** True if the gate saw that the tag left. */
  readonly hasLeft: boolean
  /** True if the gate alarmed for the tag, with siren or lamp. */
  readonly hasAlarmed: boolean
  /** Why the gate alarmed or not. Null if it did not see the tag leave. */
  readonly reason: string | null
}

/** Detected walks of one position. */
interface PositionResult {
  readonly position: string
  readonly walks: number
  readonly detected: number
}

interface WalkTestResult {
  /** Share of all walks in which the gate saw the tag leave, %. */
  readonly detectionPercent: number
  readonly unpaid: { readonly walks: number; readonly alarmed: number }
  readonly paid: { readonly walks: number; readonly detected: number; readonly alarmed: number }
  readonly positions: readonly PositionResult[]
  /** Why the gate did not pass. Empty if it passed. */
  readonly faults: readonly string[]
}

/** Why a gate cannot be tested. Undefined if it can. */
export function gateFault({ state, detail, findings }: Pick<ConfiguredDevice, 'state' | 'detail' | 'findings'>) {
  const blind = findings.find(({ code }) => code === 'no_tag_reader')
  if (blind) return blind.detail
  return state === 'ready' ? undefined : `the gate is ${state}, not ready: ${detail}`
}

/** Computes the result of a walk test. `minPercent`: detection rate that the gate must reach. */
export function walkTestResult(walks: readonly Walk[], minPercent: number): WalkTestResult {
  const unpaid = walks.filter(({ kind }) => kind === 'unpaid')
  const paid = walks.filter(({ kind }) => kind === 'paid')
  const left = (of: readonly Walk[]) => of.filter(({ hasLeft }) => hasLeft).length
  const alarmed = (of: readonly Walk[]) => of.filter(({ hasAlarmed }) => hasAlarmed).length
  const detectionPercent = walks.length === 0 ? 0 : Math.floor((100 * left(walks)) / walks.length)
  const silent = unpaid.filter(({ hasLeft, hasAlarmed }) => hasLeft && !hasAlarmed)
  const faults = [
    detectionPercent < minPercent &&
      `the gate detected ${left(walks)} of ${walks.length} walks (${detectionPercent} %), but ${minPercent} % are needed: turn the antennas, or raise transmitPowerDbm`,
    unpaid.length === 0 && 'no unpaid tag was carried through the gate: name one with --unpaid',
    silent.length > 0 &&
      `the gate stayed silent for ${silent.length} unpaid tags that it saw leave (${[...new Set(silent.map(({ reason }) => reason))].join(', ')})`,
    paid.length === 0 && 'no paid tag was carried through the gate: name one with --paid',
    paid.length > 0 && left(paid) === 0 && 'the gate detected no paid tag, so its silence proves nothing',
    alarmed(paid) > 0 && `the gate alarmed for ${alarmed(paid)} paid tags`,
  ].filter((fault) => fault !== false)
  return {
    detectionPercent,
    unpaid: { walks: unpaid.length, alarmed: alarmed(unpaid) },
    paid: { walks: paid.length, detected: left(paid), alarmed: alarmed(paid) },
    positions: [...new Set(walks.map(({ position }) => position))].map((position) => {
      const here = walks.filter((walk) => walk.position === position)
      return { position, walks: here.length, detected: left(here) }
    }),
    faults,
  }
}

/** Everything that a commissioning report of a gate states. */
export interface CommissioningReport {
  /** ISO 8601, UTC. */
  readonly testedAt: string
  readonly operator: string
  readonly gate: {
    readonly deviceId: string
    readonly name: string | null
    readonly driver: string
    readonly reader: string
    readonly firmware: string
    readonly serialNumber: string
  }
  readonly store: string
  readonly agentId: string
  readonly release: string
  readonly policyVersion: number | null
  /** Settings of the reader from the configuration file, without secrets. Empty if the file was not named. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly minPercent: number
  readonly result: WalkTestResult
  readonly walks: readonly Walk[]
}

type Row = readonly [string, string]

function rowsOf(report: CommissioningReport): Row[] {
  const { gate, result } = report
  const { unpaid, paid } = result
  return [
    ['Result', result.faults.length === 0 ? 'PASSED' : 'NOT PASSED'],
    ...result.faults.map((fault): Row => ['Fault', fault]),
    ['Tested', `${report.testedAt} by ${report.operator}`],
    ['Gate', `${gate.name ?? gate.deviceId} (${gate.deviceId}) in ${report.store}`],
    ['Reader', `${gate.reader}, driver ${gate.driver}, firmware ${gate.firmware}, serial number ${gate.serialNumber}`],
    ['Agent', `${report.agentId}, release ${report.release}, policy ${report.policyVersion ?? 'none'}`],
    ['Settings', Object.keys(report.settings).length === 0 ? 'not stated' : JSON.stringify(report.settings)],
    ['Detection', `${result.detectionPercent} % of all walks (needed: ${report.minPercent} %)`],
    ['Unpaid tags', `the gate alarmed in ${unpaid.alarmed} of ${unpaid.walks} walks`],
    ['Paid tags', `the gate saw ${paid.detected} of ${paid.walks} walks, and alarmed in ${paid.alarmed}`],
    ...result.positions.map((at): Row => [`Carried: ${at.position}`, `${at.detected} of ${at.walks} walks detected`]),
  ]
}

/** The report as lines of text. What the reader says of itself cannot add a line. */
export function reportLines(report: CommissioningReport): string[] {
  const rows = rowsOf(report)
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    'Commissioning report of a gate',
    '',
    ...rows.map(([name, value]) => printable(`${name.padEnd(width)}  ${value}`)),
  ]
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string) => text.replaceAll(/[&<>"]/g, (sign) => ESCAPES[sign] ?? sign)
const tableRow = (cells: readonly string[]) => `<tr>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`

/** The report as a page to print and sign. */
export function reportHtml(report: CommissioningReport): string {
  const walks = report.walks.map((walk, index) => [
    String(index + 1),
    walk.position,
    walk.kind,
    walk.tag,
    String(walk.reads),
    walk.hasLeft ? 'yes' : 'no',
    walk.hasAlarmed ? 'yes' : 'no',
    walk.reason ?? '',
  ])
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Commissioning report of a gate</title>
<style>:root{color-scheme:light dark}body{font:15px/1.5 sans-serif;margin:2em auto;max-width:60em}table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #888;padding:.25em .6em;text-align:left;vertical-align:top;overflow-wrap:anywhere}</style>
<h1>Commissioning report of a gate</h1>
<table>${rowsOf(report).map(tableRow).join('\n')}</table>
<h2>Walks</h2>
<table><tr>${['', 'carried', 'kind', 'tag', 'reads', 'left', 'alarm', 'reason'].map((name) => `<th>${name}</th>`).join('')}</tr>
${walks.map(tableRow).join('\n')}</table>
<p>Siren heard and lamp seen: ______________________ Signature: ______________________</p>
</html>
`
}
