import { printable } from '../policy/printable.ts'
import { stripVTControlCharacters } from 'node:util'
import { WrongUsage } from './options.ts'
import { errorText } from './error-text.ts'

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

/** Prints that a long-running command is ready: `ready {…}`, or `{"ready": {…}}`. */
export function printReady(fields: object): void {
  process.stdout.write(isJson ? `${JSON.stringify({ ready: fields })}\n` : `ready ${JSON.stringify(fields)}\n`)
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
    return void process.stderr.write(`${safe(error instanceof WrongUsage ? error.message : errorText(error))}\n${help}`)
  const fields =
    error instanceof WrongUsage
      ? { error: error.faults.join('; '), code: 'wrong-usage', faults: error.faults }
      : { error: errorText(error), code: 'failed' }
  process.stderr.write(`${JSON.stringify(fields)}\n`)
}
