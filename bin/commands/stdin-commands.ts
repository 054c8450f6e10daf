import { printLine } from '../output.ts'
import { createInterface } from 'node:readline'

/** Commands of a simulated device, by the first word of a line. The other words are the arguments. */
export type StdinCommands = Readonly<Record<string, (...words: string[]) => void>>

/** Runs each line of stdin as a command. Call the returned function to stop. */
export function runStdinCommands(orders: StdinCommands): () => void {
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const [order = '', ...words] = line.trim().split(/\s+/)
    const runCommand = Object.hasOwn(orders, order) ? orders[order] : undefined
    if (runCommand) runCommand(...words)
    else if (order !== '') printLine(`type one of: ${Object.keys(orders).join(', ')}`)
  })
  return () => lines.close()
}
