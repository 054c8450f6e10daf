import type { Migration } from './migration.ts'

/** What a customer still paid for when a transaction earned: refunds that follow take their share of that. null: all of it. */
export const EARNED_ON: Migration = {
  name: '0027-earned-on',
  statements: [`ALTER TABLE loyalty_entry ADD COLUMN earned_on_cent bigint`],
}
