import type { Area } from './fields.ts'
import type { Operation } from './operation.ts'

/** Areas that test keys may use whatever package the merchant has (ADR accounts). */
const FREE_IN_SANDBOX: ReadonlySet<Area> = new Set(['scan and go', 'receipts', 'protection', 'agents'])

/** True if calls in this mode need the operation's package. */
export function needsPackage(operation: Operation, mode: 'test' | 'live'): boolean {
  return !(mode === 'test' && FREE_IN_SANDBOX.has(operation.area))
}
