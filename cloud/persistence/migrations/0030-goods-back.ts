import type { Migration } from './migration.ts'

/** What the goods of a unit came back with, a refund or a move by hand: whatever becomes of a use that was under way, it releases nothing more. */
export const GOODS_BACK: Migration = {
  name: '0030-goods-back',
  statements: [`ALTER TABLE unit_right ADD COLUMN returned_by text`, `UPDATE unit_right SET returned_by = redemption_id WHERE outcome = 'returned'`],
}
