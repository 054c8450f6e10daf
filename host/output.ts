import { printable } from '../policy/printable.ts'
import { stripVTControlCharacters, styleText } from 'node:util'
import { WrongUsage } from './options.ts'

/**
 * Text of an error. For an error of `fetch`, the text of its cause. If several addresses failed, the list of their
 * errors.
 */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(errorText).join(', ')
  if (!(error instanceof Error)) return String(error)
  if (error instanceof TypeError && error.cause !== undefined) return errorText(error.cause)
  return error.message === '' ? error.name : error.message
}

/** Codes of a full disk: of the system, of a quota, and of SQLite. */
const DISK_FULL = new Set<unknown>(['ENOSPC', 'EDQUOT', 'SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE'])

/** The error of a full disk, which may be the cause of `error`. */
function fullDiskIn(error: unknown): NodeJS.ErrnoException | undefined {
  const { code, cause } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  if (DISK_FULL.has(code)) return error as NodeJS.ErrnoException
  return cause instanceof Error ? fullDiskIn(cause) : undefined
}

/** Why a command failed. A full disk is named with what to do, because the error of SQLite names neither file nor fix. */
function failureText(error: unknown): string {
  const full = fullDiskIn(error)
  if (!full) return errorText(error)
  const { path } = full
  const file = typeof path === 'string' ? ` (${path} could not be written)` : ''
  return `the disk is full${file}: free space on the disk of the data folder (--data), then run the command again`
}

/** `1 agent`, `2 agents`. */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`
}

/** With `--json`, each line of stdout and the final error on stderr is a JSON object. */
let isJson = false

/** Chooses text or JSON output for this process. */
export function chooseOutput(args: readonly string[], env: NodeJS.ProcessEnv): void {
  isJson = args.some((arg) => arg === '--json' || arg.startsWith('--json=')) || env['UNTAG_JSON'] === 'true'
}

/** True if this process writes JSON. */
export function writesJson(): boolean {
  return isJson
}

const KEPT = new RegExp(String.raw`(\n|\t|${'\u001b'}\[[\d;]*m)`)

/** A text whose lines and colours stay. Texts of others in it cannot move the cursor or hide what follows. */
function safe(text: string): string {
  return text
    .split(KEPT)
    .map((part, index) => (index % 2 === 0 ? printable(part) : part))
    .join('')
}

/** Prints the result of a command: the lines, or an object as JSON. Texts of others cannot change the terminal. */
export function printResult(json: boolean, object: object, lines: readonly string[]): void {
  process.stdout.write(`${json ? printable(JSON.stringify(object)) : lines.map(printable).join('\n')}\n`)
}

/** True if a person reads the output: a terminal, without `--json`. */
function isForPerson(): boolean {
  return !isJson && process.stdout.isTTY
}

/**
 * Prints that a long-running command is ready: `ready {…}`, or `{"ready": {…}}`. In a terminal, prints `forPerson`
 * instead.
 */
export function printReady(fields: object, forPerson: readonly string[] = []): void {
  if (isForPerson() && forPerson.length > 0) return forPerson.forEach((line) => printLine(line))
  process.stdout.write(isJson ? `${JSON.stringify({ ready: fields })}\n` : `ready ${JSON.stringify(fields)}\n`)
}

/** Lines with a name and a value each, such as addresses. Values are in one column. */
export function namedLines(rows: readonly (readonly [name: string, value: string])[]): string[] {
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`)
}

/** Colours of states in tables. Other states stay as they are. */
const COLOUR_OF_STATE: Readonly<Record<string, 'green' | 'yellow' | 'red'>> = {
  active: 'green',
  next: 'yellow',
  invited: 'yellow',
  retiring: 'yellow',
  expired: 'red',
  revoked: 'red',
}

/** Prints a list: JSON, or aligned rows. In a terminal, the rows have a head and coloured states. */
export function printTable(
  json: boolean,
  object: object,
  { head, rows, empty }: { head: readonly string[]; rows: readonly (readonly string[])[]; empty: string },
): void {
  if (json || rows.length === 0) return printResult(json, object, [empty])
  const isShown = isForPerson()
  const cells = (isShown ? [head, ...rows] : rows).map((row) => row.map(printable))
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const padded = cells.map((row) => row.map((cell, i) => (i + 1 < row.length ? cell.padEnd(widths[i] ?? 0) : cell)))
  const lines = padded.map((row, i) => {
    if (isShown && i === 0) return styleText('bold', row.join('  '))
    return row.map((cell, column) => (isShown && head[column] === 'STATE' ? coloured(cell) : cell)).join('  ')
  })
  process.stdout.write(`${lines.join('\n')}\n`)
}

function coloured(state: string): string {
  const colour = COLOUR_OF_STATE[state.trim()]
  return colour === undefined ? state : styleText(colour, state)
}

/** Prints a line of a long-running command: the text, or `{"line": "…"}`. */
export function printLine(text = ''): void {
  if (!isJson) process.stdout.write(`${safe(text)}\n`)
  else if (text !== '') process.stdout.write(`${JSON.stringify({ line: stripVTControlCharacters(text).trim() })}\n`)
}

/** Prints a line on stderr: the text, or `{"note": "…"}`. */
export function printNote(text: string): void {
  process.stderr.write(`${isJson ? JSON.stringify({ note: text }) : safe(text)}\n`)
}

/** Prints why a command failed, followed by `help`. JSON output has the fields of the API's errors instead. */
export function printFailure(error: unknown, help = ''): void {
  if (!isJson)
    return void process.stderr.write(
      `${safe(error instanceof WrongUsage ? error.message : failureText(error))}\n${help}`,
    )
  const fields =
    error instanceof WrongUsage
      ? { error: error.faults.join('; '), code: 'wrong-usage', faults: error.faults }
      : { error: failureText(error), code: 'failed' }
  process.stderr.write(`${JSON.stringify(fields)}\n`)
}
