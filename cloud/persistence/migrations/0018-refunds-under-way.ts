import type { Migration } from './migration.ts'

/** Cancelled purchases whose money is still on its way are looked for every few seconds. */
export const REFUNDS_UNDER_WAY: Migration = {
  name: '0018-refunds-under-way',
  statements: [`CREATE INDEX purchase_by_refund ON purchase (refund_status) WHERE refund_status IS NOT NULL`],
}
