/** Protected items, rights of units, authorizations, and what became of them. Units and forms: ../schema.ts. */

export interface ProtectedItemRow {
  item_id: string
  tenant: string
  store_id: string
  epc: string | null
  tag_uid: string | null
  tag_id: string | null
  tag_technology: string | null
  protection_technology: string | null
  serial_number: string | null
  product_id: string | null
  ean: string | null
  brand: string | null
  category: string | null
  price_cent: number | null
  item_status: string
  purchase_id: string | null
  line_id: string | null
  unit_no: number | null
  rev: number
  created_ms: number
  updated_ms: number
  /** Its number among the changes of its store's items. */
  item_seq: number
}

/** The end of a store's sequence of item changes. */
export interface ItemHeadRow {
  store_id: string
  seq: number
  /** Names that were given up before this number are forgotten. */
  floor: number
}

/** A name that its item gave up. */
export interface ItemGoneRow {
  store_id: string
  kind: string
  name: string
  seq: number
  gone_ms: number
}

export interface AlarmDispositionRow {
  event_id: string
  tenant: string
  store_id: string
  disposition: string
  operator_id: string
  recovered_cent: number | null
  disposed_ms: number
}

/** A change of an item's status, with its names as they were then. */
export interface ItemMoveRow {
  item_id: string
  /** The item's, after it. */
  rev: number
  tenant: string
  store_id: string
  /** null: it was registered. */
  from_status: string | null
  to_status: string
  epc: string | null
  tag_uid: string | null
  tag_id: string | null
  ean: string | null
  purchase_id: string | null
  line_id: string | null
  at_ms: number
  /** As whoever moved it by hand said. */
  reason: string | null
  operator_id: string | null
  /** Follows the order of commits (../positions.ts). */
  position: number
}

export interface ProtectionAuthorizationRow {
  nonce: string
  tenant: string
  store_id: string
  device_id: string
  agent_id: string | null
  ledger: string
  action: string
  right_class: string
  count: number
  purchase_id: string | null
  item_id: string | null
  ith_kind: string | null
  ith_id: string | null
  event_id: string
  risk_class: number
  policy_version: number
  key_version: number
  iat: number
  exp: number
  revoked_ms: number | null
  voided_ms: number | null
  /** Since when its agent is asked to give it up. */
  void_asked_ms: number | null
  operator_id: string | null
  /** How the device that asked had read what it asked about. */
  scan_source: string | null
}

/** A grant that rested on its operator's word, kept for an hour. */
export interface OperatorApprovalRow {
  nonce: string
  store_id: string
  operator_id: string
  at_ms: number
}

export interface AuthorizationUnitRow {
  nonce: string
  ordinal: number
  line_id: string
  unit_no: number
}

export interface UnitRightRow {
  line_id: string
  unit_no: number
  right_class: string
  purchase_id: string
  state: string
  nonce: string | null
  device_id: string | null
  until_ms: number | null
  redemption_id: string | null
  outcome: string | null
  failures: number
  /** What its goods came back with: then it is used, and stays so. */
  returned_by: string | null
  /** A home of receipts has given it to another agent at some time: `given_right` tells what became of that. */
  was_given: 0 | 1
}

/** What a home of receipts gave to another agent. */
export interface GivenRightRow {
  line_id: string
  unit_no: number
  right_class: string
  redemption_id: string
  purchase_id: string
  store_id: string
  /** To whom it was given. */
  agent_id: string
  /** `given`, `unknown` or `failed`, as that agent told the home. */
  state: string
  /** When the receipt has ended for every clock, s since 1970. */
  until_s: number
  /** The agent that was the home, and in which epoch. */
  home_agent_id: string
  home_epoch: number
}

export interface RedemptionRow {
  nonce: string
  step: number
  redemption_id: string
  tenant: string
  source: string
  agent_id: string | null
  device_id: string
  at_ms: number
  event_id: string
  outcome: string | null
  /** The unit whose right it used up; null for a fixture. */
  line_id: string | null
  unit_no: number | null
  right_class: string | null
  /** The operator who said what became of it; `reported` is then what the device said. */
  resolved_by: string | null
  reported: string | null
}

export interface JournalRowRow {
  ledger_id: string
  generation: number
  seq: number
  agent_id: string
  hash: string
  body: string
  applied: number
  received_ms: number
}

export interface ProtectionEventRow {
  event_id: string
  tenant: string
  store_id: string
  type: string
  device_id: string | null
  purchase_id: string | null
  occurred_ms: number
  processed_ms: number
  body: string
  /** Follows the order of commits (../positions.ts). */
  position: number
}

export interface ProtectionExceptionRow {
  exception_id: string
  tenant: string
  store_id: string
  kind: string
  subject: string
  device_id: string | null
  purchase_id: string | null
  detail: string
  raised_ms: number
  acknowledged_ms: number | null
  note: string | null
  /** The event that told of it last. */
  event_id: string | null
  times: number
  last_ms: number | null
  acknowledged_by: string | null
}

export interface ProtectionDecisionRow {
  /** Of the event that told of it. */
  event_id: string
  tenant: string
  store_id: string
  at_ms: number
  /** null: granted. */
  reason: string | null
  /** JSON of DecisionFacts[]: one for each unit that was looked at. */
  facts: string
}

export interface DenyEntryRow {
  store_id: string
  seq: number
  body: string
  until_s: number
}
