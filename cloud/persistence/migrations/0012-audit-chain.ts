import type { Migration } from './migration.ts'

/** The chain of a tenant's audit entries: sealed one after the other, shortly after they were written. */
export const AUDIT_CHAIN: Migration = {
  name: '0012-audit-chain',
  statements: [
    // All three are null until the entry is sealed.
    `ALTER TABLE audit_entry ADD COLUMN seq bigint`,
    `ALTER TABLE audit_entry ADD COLUMN prev_hash text`,
    `ALTER TABLE audit_entry ADD COLUMN hash text`,
    `CREATE UNIQUE INDEX audit_entry_chain ON audit_entry (tenant, seq) WHERE seq IS NOT NULL`,
    `CREATE INDEX audit_entry_unsealed ON audit_entry (tenant, entry_id) WHERE seq IS NULL`,
    `CREATE TABLE audit_head (tenant text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL)`,
  ],
}
