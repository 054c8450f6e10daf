import type { Migration } from './migration.ts'

/** Registrations of stores and accounts, and what keys and the audit log need to be looked at. */
export const REGISTRATIONS: Migration = {
  name: '0003-registrations',
  statements: [
    // `details` is what was sent in, as columns of a store. One with no account yet came in without a key and has a claim.
    `CREATE TABLE registration (
      registration_id text PRIMARY KEY, kind text NOT NULL, account_id text REFERENCES account (account_id), tenant text,
      company_name text NOT NULL, details text NOT NULL, claim_hash text, status text NOT NULL, reason text, store_id text,
      submitted_ms bigint NOT NULL, decided_ms bigint, test_claimed_ms bigint, live_claimed_ms bigint)`,
    `CREATE INDEX registration_by_status ON registration (status, registration_id)`,
    `CREATE INDEX registration_by_tenant ON registration (tenant, registration_id)`,
    `ALTER TABLE api_key ADD COLUMN replaced_by text`,
    `CREATE INDEX api_key_by_account ON api_key (account_id, mode, key_id)`,
    `CREATE INDEX audit_entry_by_entity ON audit_entry (tenant, entity_id, entry_id)`,
  ],
}
