import type { Migration } from './migration.ts'

/** What a refund took out of the day's figures, and what a cancellation made of each item: both can be taken back exactly. */
export const REFUNDS_SETTLED: Migration = {
  name: '0015-refunds-settled',
  statements: [
    `ALTER TABLE refund ADD COLUMN counted text`,
    `ALTER TABLE purchase_unit ADD COLUMN taken_back text`,
    `CREATE INDEX refund_by_payment ON refund (payment_id)`,
  ],
}
