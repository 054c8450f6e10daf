/** Daily figures of stores. Units: ../schema.ts. */

/** The columns after `tenant` are counters or cents, to which transactions add. */
export interface StoreDayRow {
  store_id: string
  /** `2026-11-20`, in the store's time zone. */
  day: string
  tenant: string
  sessions: number
  /** Sessions of that day with a purchase that was not cancelled. */
  sessions_completed: number
  completed_checkouts: number
  revenue_cent: number
  items_scanned: number
  offer_clicks: number
  offer_favorites: number
  profile_views: number
  messages: number
  new_followers: number
  lost_followers: number
  /** Receipts issued and refunds made on that day; they never decrease. */
  receipts: number
  refunds: number
  /** Sales of tills, apart from the figures above; `till_receipts` and `till_refunds` never decrease. */
  till_sales: number
  till_receipts: number
  till_refunds: number
  till_cent: number
  till_items: number
}

export interface StoreDayVatRow {
  store_id: string
  day: string
  /** Percent. */
  rate: number
  /** 1: sales of tills. */
  is_till: number
  tenant: string
  sales_cent: number
  sales_tax_cent: number
  refund_cent: number
  refund_tax_cent: number
}

export interface StoreClosingRow {
  store_id: string
  number: number
  tenant: string
  from_day: string
  to_day: string
  closed_ms: number
  body: string
}

export interface FollowerRow {
  store_id: string
  user_id: string
  tenant: string
  since_ms: number
}

export interface OfferFavoriteRow {
  store_id: string
  offer_id: string
  user_id: string
  tenant: string
  since_ms: number
}
