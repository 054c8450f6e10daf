/** Edge agents, devices and operators. Units: ../schema.ts. */

export interface AgentRow {
  agent_id: string
  tenant: string
  store_id: string
  name: string
  x: string
  next_x: string | null
  home_url: string | null
  ledger_id: string
  generation: number
  last_seq: number
  head_hash: string
  deny_seq: number
  item_seq: number
  enrolled_ms: number
  last_seen_ms: number
  revoked_ms: number | null
  /** After a rollback of the agent's ledger, each claim needs the cloud until this time; null: no rollback. */
  online_only_until_ms: number | null
  /** Time at which a fork of the agent's ledger was detected. */
  fork_ms: number | null
  /** The last state that the agent reported: JSON of `AgentState`. */
  state: string | null
  /** 1 while the agent is connected to the broker, 0 after that; null if the agent was never connected. */
  online: number | null
  /** `awaited` or `due` while this agent must send its journal again to a restored cloud, else null. */
  resync: string | null
  /** Predecessor, which the cloud revokes at the first login of this agent. This column is null after that login. */
  replaces: string | null
  /** Successor that continues the ledger of this agent. */
  replaced_by: string | null
}

export interface HomeMoveRow {
  store_id: string
  moved_s: number
  deny_seq: number
  /** Used rights of the receipts after this one are still to be denied; null: all are denied. */
  denied_after: string | null
}

/** The receipt home of a store in a past epoch. */
export interface FormerHomeRow {
  store_id: string
  home_epoch: number
  /** The agent, or `cloud`. */
  agent_id: string
}

/** A former signing key of an agent. */
export interface AgentFormerKeyRow {
  agent_id: string
  x: string
  retired_ms: number
}

/** An agent that may not have reported all its redemptions of older receipts. */
export interface HomeMoveWaitRow {
  store_id: string
  agent_id: string
  /** Policy version that names the new receipt home. */
  policy_ver: number
}

export interface EnrolmentCodeRow {
  code_hash: string
  tenant: string
  store_id: string
  name: string
  expires_ms: number
  tries: number
  agent_id: string | null
}

/** The last set-up code of a store. */
export interface SetupCodeRow {
  store_id: string
  tenant: string
  code_hash: string
  expires_ms: number
  /** Device that was registered with the code; null if the code is unused. */
  device_id: string | null
}

export interface AgentChallengeRow {
  challenge_hash: string
  agent_id: string
  expires_ms: number
}

export interface AgentSessionRow {
  token_hash: string
  agent_id: string
  expires_ms: number
}

export interface DeviceRow {
  device_id: string
  tenant: string
  store_id: string
  agent_id: string | null
  device_type: string
  name: string | null
  zone_id: string | null
  lane_id: string | null
  gate_id: string | null
  firmware_version: string | null
  capabilities: string
  technologies: string
  workflow_type: string | null
  /** The till beside it, whose sales alone release here. */
  till_id: string | null
  registered_ms: number
  last_seen_ms: number | null
  revoked_ms: number | null
  /**
   * Agent that gets the device when the present agent has given up the device's tokens; null: the device does not move.
   */
  moving_to: string | null
}

export interface OperatorRow {
  operator_id: string
  tenant: string
  store_id: string
  name: string
  /** JSON of the verifiers that are published under the present store key. */
  verifiers: string
  created_ms: number
  removed_ms: number | null
  /** Base verifiers, sealed. Null after the operator was removed. */
  sealed: string | null
}

/** The key under which the verifiers of a store are published (policy/operator-verifiers.ts). */
export interface StoreKeyRow {
  store_id: string
  key_id: string
  sealed: string
}
