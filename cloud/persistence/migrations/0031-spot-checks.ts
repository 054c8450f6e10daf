import type { Migration } from './migration.ts'

/** A spot check stays due for a shopper until staff have looked, however many checkouts are begun meanwhile. */
export const SPOT_CHECKS: Migration = {
  name: '0031-spot-checks',
  statements: [
    `ALTER TABLE shopping_session ADD COLUMN spot_check_due bigint NOT NULL DEFAULT 0`,
    `UPDATE shopping_session SET spot_check_due = 1 WHERE session_id IN
      (SELECT session_id FROM purchase WHERE approval = 'awaiting' AND approval_reason = 'spot_check' AND status = 'CREATED')`,
    `CREATE INDEX session_by_spot_check ON shopping_session (tenant, user_id) WHERE spot_check_due = 1`,
  ],
}
