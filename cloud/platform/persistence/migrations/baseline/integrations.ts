/** Connections to tills and ERP systems, the progress of each import, and records of an ERP. */
export const INTEGRATIONS: readonly string[] = [
  `CREATE TABLE integration_connection (
    connection_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), side text NOT NULL,
    system text NOT NULL, sealed text, lease_id text, lease_until_ms bigint NOT NULL, updated_ms bigint NOT NULL)`,
  `CREATE UNIQUE INDEX one_connection_a_system ON integration_connection (store_id, side, system)`,
  // One row per unfinished import, with the cursor of the next page and the counts of the pages read so far.
  `CREATE TABLE integration_pull (
    store_id text NOT NULL REFERENCES store (store_id), side text NOT NULL, system text NOT NULL, data_type text NOT NULL,
    tenant text NOT NULL, source text NOT NULL, next_cursor text, is_done bigint NOT NULL, counts text NOT NULL,
    started_ms bigint NOT NULL, updated_ms bigint NOT NULL, PRIMARY KEY (store_id, side, system, data_type))`,
  `CREATE TABLE erp_record (
    store_id text NOT NULL REFERENCES store (store_id), data_type text NOT NULL, system text NOT NULL,
    external_id text COLLATE "C" NOT NULL, tenant text NOT NULL, doc text NOT NULL, updated_ms bigint NOT NULL,
    PRIMARY KEY (store_id, data_type, system, external_id))`,
]
