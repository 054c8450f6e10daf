/** Edge agents, their devices and operators, and the receipt homes of stores. */
export const AGENTS: readonly string[] = [
  `CREATE TABLE agent (
    agent_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    x text NOT NULL UNIQUE, ledger_id text NOT NULL UNIQUE, generation bigint NOT NULL, last_seq bigint NOT NULL,
    head_hash text NOT NULL, deny_seq bigint NOT NULL, enrolled_ms bigint NOT NULL, last_seen_ms bigint NOT NULL,
    revoked_ms bigint, item_seq bigint NOT NULL DEFAULT 0, online_only_until_ms bigint, fork_ms bigint, state text, next_x text,
    home_url text, resync text, replaces text, replaced_by text, online bigint)`,
  `CREATE INDEX agent_by_store ON agent (store_id)`,
  `CREATE UNIQUE INDEX agent_by_next_key ON agent (next_x) WHERE next_x IS NOT NULL`,
  `CREATE INDEX agent_by_tenant ON agent (tenant, agent_id)`,
  `CREATE TABLE agent_former_key (
    agent_id text NOT NULL, x text NOT NULL, retired_ms bigint NOT NULL, PRIMARY KEY (agent_id, x))`,
  `CREATE INDEX agent_former_key_by_age ON agent_former_key (retired_ms)`,
  `CREATE TABLE enrolment_code (
    code_hash text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, name text NOT NULL, expires_ms bigint NOT NULL,
    tries bigint NOT NULL, agent_id text)`,
  // The one-time code of a store with which one of its agents registers a device. A new code replaces the former one.
  `CREATE TABLE setup_code (
    store_id text PRIMARY KEY REFERENCES store (store_id), tenant text NOT NULL, code_hash text NOT NULL,
    expires_ms bigint NOT NULL, device_id text)`,
  `CREATE TABLE agent_challenge (challenge_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
  `CREATE TABLE agent_session (token_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
  `CREATE TABLE device (
    device_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), agent_id text,
    device_type text NOT NULL, name text, zone_id text, lane_id text, gate_id text, till_id text, firmware_version text,
    capabilities text NOT NULL, technologies text NOT NULL, workflow_type text, registered_ms bigint NOT NULL,
    last_seen_ms bigint, revoked_ms bigint, moving_to text)`,
  `CREATE INDEX device_by_store ON device (store_id, device_id)`,
  `CREATE INDEX device_moving ON device (store_id) WHERE moving_to IS NOT NULL`,
  `CREATE TABLE operator (
    operator_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    verifiers text NOT NULL, created_ms bigint NOT NULL, removed_ms bigint, sealed text)`,
  `CREATE INDEX operator_by_store ON operator (store_id)`,
  `CREATE TABLE store_key (
    store_id text PRIMARY KEY REFERENCES store (store_id), key_id text NOT NULL, sealed text NOT NULL)`,
  // The receipt home of each former epoch. The present home is in the store's policy.
  `CREATE TABLE former_home (
    store_id text NOT NULL, home_epoch bigint NOT NULL, agent_id text NOT NULL, PRIMARY KEY (store_id, home_epoch))`,
  // The latest move of the receipt home. The new home must have received the deny list up to `deny_seq` before it
  // honours older receipts.
  `CREATE TABLE home_move (
    store_id text PRIMARY KEY REFERENCES store (store_id), moved_s bigint NOT NULL, deny_seq bigint NOT NULL, denied_after text)`,
  `CREATE INDEX home_move_denying ON home_move (store_id) WHERE denied_after IS NOT NULL`,
  // Agents that may have unreported redemptions of older receipts. The policy version `policy_ver` names the new
  // receipt home.
  `CREATE TABLE home_move_wait (
    store_id text NOT NULL REFERENCES store (store_id), agent_id text NOT NULL REFERENCES agent (agent_id),
    policy_ver bigint NOT NULL, PRIMARY KEY (store_id, agent_id))`,
]
