import type { Migration } from './migration.ts'

/** Agents that were enrolled anew on their machines: whom each takes the place of, and once it has come, by whom each was replaced. */
export const SUCCESSORS: Migration = {
  name: '0024-successors',
  statements: [`ALTER TABLE agent ADD COLUMN replaces text`, `ALTER TABLE agent ADD COLUMN replaced_by text`],
}
