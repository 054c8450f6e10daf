import type { Migration } from './migration.ts'

/** Tokens that agents are asked to give up, devices on their way to another agent, and former homes that still have something to tell. */
export const VOIDS_AND_MOVES: Migration = {
  name: '0023-voids-and-moves',
  statements: [
    `ALTER TABLE protection_authorization ADD COLUMN void_asked_ms bigint`,
    `CREATE INDEX authorization_void_asked ON protection_authorization (agent_id) WHERE void_asked_ms IS NOT NULL AND voided_ms IS NULL`,
    // The agent that the device goes to once nobody can use its tokens at the former one.
    `ALTER TABLE device ADD COLUMN moving_to text`,
    `CREATE INDEX device_moving ON device (store_id) WHERE moving_to IS NOT NULL`,
    // Which former homes may still have redeemed what nobody knows of; policy_ver: from which version on they know that they are no home.
    `CREATE TABLE home_move_wait (
      store_id text NOT NULL REFERENCES store (store_id),
      agent_id text NOT NULL REFERENCES agent (agent_id),
      policy_ver bigint NOT NULL,
      PRIMARY KEY (store_id, agent_id)
    )`,
  ],
}
