import type { Migration } from './migration.ts'

/**
 * What the catalogue is read by: a rendered document per store and product, the words it is found by, and
 * how many there are. All three follow from `product` and `store_product`; documents.ts fills them in.
 */
export const CATALOGUE: Migration = {
  name: '0002-catalogue',
  statements: [
    `ALTER TABLE product ADD COLUMN nutrition text`,
    `ALTER TABLE product ADD COLUMN media_snapshot text`,
    `ALTER TABLE product ADD COLUMN from_pos bigint NOT NULL DEFAULT 0`,
    `ALTER TABLE product ADD COLUMN pos_product_id text`,
    `ALTER TABLE store_product ADD COLUMN category text`,
    `ALTER TABLE store_product ADD COLUMN updated_ms bigint NOT NULL DEFAULT 0`,
    `ALTER TABLE store_product ADD COLUMN doc text NOT NULL DEFAULT ''`,
    `CREATE INDEX store_product_by_product ON store_product (product_id, store_id)`,
    `CREATE INDEX store_product_by_category ON store_product (store_id, category, product_id)`,
    // Prefixes are ranges, which is true of bytes only, not of a language's order. Each word has all words of its product
    // beside it, so that a question of several words is answered out of this table alone.
    `CREATE TABLE product_word (
      store_id text NOT NULL, word text COLLATE "C" NOT NULL, product_id text NOT NULL, words text NOT NULL,
      PRIMARY KEY (store_id, word, product_id)) /* clustered */`,
    // The category '' stands for all.
    `CREATE TABLE product_count (
      store_id text NOT NULL, category text NOT NULL, products bigint NOT NULL, PRIMARY KEY (store_id, category))`,
  ],
}
