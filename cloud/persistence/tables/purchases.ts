/** Sessions, purchases, their lines and single units. Units and forms: ../schema.ts. */

export interface ShoppingSessionRow {
  session_id: string
  tenant: string
  store_id: string
  user_id: string | null
  created_ms: number
  /** Its purchases that are paid and not taken back. */
  completed: number
  /** 1: a spot check has picked it, and staff have not looked yet. */
  spot_check_due: number
  /** The userId came with a secret key: it is who the merchant says it is. */
  vouched: number
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
  approval: 'awaiting' | 'approved' | 'refused' | null
  approval_reason: 'age' | 'spot_check' | null
  approved_by: string | null
  payment_by_ms: number | null
  created_ms: number
  completed_ms: number | null
  /** Of the transaction that completed it (../positions.ts). */
  completed_position: number | null
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
  /** The line whose deposit this one is. */
  deposit_of: string | null
  /** The label that was scanned, where a scale printed it. */
  barcode: string | null
  weight_grams: number | null
  kg_price_cent: number | null
}

export interface PurchaseUnitRow {
  line_id: string
  unit_no: number
  purchase_id: string
  item_id: string | null
  bound: number
  receipt_index: number | null
  /** The status that a cancellation gave to its item. */
  taken_back: string | null
}
