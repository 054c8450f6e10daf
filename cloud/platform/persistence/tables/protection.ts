import type { Generated } from 'kysely'

/** Protected items, release rights, authorizations, redemptions and exceptions. Units: ../schema.ts. */

export interface ProtectedItemRow {
  item_id: string
  tenant: string
  store_id: string
  epc: string | null
  tag_uid: string | null
  tag_id: string | null
  /** `tag_id` in the form in which it is compared. */
  tag_id_folded: string | null
  tag_technology: string | null
  protection_technology: string | null
  serial_number: string | null
  product_id: string | null
  ean: string | null
  brand: string | null
  category: string | null
  price_cent: number | null
  lot: string | null
  /** Last day on which the unit may be sold, `YYYY-MM-DD`. */
  expiry: string | null
  /** Serial of GS1 (application identifier 21), which is printed on the goods or part of the EPC. */
  serial: string | null
  item_status: string
  purchase_id: string | null
  line_id: string | null
  unit_no: number | null
  rev: number
  created_ms: number
  updated_ms: number
  /** Sequence number of the item's last change. A store numbers the changes of all its items. */
  item_seq: number
}

/** Last sequence number of item changes in a store. */
export interface ItemHeadRow {
  store_id: string
  seq: number
  /** Rows of `item_gone` below this number have been deleted. */
  floor: number
}

/** An identifier that an item no longer has. */
export interface ItemGoneRow {
  store_id: string
  kind: string
  name: string
  seq: number
  gone_ms: number
}

/** A product whose facts changed: the items in the store after `after_item` must be published again. */
export interface ItemRefreshRow {
  store_id: string
  product_id: string
  after_item: string
}

/** A recall of goods (protection/items/recalls.ts). */
export interface ProductRecallRow {
  recall_id: string
  tenant: string
  /** JSON array; null: all stores of the account. */
  store_ids: string | null
  product_id: string
  ean: string
  lot: string | null
  expiry: string | null
  serial: string | null
  reason: string
  started_ms: number
  started_by: string
  ended_ms: number | null
  ended_by: string | null
  /** The items after this one must be published again; null: all are published. */
  publish_after: string | null
  /** The receipts of purchases after this one must be published; null: all are published, or there are none. */
  receipts_after: string | null
  /** Items that matched when the recall began, and those of them that were sold; counted while they are published. */
  items: number
  sold_items: number
}

/** Tokens that must still be revoked (protection/leases/token-revocations.ts). */
export interface TokenRevocationRow {
  revocation_id: string
  tenant: string
  /** JSON of a `TokenScope`. */
  scope: string
  reason: string
  /** Tokens that were issued later stay valid, s. */
  until_s: number
  /** The last token that was looked at. */
  after_exp: number
  after_nonce: string
}

export interface AlarmDispositionRow {
  event_id: string
  tenant: string
  store_id: string
  disposition: string
  operator_id: string
  recovered_cent: number | null
  disposed_ms: number
  /** Earlier dispositions of the alarm as JSON, the latest first; null if there were none. */
  earlier: string | null
}

/** A change of an item's status, with its identifiers at that time. */
export interface ItemMoveRow {
  item_id: string
  /** The item's revision after the change. */
  rev: number
  tenant: string
  store_id: string
  /** null: the item was registered. */
  from_status: string | null
  to_status: string
  epc: string | null
  tag_uid: string | null
  tag_id: string | null
  ean: string | null
  purchase_id: string | null
  line_id: string | null
  at_ms: number
  /** Reason that the caller of `updateItemStatus` sent. */
  reason: string | null
  operator_id: string | null
  /** When an agent stored the report of a till that moved the item; null: `at_ms`. */
  reported_ms: number | null
  /** Position of the transaction that stored the row (../positions.ts). */
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
  /** Time at which the cloud first requested that the agent gives up the authorization. */
  void_asked_ms: number | null
  operator_id: string | null
  /** How the device read the goods. */
  scan_source: string | null
}

/** A grant that an operator approved. Rows are deleted after an hour. */
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
  /** Id of the refund, cancellation or item move that returned the goods. The right then stays used permanently. */
  returned_by: string | null
  /** 1 if a receipt home ever delegated this right to another agent; `delegated_right` contains the outcome. */
  was_given: 0 | 1
}

/** Table `unit_right`. `denied`: 1 if the deny list names the used right (receipt-home/deny-used-rights.ts). */
export interface UnitRightTable extends UnitRightRow {
  denied: Generated<0 | 1>
}

/** A right that a receipt home delegated to another agent. */
export interface DelegatedRightRow {
  line_id: string
  unit_no: number
  right_class: string
  redemption_id: string
  purchase_id: string
  store_id: string
  /** Agent that received the right. */
  agent_id: string
  /** `delegated`, or the outcome that the agent reported to the receipt home: `unknown` or `failed`. */
  state: string
  /** Expiry of the receipt plus clock guard, s since 1970. */
  until_s: number
  /** Agent that was the receipt home at the delegation, and the home epoch at that time. */
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
  /** Line and unit of the used right; null if it used no right. */
  line_id: string | null
  unit_no: number | null
  right_class: string | null
  /** Operator who resolved the outcome; `reported` is then the outcome that the device reported. */
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
  /** Identity of the receipt, or nonce of the token, that an unapplied row is about. */
  about: string | null
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
  /** Position of the transaction that stored the row (../positions.ts). */
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
  /** Id of the last event about the exception. */
  event_id: string | null
  times: number
  last_ms: number | null
  acknowledged_by: string | null
}

export interface ProtectionDecisionRow {
  /** Id of the event of this decision. */
  event_id: string
  tenant: string
  store_id: string
  at_ms: number
  /** null: granted. */
  reason: string | null
  /** JSON of DecisionFacts[]: one for each evaluated unit. */
  facts: string
}

export interface DenyEntryRow {
  store_id: string
  seq: number
  body: string
  until_s: number
}
