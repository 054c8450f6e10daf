import type { Migration } from './migration.ts'

/** Base verifiers of operators are sealed; `verifiers` contains them under the store key, as the policy publishes them. */
export const STORE_KEYS: Migration = {
  name: '0037-store-keys',
  statements: [
    `CREATE TABLE store_key (store_id text PRIMARY KEY REFERENCES store (store_id), key_id text NOT NULL, sealed text NOT NULL)`,
    // Base verifiers made before are sealed when the cloud starts: SQL does not have the sealing key.
    `ALTER TABLE operator ADD COLUMN sealed text`,
    `UPDATE operator SET verifiers = '{}' WHERE removed_ms IS NOT NULL`,
  ],
}
