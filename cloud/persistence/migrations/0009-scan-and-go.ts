import type { Migration } from './migration.ts'

/** Finding purchases by account and shopper, those whose time runs out, and the approval that comes before payment. */
export const SCAN_AND_GO: Migration = {
  name: '0009-scan-and-go',
  statements: [
    // 'awaiting', 'approved' or 'refused' where staff must look first; who looked, and why.
    `ALTER TABLE purchase ADD COLUMN approval text`,
    `ALTER TABLE purchase ADD COLUMN approval_reason text`,
    `ALTER TABLE purchase ADD COLUMN approved_by text`,
    // Set while a payment is awaited: when it comes too late.
    `ALTER TABLE purchase ADD COLUMN payment_by_ms bigint`,
    `CREATE INDEX purchase_by_tenant ON purchase (tenant, purchase_id)`,
    `CREATE INDEX purchase_by_user ON purchase (tenant, user_id, purchase_id)`,
    `CREATE INDEX purchase_unpaid ON purchase (payment_by_ms) WHERE payment_by_ms IS NOT NULL`,
  ],
}
