/** Stock and what is promised of it. Units and forms: ../schema.ts. */

export interface StockLevelRow {
  store_id: string
  product_id: string
  on_hand: number | null
  reserved: number
  updated_ms: number
}

/** `owner_id` is an order or a purchase. `state`: held, or lapsed when its time ran out. */
export interface StockReservationRow {
  owner_id: string
  product_id: string
  store_id: string
  quantity: number
  state: string
  expires_ms: number
}
