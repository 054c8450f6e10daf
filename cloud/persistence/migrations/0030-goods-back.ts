import type { Migration } from './migration.ts'

/** What the goods of a unit came back with, a refund or a move by hand: its right is used up for good. */
export const GOODS_BACK: Migration = {
  name: '0030-goods-back',
  statements: [
    `ALTER TABLE unit_right ADD COLUMN returned_by text`,
    `UPDATE unit_right SET returned_by = redemption_id, outcome = NULL WHERE outcome = 'returned'`,
  ],
}
