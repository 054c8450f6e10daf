import type { Migration } from './migration.ts'

/** What agents have yet to tell again after the cloud was restored from a backup. */
export const RESTORES: Migration = {
  name: '0022-restores',
  statements: [
    // 'awaited': nothing is granted in its store until it has, or 11 minutes have passed; 'due': nobody waits for it; null: it has.
    `ALTER TABLE agent ADD COLUMN resync text`,
  ],
}
