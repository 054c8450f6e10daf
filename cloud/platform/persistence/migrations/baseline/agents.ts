/** Edge agents, their devices and operators, and the receipt homes of stores. */
export const AGENTS: readonly string[] = [
  // `online_only_until_ms`: After a rollback of the agent's ledger, each claim needs the cloud until this time; null:
  // no rollback. `fork_ms`: Time at which a fork of the agent's ledger was detected. `state`: The last state that the
  // agent reported: JSON of `AgentState`. `online`: 1 while the agent is connected to the broker, 0 after that; null
  // if the agent was never connected. `resync`: `awaited` or `due` while this agent must send its journal again to a
  // restored cloud, else null. `replaces`: Predecessor, which the cloud revokes at the first login of this agent.
  // This column is null after that login. `replaced_by`: Successor that continues the ledger of this agent.
  `CREATE TABLE agent (
    agent_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    x text NOT NULL UNIQUE, ledger_id text NOT NULL UNIQUE, generation bigint NOT NULL, last_seq bigint NOT NULL,
    head_hash text NOT NULL, deny_seq bigint NOT NULL, enrolled_ms bigint NOT NULL, last_seen_ms bigint NOT NULL,
    revoked_ms bigint, item_seq bigint NOT NULL DEFAULT 0, online_only_until_ms bigint, fork_ms bigint, state text, next_x text,
    home_url text, resync text, replaces text, replaced_by text, online bigint)`,
  `CREATE INDEX agent_by_store ON agent (store_id)`,
  `CREATE UNIQUE INDEX agent_by_next_key ON agent (next_x) WHERE next_x IS NOT NULL`,
  `CREATE INDEX agent_by_tenant ON agent (tenant, agent_id)`,
  // A former signing key of an agent.
  `CREATE TABLE agent_former_key (
    agent_id text NOT NULL, x text NOT NULL, retired_ms bigint NOT NULL, PRIMARY KEY (agent_id, x))`,
  `CREATE INDEX agent_former_key_by_age ON agent_former_key (retired_ms)`,
  `CREATE TABLE enrolment_code (
    code_hash text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, made_by text NOT NULL, name text NOT NULL,
    expires_ms bigint NOT NULL, tries bigint NOT NULL, agent_id text)`,
  // The one-time code of a store with which one of its agents registers a device. A new code replaces the former one.
  // `device_id`: Device that was registered with the code; null if the code is unused.
  `CREATE TABLE setup_code (
    store_id text PRIMARY KEY REFERENCES store (store_id), tenant text NOT NULL, code_hash text NOT NULL,
    made_by text NOT NULL, expires_ms bigint NOT NULL, device_id text)`,
  `CREATE TABLE agent_challenge (challenge_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
  `CREATE TABLE agent_session (token_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
  // `till_id`: The till beside it, whose sales alone release here. `moving_to`: Agent that gets the device when the
  // present agent has given up the device's tokens; null: the device does not move.
  `CREATE TABLE device (
    device_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), agent_id text,
    device_type text NOT NULL, name text, zone_id text, lane_id text, gate_id text, till_id text, firmware_version text,
    capabilities text NOT NULL, technologies text NOT NULL, workflow_type text, registered_ms bigint NOT NULL,
    last_seen_ms bigint, revoked_ms bigint, moving_to text)`,
  `CREATE INDEX device_by_store ON device (store_id, device_id)`,
  `CREATE INDEX device_moving ON device (store_id) WHERE moving_to IS NOT NULL`,
  // `verifiers`: JSON of the verifiers that are published under the present store key. `sealed`: Base verifiers,
  // sealed. Null after the operator was removed.
  `CREATE TABLE operator (
    operator_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    verifiers text NOT NULL, created_ms bigint NOT NULL, removed_ms bigint, sealed text)`,
  `CREATE INDEX operator_by_store ON operator (store_id)`,
  // The key under which the verifiers of a store are published (policy/operator-verifiers.ts).
  `CREATE TABLE store_key (
    store_id text PRIMARY KEY REFERENCES store (store_id), key_id text NOT NULL, sealed text NOT NULL)`,
  // The receipt home of each former epoch. The present home is in the store's policy. `agent_id`: The agent, or
  // `cloud`.
  `CREATE TABLE former_home (
    store_id text NOT NULL, home_epoch bigint NOT NULL, agent_id text NOT NULL, PRIMARY KEY (store_id, home_epoch))`,
  // The latest move of the receipt home. The new home must have received the deny list up to `deny_seq` before it
  // honours older receipts. `denied_after`: Used rights of the receipts after this one are still to be denied; null:
  // all are denied.
  `CREATE TABLE home_move (
    store_id text PRIMARY KEY REFERENCES store (store_id), moved_s bigint NOT NULL, deny_seq bigint NOT NULL, denied_after text)`,
  `CREATE INDEX home_move_denying ON home_move (store_id) WHERE denied_after IS NOT NULL`,
  // Agents that may have unreported redemptions of older receipts. The policy version `policy_ver` names the new
  // receipt home. `policy_ver`: Policy version that names the new receipt home.
  `CREATE TABLE home_move_wait (
    store_id text NOT NULL REFERENCES store (store_id), agent_id text NOT NULL REFERENCES agent (agent_id),
    policy_ver bigint NOT NULL, PRIMARY KEY (store_id, agent_id))`,
]
