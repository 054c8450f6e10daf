import type { Migration } from './migration.ts'

/** Lists of agents and exceptions of a whole account, by their filters. */
export const ACCOUNT_LISTS: Migration = {
  name: '0039-account-lists',
  statements: [
    `ALTER TABLE agent ADD COLUMN online bigint`,
    // A quote inside a text of the JSON has a backslash before it, so this matches the field only.
    `UPDATE agent SET online = CASE WHEN state LIKE '%"online":true%' THEN 1 WHEN state LIKE '%"online":false%' THEN 0 END`,
    `CREATE INDEX agent_by_tenant ON agent (tenant, agent_id)`,
    `CREATE INDEX protection_exception_by_tenant ON protection_exception (tenant, exception_id)`,
    `CREATE INDEX protection_exception_by_tenant_kind ON protection_exception (tenant, kind, exception_id)`,
    `CREATE INDEX protection_exception_by_store_kind ON protection_exception (store_id, kind, exception_id)`,
    `CREATE INDEX protection_exception_open ON protection_exception (tenant, exception_id) WHERE acknowledged_ms IS NULL`,
    `CREATE INDEX protection_exception_open_in_store ON protection_exception (store_id, exception_id) WHERE acknowledged_ms IS NULL`,
  ],
}
