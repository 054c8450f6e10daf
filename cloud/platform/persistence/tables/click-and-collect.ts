/** Click and collect orders. Units: ../schema.ts. */

export interface PickupOrderRow {
  order_id: string
  tenant: string
  store_id: string
  user_id: string
  status: string
  total_cent: number
  currency: string
  note: string | null
  pickup_ms: number | null
  estimated_ms: number
  code_hash: string
  reason: string | null
  expires_ms: number | null
  created_ms: number
  updated_ms: number
  picked_up_ms: number | null
  /** 1 if the customer has paid. */
  paid: number
  /** Device of the locker in which the goods wait; null without a locker. */
  locker_device_id: string | null
  rev: number
}

export interface PickupOrderLineRow {
  order_id: string
  line_no: number
  product_id: string
  ean: string
  name: string
  price_cent: number
  vat: number
  quantity: number
}

/** A tagged item reserved for an order. */
export interface PickupOrderItemRow {
  order_id: string
  item_id: string
  line_no: number
}
