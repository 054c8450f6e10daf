import { sayLine } from '../output.ts'
import { createInterface } from 'node:readline'

/** Commands of a simulated device, by the first word of a line. The other words are the arguments. */
export type Orders = Readonly<Record<string, (...words: string[]) => void>>

/** Runs each line of stdin as a command. Call the returned function to stop. */
export function takeOrders(orders: Orders): () => void {
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const [order = '', ...words] = line.trim().split(/\s+/)
    const carryOut = Object.hasOwn(orders, order) ? orders[order] : undefined
    if (carryOut) carryOut(...words)
    else if (order !== '') sayLine(`type one of: ${Object.keys(orders).join(', ')}`)
  })
  return () => lines.close()
}
