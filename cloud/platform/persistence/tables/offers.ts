/** Offers, their branch documents and their prices. Units: ../schema.ts. */

/**
 * Data that all branches of an offer share. A job sets `status`. Responses compute the status from the clock instead.
 */
export interface OfferGroupRow {
  group_id: string
  tenant: string
  /** Id of the first branch document. Listings use this id as the offer's id, even if that branch was removed. */
  lead_id: string
  title: string
  description: string
  description_generated: number
  merchant_color: string
  tags: string | null
  image_url: string | null
  quantity: number | null
  valid_from_ms: number
  valid_to_ms: number
  status: string
  /** Time of the next change of `status`; null: none. */
  due_ms: number | null
  discount_percent: number
  product_count: number
  store_count: number
  created_ms: number
  updated_ms: number
  rev: number
}

export interface OfferRow {
  offer_id: string
  tenant: string
  group_id: string
  branch_no: number
  store_id: string
  list_id: string
  /** 0: the branch was removed from the offer. */
  is_active: number
  valid_from_ms: number
  valid_to_ms: number
  click_count: number
  favorited_count: number
  created_ms: number
}

/** Products at the prices of some branches: JSON of cloud/shop/offers/offer-products.ts. */
export interface OfferListRow {
  list_id: string
  tenant: string
  products: string
  discount_percent: number
}

export interface OfferPriceRow {
  list_id: string
  ean: string
  price_cent: number
}
