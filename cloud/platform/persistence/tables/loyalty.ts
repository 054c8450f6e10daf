/** Loyalty programs and their entries. Units: ../schema.ts; amounts are points, stamps or cents of a cashback. */

export interface LoyaltyProgramRow {
  program_id: string
  tenant: string
  store_id: string
  name: string
  type: string
  earning_methods: string
  points_per_euro_milli: number
  stamps_per_visit: number
  cashback_basis_points: number
  points_valid_months: number | null
  rewards: string
  tiers: string
  is_active: number
  created_ms: number
  updated_ms: number
}

export interface LoyaltyMemberRow {
  program_id: string
  user_id: string
  balance: number
  month: string
  enrolled_ms: number
  last_qr_ms: number | null
  last_visit_ms: number | null
  next_expiry_ms: number | null
  /** Number of cards that were issued to the member. Only the last one is valid. */
  card_number: number
  /** SHA-256 of the code of the valid card, hex. */
  card_hash: string | null
}

/** Monthly sum of the entries of one kind, signed; kind `join` counts new members. */
export interface LoyaltyMonthRow {
  program_id: string
  month: string
  kind: string
  amount: number
  entries: number
}

/** `amount` is signed: deductions are negative. `reverses` is the id of the reversed entry. */
export interface LoyaltyEntryRow {
  entry_id: string
  tenant: string
  program_id: string
  user_id: string
  kind: string
  amount: number
  balance: number
  source: string | null
  transaction_id: string | null
  reward_id: string | null
  reverses: string | null
  month: string
  at_ms: number
  expires_ms: number | null
  /** Amount of the purchase for which the entry was earned, less earlier refunds, cents; null: the whole total. */
  earned_on_cent: number | null
}
