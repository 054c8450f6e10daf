import type { Migration } from './migration.ts'

/** Deposits as lines of their own, goods that a scale priced, what became of items, to be told as EPCIS, and what loyalty comes to. */
export const DEPOSITS_AND_MOVES: Migration = {
  name: '0016-deposits-and-moves',
  statements: [
    // Of one piece, and the rate it is taxed at where that is not the product's.
    `ALTER TABLE product ADD COLUMN deposit_cent bigint`,
    `ALTER TABLE product ADD COLUMN deposit_vat bigint`,
    // JSON: how the barcodes of its scales are made up; null for the usual.
    `ALTER TABLE store ADD COLUMN in_store_codes text`,
    // Its Global Location Number, where it has one.
    `ALTER TABLE store ADD COLUMN gln text`,
    // The line whose deposit this one is.
    `ALTER TABLE purchase_line ADD COLUMN deposit_of text`,
    // What was scanned, where it was a label; and for one with a weight, that and the price of a kilogram.
    `ALTER TABLE purchase_line ADD COLUMN barcode text`,
    `ALTER TABLE purchase_line ADD COLUMN weight_grams bigint`,
    `ALTER TABLE purchase_line ADD COLUMN kg_price_cent bigint`,
    // Each time that an item's status became another; what it was called then. Never changed.
    `CREATE TABLE item_move (
      item_id text NOT NULL, rev bigint NOT NULL, tenant text NOT NULL, store_id text NOT NULL, from_status text, to_status text NOT NULL,
      epc text, tag_uid text, tag_id text, ean text, purchase_id text, line_id text, at_ms bigint NOT NULL, PRIMARY KEY (item_id, rev))`,
    `CREATE INDEX item_move_by_store ON item_move (store_id, at_ms, item_id, rev)`,
    // What the ledger comes to by month and kind of entry ('join': new members), kept by the transactions that write it.
    `CREATE TABLE loyalty_month (
      program_id text NOT NULL, month text NOT NULL, kind text NOT NULL, amount bigint NOT NULL, entries bigint NOT NULL,
      PRIMARY KEY (program_id, month, kind))`,
    `INSERT INTO loyalty_month (program_id, month, kind, amount, entries)
      SELECT program_id, month, kind, SUM(amount), COUNT(*) FROM loyalty_entry GROUP BY program_id, month, kind`,
    `INSERT INTO loyalty_month (program_id, month, kind, amount, entries)
      SELECT program_id, month, 'join', 0, COUNT(*) FROM loyalty_member GROUP BY program_id, month`,
    `CREATE INDEX item_move_by_purchase ON item_move (purchase_id) WHERE purchase_id IS NOT NULL`,
  ],
}
