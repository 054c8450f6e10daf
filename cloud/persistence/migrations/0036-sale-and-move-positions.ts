import type { Migration } from './migration.ts'

/** The same positions for the other sources of EPCIS events, and the number to which transaction ids are added. */
export const SALE_AND_MOVE_POSITIONS: Migration = {
  name: '0036-sale-and-move-positions',
  statements: [
    `CREATE TABLE position_offset (id bigint PRIMARY KEY, value bigint NOT NULL)`,
    `ALTER TABLE item_move ADD COLUMN position bigint NOT NULL DEFAULT 0`,
    `UPDATE item_move SET position = at_ms`,
    `CREATE INDEX item_move_by_position ON item_move (store_id, position, item_id, rev)`,
    `ALTER TABLE purchase ADD COLUMN completed_position bigint`,
    `UPDATE purchase SET completed_position = completed_ms WHERE completed_ms IS NOT NULL`,
    `CREATE INDEX purchase_by_position ON purchase (store_id, completed_position, purchase_id) WHERE completed_position IS NOT NULL`,
  ],
}
