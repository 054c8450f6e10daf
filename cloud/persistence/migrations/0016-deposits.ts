import type { Migration } from './migration.ts'

/** Deposits as lines of their own, and goods that a scale priced. */
export const DEPOSITS: Migration = {
  name: '0016-deposits',
  statements: [
    // Of one piece, and the rate it is taxed at where that is not the product's.
    `ALTER TABLE product ADD COLUMN deposit_cent bigint`,
    `ALTER TABLE product ADD COLUMN deposit_vat bigint`,
    // JSON: how the barcodes of its scales are made up; null for the usual.
    `ALTER TABLE store ADD COLUMN in_store_codes text`,
    // The line whose deposit this one is.
    `ALTER TABLE purchase_line ADD COLUMN deposit_of text`,
    // What was scanned, where it was a label; and for one with a weight, that and the price of a kilogram.
    `ALTER TABLE purchase_line ADD COLUMN barcode text`,
    `ALTER TABLE purchase_line ADD COLUMN weight_grams bigint`,
    `ALTER TABLE purchase_line ADD COLUMN kg_price_cent bigint`,
  ],
}
