import type { Migration } from './migration.ts'

/** Entries of deny lists are forgotten some time after their end. */
export const ENDED_DENIALS: Migration = {
  name: '0029-ended-denials',
  statements: [`CREATE INDEX deny_entry_by_end ON deny_entry (until_s)`],
}
