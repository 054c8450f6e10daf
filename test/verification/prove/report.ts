import { replaceMarked } from '../../../scripts/generate/contract-page.ts'
import type { Size } from './part.ts'
import type { PartResult } from './run-parts.ts'
import { sumOf, type StoredChunk, type Sum } from './state.ts'

/** Results of `npm run prove`, stored in test/verification/results.json. A continued run reads these results. */
export interface Report {
  /** Time of the report, ISO 8601. */
  at: string
  parts: SizedResult[]
}

/** Result of a part, with the size of the proof. */
export type SizedResult = PartResult & { size: Size }

/**
 * Selects the result to show for each part: the result with the most tests. If a result has violations, no older result
 * replaces it.
 */
export function furthest(reports: readonly [Report, ...Report[]]): Report {
  const sorted = reports.toSorted((a, b) => (a.at < b.at ? 1 : -1)) as [Report, ...Report[]]
  const furthestOf = (name: string) => {
    const runs = sorted
      .flatMap(({ parts }) => parts.filter((part) => part.name === name))
      .map((part) => ({ part, sum: sumOf(part) }))
    return runs.reduce((best, run) => (best.sum.violations.length === 0 && run.sum.done > best.sum.done ? run : best))
      .part
  }
  return { ...sorted[0], parts: sorted[0].parts.map(({ name }) => furthestOf(name)) }
}

/**
 * Formats test/verification/results.json with each part on one line. Omits build hashes, because they mean nothing on another
 * machine, and fractions of seconds below a tenth.
 */
export function reportText({ at, parts }: Report): string {
  const kept = ({ build: _build, ...found }: StoredChunk) => ({
    ...found,
    seconds: Math.round(found.seconds * 10) / 10,
  })
  const lines = parts.map((part) => {
    const chunks = Object.fromEntries(Object.entries(part.chunks).map(([n, found]) => [n, kept(found)]))
    return JSON.stringify({ ...part, chunks })
  })
  return `{"at":${JSON.stringify(at)},"parts":[\n${lines.join(',\n')}\n]}\n`
}

const number = (n: number) => Math.round(n).toLocaleString('en')

function time(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3_600).toFixed(1)} h`
}

/** Splits a name such as `virtualHours` at its capital letters. */
const splitCamelCase = (name: string) => name.replaceAll(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`)

function figuresOf({ of, unit }: PartResult, { done, figures }: Sum): string {
  const count = done === of ? `${number(done)} ${unit}` : `${number(done)} of ${number(of)} ${unit}`
  return [count, ...Object.entries(figures).map(([name, value]) => `${number(value)} ${splitCamelCase(name)}`)].join(
    ', ',
  )
}

function resultOf({ name, skipped, of }: PartResult, { violations, done }: Sum): string {
  if (skipped !== undefined) return `left out: ${skipped}`
  if (violations.length > 0) return `**${number(violations.length)} did not hold**`
  if (done === 0) return 'not run'
  const good = name === 'bugs' ? 'all found' : 'all held'
  return done === of ? good : `${good} so far, ${Math.floor((100 * done) / of)} %`
}

/** If a run continued after a code change, its results come from several commits. */
function commitsOf({ commits, done }: Sum): string {
  const all = Object.entries(commits)
  return all
    .map(([commit, count]) => (all.length > 1 ? `${commit} (${Math.round((100 * count) / done)} %)` : commit))
    .join(', ')
}

/** Table of all parts with figures and results. */
export function figuresTable({ at, parts }: Report): string {
  const summed = parts.map((part) => ({ part, sum: sumOf(part) }))
  const rows = summed.map(
    ({ part, sum }) =>
      `| ${part.title} | ${part.size} | ${part.skipped === undefined ? figuresOf(part, sum) : '–'} | ${resultOf(part, sum)} | ${time(sum.seconds)} | ${commitsOf(sum)} |`,
  )
  const failures = summed.flatMap(({ part, sum }) => sum.violations.map((text) => `- ${part.name}: ${text}`))
  const machines = new Set(parts.flatMap(({ chunks }) => Object.values(chunks).map(({ machine }) => machine)))
  const head = `${[at.slice(0, 10), ...machines].join('; ')}.`
  const table = [
    '| proof | size | how much | result | time of all processes | commit |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
  return [head, table, ...(failures.length > 0 ? [failures.join('\n')] : [])].join('\n\n')
}

/** Table with a row per mutant: the runs until a check found it, and the invariant. */
export function mutantsTable({ parts }: Report): string {
  const part = parts.find(({ name }) => name === 'bugs')
  const rows = part ? sumOf(part).rows : []
  if (rows.length === 0) return 'Not run.'
  return [
    '| mutant | deliberate error | found after | by |',
    '|---|---|---|---|',
    ...rows.map(
      ({ bug, what, worlds, invariant }) =>
        `| ${bug} | ${what} | ${worlds === 0 ? '**not found**' : `${worlds} runs`} | ${invariant} |`,
    ),
  ].join('\n')
}

const TABLES: Readonly<Record<string, (report: Report) => string>> = { figures: figuresTable, bugs: mutantsTable }

/**
 * Replaces the tables of the page between `<!-- prove:NAME -->` and `<!-- /prove:NAME -->`. Throws if a comment of such
 * a pair is missing.
 */
export function withTables(page: string, report: Report): string {
  return Object.entries(TABLES).reduce(
    (text, [name, table]) =>
      replaceMarked(text, `<!-- prove:${name} -->`, `<!-- /prove:${name} -->`, `\n${table(report)}\n`),
    page,
  )
}
