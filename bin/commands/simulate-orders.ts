import { sayLine } from '../output.ts'
import { createInterface } from 'node:readline'

/** What a simulated device can be told to do, by the first word of a line; the words behind it are given. */
export type Orders = Readonly<Record<string, (...words: string[]) => void>>

/** Carries out each line of stdin; the returned function ends that. */
export function takeOrders(orders: Orders): () => void {
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const [order = '', ...words] = line.trim().split(/\s+/)
    const carryOut = Object.hasOwn(orders, order) ? orders[order] : undefined
    if (carryOut) carryOut(...words)
    else if (order !== '') sayLine(`orders: ${Object.keys(orders).join(', ')}`)
  })
  return () => lines.close()
}
