import type { Migration } from './migration.ts'

/** The tills and ERP systems of merchants: how to reach them, how far each was read, and what is kept of an ERP as it is. */
export const INTEGRATIONS: Migration = {
  name: '0014-integrations',
  statements: [
    `CREATE TABLE integration_connection (
      connection_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), side text NOT NULL, system text NOT NULL,
      sealed text, lease_id text, lease_until_ms bigint NOT NULL, updated_ms bigint NOT NULL)`,
    `CREATE UNIQUE INDEX one_connection_a_system ON integration_connection (store_id, side, system)`,
    // There only while a round is not finished: where the next page begins, and what came of those before it.
    `CREATE TABLE integration_pull (
      store_id text NOT NULL REFERENCES store (store_id), side text NOT NULL, system text NOT NULL, data_type text NOT NULL, tenant text NOT NULL,
      source text NOT NULL, next_cursor text, is_done bigint NOT NULL, counts text NOT NULL, started_ms bigint NOT NULL, updated_ms bigint NOT NULL,
      PRIMARY KEY (store_id, side, system, data_type))`,
    `CREATE TABLE erp_record (
      store_id text NOT NULL REFERENCES store (store_id), data_type text NOT NULL, system text NOT NULL, external_id text COLLATE "C" NOT NULL, tenant text NOT NULL,
      doc text NOT NULL, updated_ms bigint NOT NULL, PRIMARY KEY (store_id, data_type, system, external_id))`,
  ],
}
