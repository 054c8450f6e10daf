import { stripVTControlCharacters } from 'node:util'
import { WrongUsage } from './options.ts'
import { whatWentWrong } from './what-went-wrong.ts'

/** `--json`: each line of stdout is a JSON object, and so is the error that a command ends with, on stderr. */
let isJson = false

/** Chooses between text and JSON for this process. */
export function chooseOutput(args: readonly string[], env: NodeJS.ProcessEnv): void {
  isJson = args.some((arg) => arg === '--json' || arg.startsWith('--json=')) || env['UNTAG_JSON'] === 'true'
}

/** Whether this process writes JSON. */
export function writesJson(): boolean {
  return isJson
}

/** A command that goes on running does its work from now on: `ready {…}`, or `{"ready": {…}}`. */
export function sayReady(fields: object): void {
  process.stdout.write(isJson ? `${JSON.stringify({ ready: fields })}\n` : `ready ${JSON.stringify(fields)}\n`)
}

/** A line of a command that goes on running: the text, or `{"line": "…"}`. */
export function sayLine(text = ''): void {
  if (!isJson) process.stdout.write(`${text}\n`)
  else if (text !== '') process.stdout.write(`${JSON.stringify({ line: stripVTControlCharacters(text).trim() })}\n`)
}

/** A line for people on stderr, or `{"note": "…"}`. */
export function sayNote(text: string): void {
  process.stderr.write(`${isJson ? JSON.stringify({ note: text }) : text}\n`)
}

/** Why a command ended: `help` follows the text only. The fields are those of the API's errors. */
export function sayFailure(error: unknown, help = ''): void {
  if (!isJson)
    return void process.stderr.write(`${error instanceof WrongUsage ? error.message : whatWentWrong(error)}\n${help}`)
  const fields =
    error instanceof WrongUsage
      ? { error: error.faults.join('; '), code: 'wrong-usage', faults: error.faults }
      : { error: whatWentWrong(error), code: 'failed' }
  process.stderr.write(`${JSON.stringify(fields)}\n`)
}
