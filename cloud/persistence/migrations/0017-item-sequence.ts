import type { Migration } from './migration.ts'

/** The numbered changes of a store's items, from which gates keep their replicas; what staff said of alarms. */
export const ITEM_SEQUENCE: Migration = {
  name: '0017-item-sequence',
  statements: [
    `CREATE TABLE item_head (store_id text PRIMARY KEY REFERENCES store (store_id), seq bigint NOT NULL, floor bigint NOT NULL)`,
    `CREATE TABLE item_gone (
      store_id text NOT NULL, kind text NOT NULL, name text NOT NULL, seq bigint NOT NULL, gone_ms bigint NOT NULL,
      PRIMARY KEY (store_id, kind, name))`,
    `CREATE INDEX item_gone_by_seq ON item_gone (store_id, seq)`,
    `ALTER TABLE protected_item ADD COLUMN item_seq bigint NOT NULL DEFAULT 0`,
    `UPDATE protected_item SET item_seq = numbered.n
      FROM (SELECT item_id, ROW_NUMBER() OVER (PARTITION BY store_id ORDER BY item_id) AS n FROM protected_item) AS numbered
      WHERE numbered.item_id = protected_item.item_id`,
    `INSERT INTO item_head (store_id, seq, floor) SELECT store_id, COUNT(*), 0 FROM protected_item GROUP BY store_id`,
    `CREATE INDEX protected_item_by_seq ON protected_item (store_id, item_seq)`,
    // Whether an item is in a checkout that is not paid yet.
    `CREATE INDEX purchase_unit_by_item ON purchase_unit (item_id) WHERE item_id IS NOT NULL`,
    // How far each agent has taken the items: what a shopper is told at the end rests on it.
    `ALTER TABLE agent ADD COLUMN item_seq bigint NOT NULL DEFAULT 0`,
    `CREATE TABLE alarm_disposition (
      event_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, disposition text NOT NULL, operator_id text NOT NULL,
      recovered_cent bigint, disposed_ms bigint NOT NULL)`,
  ],
}
