import { printLine } from '../output.ts'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** Commands of a simulated device, by the first word of a line. The other words are the arguments. */
export type StdinCommands = Readonly<Record<string, (...words: string[]) => void>>

/** Runs each line of stdin as a command. Call the returned function to stop. */
export function runStdinCommands(orders: StdinCommands): () => void {
  return onStdinLine((line) => {
    const [order = '', ...words] = line.split(/\s+/)
    const runCommand = Object.hasOwn(orders, order) ? orders[order] : undefined
    if (runCommand) runCommand(...words)
    else if (order !== '') printLine(`type one of: ${Object.keys(orders).join(', ')}`)
  })
}

/** Calls `run` with each line of stdin, without spaces around it. Call the returned function to stop. */
export function onStdinLine(run: (line: string) => void): () => void {
  if (process.stdin.isTTY && isInBackground()) return () => undefined
  // A terminal that was closed has nothing more to say.
  process.stdin.on('error', () => undefined)
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => run(line.trim()))
  return () => lines.close()
}

/**
 * True if the shell started this process with `&`. The kernel stops such a process when it reads from the terminal. Only
 * Linux tells it: fields 5 and 8 of /proc/PID/stat are the process group, and the group in the foreground (proc(5)).
 */
export function isInBackground(): boolean {
  try {
    const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return group !== foreground
  } catch {
    return false
  }
}
