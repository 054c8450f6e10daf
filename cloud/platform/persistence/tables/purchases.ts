/** Sessions, purchases, lines and units. Units of measurement of the columns: ../schema.ts. */

export interface ShoppingSessionRow {
  session_id: string
  tenant: string
  store_id: string
  user_id: string | null
  created_ms: number
  /** The newest purchase of the session; null before the first checkout. */
  purchase_id: string | null
  /** Number of paid purchases of this session that were not cancelled. */
  completed: number
  /** 1: the session was selected for a spot check, which staff still have to do. */
  spot_check_due: number
  /** 1: a secret key sent the userId, so the merchant vouches for it. */
  vouched: number
}

export interface PurchaseRow {
  purchase_id: string
  tenant: string
  store_id: string
  /** Null for a sale of a till. */
  session_id: string | null
  user_id: string | null
  checkout_session_id: string | null
  status: string
  currency: string
  total_cent: number
  /** Sum of the goods at their values (cloud/shop/purchases/line-value.ts), without coupons. */
  value_cent: number
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
  /** Position of the transaction that completed the purchase (../positions.ts). */
  completed_position: number | null
  /** JSON of the names that a till gave its sale (`SaleName` of policy/till-sale.ts); null: sold through untag. */
  till: string | null
  /** Text of the till's fiscal device. */
  fiscal: string | null
  rev: number
}

/** Table `purchase_line`. */
export interface PurchaseLineTable extends PurchaseLineRow {
  /** Account of the purchase, so that the search by EAN reads no lines of other accounts. */
  tenant: string
}

export interface PurchaseLineRow {
  line_id: string
  purchase_id: string
  line_no: number
  name: string
  ean: string | null
  product_id: string | null
  /** Negative on a coupon line. */
  price_cent: number
  /** Price that the store would have charged; null if no till set another price. */
  list_price_cent: number | null
  price_reason: string | null
  quantity: number
  vat: number
  category: string | null
  brand: string | null
  price_origin: string
  serial_number: string | null
  tagged: number
  /** The line that this deposit belongs to. */
  deposit_of: string | null
  /** The scanned label of a scale. */
  barcode: string | null
  weight_grams: number | null
  kg_price_cent: number | null
  lot: string | null
  /** `YYYY-MM-DD` */
  expiry: string | null
  serial: string | null
  /** Id that the till gave the line of its sale. */
  till_line: string | null
}

export interface PurchaseUnitRow {
  line_id: string
  unit_no: number
  purchase_id: string
  item_id: string | null
  bound: number
  receipt_index: number | null
  /** Status that a cancellation set for the unit's item; null: the item was not returned. */
  taken_back: string | null
}
