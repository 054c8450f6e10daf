/** Stock and reservations. Units: ../schema.ts. */

export interface StockLevelRow {
  store_id: string
  product_id: string
  on_hand: number | null
  reserved: number
  updated_ms: number
}

/**
 * `owner_id` is an order or a purchase. `state`: held, or lapsed after the expiry of the reservation. `gives_way`: 1 if
 * a sale by staff or by a server of the merchant may end it, because it is of an unpaid basket of a shopper's app.
 */
export interface StockReservationRow {
  owner_id: string
  product_id: string
  store_id: string
  quantity: number
  state: string
  gives_way: number
  expires_ms: number
}
