/**
 * The tables as queries see them (migrations/). Times are ms since 1970 (`_ms`) or seconds (`_s`, `iat`,
 * `exp`), money is whole cents, yes and no are 1 and 0, JSON is text.
 */

export interface AccountRow {
  account_id: string
  name: string
  package: string
  status: string
  created_ms: number
}

export interface ApiKeyRow {
  key_id: string
  account_id: string
  mode: string
  kind: string
  hash: string
  shown: string
  name: string
  store_ids: string | null
  created_ms: number
  expires_ms: number | null
  last_used_ms: number | null
  revoked_ms: number | null
}

export interface AuditEntryRow {
  entry_id: string
  tenant: string
  at_ms: number
  actor: string
  operation: string
  entity_id: string | null
  request_id: string
}

export interface IdempotencyRow {
  tenant: string
  operation: string
  key_hash: string
  request_hash: string
  status: number
  body: string
  basis: string | null
  valid_until_ms: number | null
  created_ms: number
}

export interface StoreRow {
  store_id: string
  tenant: string
  legal_name: string
  trading_name: string
  street: string
  city: string
  postal_code: string
  country_code: string
  lat: number | null
  lng: number | null
  phone: string | null
  email: string | null
  website: string | null
  package: string
  has_scan_and_go: number
  has_offers: number
  opening_hours: string | null
  media: string | null
  social: string | null
  psp_account_id: string | null
  receipt_count: number
  security_tag_mode: string
  security_tag_hint: string | null
  protection_technology: string | null
  device_type: string | null
  workflow_type: string | null
  policy: string
  policy_version: number
  document_version: number
  deny_seq: number
  created_ms: number
}

export interface ProductRow {
  product_id: string
  tenant: string
  ean: string
  name: string
  name_lower: string
  brand: string | null
  brand_lower: string | null
  price_cent: number
  old_price_cent: number | null
  vat: number
  category: string | null
  unit: string | null
  description: string | null
  image_url: string | null
  weight: string | null
  is_organic: number | null
  is_vegan: number | null
  allergens: string | null
  requires_human_verification: number
  tagged: number
  created_ms: number
  updated_ms: number
}

export interface StoreProductRow {
  store_id: string
  product_id: string
  price_cent: number
  old_price_cent: number | null
}

export interface ShoppingSessionRow {
  session_id: string
  tenant: string
  store_id: string
  user_id: string | null
  created_ms: number
}

export interface PurchaseRow {
  purchase_id: string
  tenant: string
  store_id: string
  session_id: string
  user_id: string | null
  checkout_session_id: string | null
  status: string
  currency: string
  total_cent: number
  security_tag_mode: string
  security_tag_status: string | null
  price_origin: string
  cti: string | null
  receipt_token: string | null
  receipt_exp: number | null
  cancel_reason: string | null
  refund_status: string | null
  deny_seq: number | null
  created_ms: number
  completed_ms: number | null
  rev: number
}

export interface PurchaseLineRow {
  line_id: string
  purchase_id: string
  line_no: number
  name: string
  ean: string | null
  product_id: string | null
  price_cent: number
  quantity: number
  vat: number
  category: string | null
  brand: string | null
  price_origin: string
  serial_number: string | null
  tagged: number
}

export interface PurchaseUnitRow {
  line_id: string
  unit_no: number
  purchase_id: string
  item_id: string | null
  bound: number
  receipt_index: number | null
}

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
}

export interface AgentRow {
  agent_id: string
  tenant: string
  store_id: string
  name: string
  x: string
  ledger_id: string
  generation: number
  last_seq: number
  head_hash: string
  deny_seq: number
  enrolled_ms: number
  last_seen_ms: number
  revoked_ms: number | null
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
  registered_ms: number
  last_seen_ms: number | null
  revoked_ms: number | null
}

export interface OperatorRow {
  operator_id: string
  tenant: string
  store_id: string
  name: string
  verifiers: string
  created_ms: number
  removed_ms: number | null
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
  operator_id: string | null
  rev: number
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
}

export interface DenyEntryRow {
  store_id: string
  seq: number
  body: string
  until_s: number
}

export interface SigningKeyRow {
  kid: string
  iss: string
  key_use: string
  x: string
  sealed: string
  state: string
  created_ms: number
}

export interface SealedSecretRow {
  name: string
  sealed: string
}

export interface SignedDocumentRow {
  kind: string
  aud: string
  epoch: number
  ver: number
  hash: string
  jws: string
  iat: number
}

export interface InstallationRow {
  name: string
  value: string
}

export interface OutboxEventRow {
  event_id: string
  tenant: string
  store_id: string | null
  type: string
  at_ms: number
  data: string
}

export interface Schema {
  account: AccountRow
  api_key: ApiKeyRow
  audit_entry: AuditEntryRow
  idempotency: IdempotencyRow
  store: StoreRow
  product: ProductRow
  store_product: StoreProductRow
  shopping_session: ShoppingSessionRow
  purchase: PurchaseRow
  purchase_line: PurchaseLineRow
  purchase_unit: PurchaseUnitRow
  protected_item: ProtectedItemRow
  agent: AgentRow
  enrolment_code: EnrolmentCodeRow
  agent_challenge: AgentChallengeRow
  agent_session: AgentSessionRow
  device: DeviceRow
  operator: OperatorRow
  protection_authorization: ProtectionAuthorizationRow
  authorization_unit: AuthorizationUnitRow
  unit_right: UnitRightRow
  redemption: RedemptionRow
  journal_row: JournalRowRow
  protection_event: ProtectionEventRow
  protection_exception: ProtectionExceptionRow
  deny_entry: DenyEntryRow
  signing_key: SigningKeyRow
  sealed_secret: SealedSecretRow
  signed_document: SignedDocumentRow
  installation: InstallationRow
  outbox_event: OutboxEventRow
}
