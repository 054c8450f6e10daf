import type { Migration } from './migration.ts'

/**
 * Protection events get a position that follows the order of commits (../positions.ts). Rows of earlier releases keep the order in
 * which they were listed, so cursors that were issued then still name the same place.
 */
export const EVENT_POSITIONS: Migration = {
  name: '0035-event-positions',
  statements: [
    `ALTER TABLE protection_event ADD COLUMN position bigint NOT NULL DEFAULT 0`,
    `UPDATE protection_event SET position = processed_ms`,
    `CREATE INDEX protection_event_by_position ON protection_event (store_id, position, event_id)`,
  ],
}
