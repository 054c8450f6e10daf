import type { Migration } from './migration.ts'

/**
 * Merchants, their agents and devices make up the ids of their events and redemptions: an event is one of its account, and what
 * people must look at is one of its store, whatever others have called theirs. SQLite changes no key of a table, so each is
 * made anew with all that is in it. The event's id comes first: whoever has only that finds it too.
 */
export const IDS_OF_OTHERS: Migration = {
  name: '0025-ids-of-others',
  statements: [
    `CREATE TABLE new_protection_event (
      event_id text NOT NULL, tenant text NOT NULL, store_id text NOT NULL, type text NOT NULL, device_id text, purchase_id text,
      occurred_ms bigint NOT NULL, processed_ms bigint NOT NULL, body text NOT NULL, PRIMARY KEY (event_id, tenant))`,
    `INSERT INTO new_protection_event (event_id, tenant, store_id, type, device_id, purchase_id, occurred_ms, processed_ms, body)
      SELECT event_id, tenant, store_id, type, device_id, purchase_id, occurred_ms, processed_ms, body FROM protection_event`,
    `DROP TABLE protection_event`,
    `ALTER TABLE new_protection_event RENAME TO protection_event`,
    `CREATE INDEX protection_event_by_store ON protection_event (store_id, processed_ms, event_id)`,

    `CREATE TABLE new_alarm_disposition (
      event_id text NOT NULL, tenant text NOT NULL, store_id text NOT NULL, disposition text NOT NULL, operator_id text NOT NULL,
      recovered_cent bigint, disposed_ms bigint NOT NULL, PRIMARY KEY (event_id, tenant))`,
    `INSERT INTO new_alarm_disposition (event_id, tenant, store_id, disposition, operator_id, recovered_cent, disposed_ms)
      SELECT event_id, tenant, store_id, disposition, operator_id, recovered_cent, disposed_ms FROM alarm_disposition`,
    `DROP TABLE alarm_disposition`,
    `ALTER TABLE new_alarm_disposition RENAME TO alarm_disposition`,

    `CREATE TABLE new_outbox_event (
      event_id text NOT NULL, tenant text NOT NULL, store_id text, type text NOT NULL, at_ms bigint NOT NULL, data text NOT NULL,
      seq bigint, webhook_id text, PRIMARY KEY (event_id, tenant))`,
    `INSERT INTO new_outbox_event (event_id, tenant, store_id, type, at_ms, data, seq, webhook_id)
      SELECT event_id, tenant, store_id, type, at_ms, data, seq, webhook_id FROM outbox_event`,
    `DROP TABLE outbox_event`,
    `ALTER TABLE new_outbox_event RENAME TO outbox_event`,
    `CREATE INDEX outbox_event_unplanned ON outbox_event (event_id, tenant) WHERE seq IS NULL`,
    `CREATE INDEX outbox_event_by_seq ON outbox_event (seq)`,
    `CREATE INDEX outbox_event_of_tenant ON outbox_event (tenant, seq)`,
    `CREATE INDEX outbox_event_by_age ON outbox_event (at_ms)`,

    `CREATE TABLE new_protection_exception (
      exception_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, kind text NOT NULL, subject text NOT NULL,
      device_id text, purchase_id text, detail text NOT NULL, raised_ms bigint NOT NULL, acknowledged_ms bigint, note text,
      event_id text, times bigint NOT NULL DEFAULT 1, last_ms bigint, acknowledged_by text, UNIQUE (store_id, kind, subject))`,
    `INSERT INTO new_protection_exception (exception_id, tenant, store_id, kind, subject, device_id, purchase_id, detail, raised_ms,
        acknowledged_ms, note, event_id, times, last_ms, acknowledged_by)
      SELECT exception_id, tenant, store_id, kind, subject, device_id, purchase_id, detail, raised_ms,
        acknowledged_ms, note, event_id, times, last_ms, acknowledged_by FROM protection_exception`,
    `DROP TABLE protection_exception`,
    `ALTER TABLE new_protection_exception RENAME TO protection_exception`,
    `CREATE INDEX protection_exception_by_store ON protection_exception (store_id, exception_id)`,
  ],
}
