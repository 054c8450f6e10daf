/** Stores and products. Units: ../schema.ts. */

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
  /** Patterns of the store's own barcodes, JSON; null: the default patterns. */
  in_store_codes: string | null
  /** 13 digits. */
  gln: string | null
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
  /** JSON. */
  nutrition: string | null
  /** Address of the uploaded image. */
  media_snapshot: string | null
  from_pos: number
  pos_product_id: string | null
  /** Deposit for one piece. */
  deposit_cent: number | null
  /** VAT rate of the deposit, percent; null: the product's rate. */
  deposit_vat: number | null
}

/** Small picture of an uploaded image, for the agents. */
export interface ProductPictureRow {
  /** Address of the image, as products name it. */
  image_url: string
  /** SHA-256 of the picture, base64url. */
  hash: string
  /** WebP, base64url. */
  bytes: string
}

export interface StoreProductRow {
  store_id: string
  product_id: string
  price_cent: number
  old_price_cent: number | null
  /** The product's category, folded, for filters. Null if it is blank. */
  category: string | null
  /** Time of the last price change in this store. */
  updated_ms: number
  /** JSON of the product with this store's price, as responses contain it. */
  doc: string
  /** The search terms of the product, with a space before and after each. */
  words: string
  /** Number of this listing in the search index; unique in the store. */
  listing_no: number
}

/** A changed product whose listings in the stores after `after_store` a job must write (refresh-listings.ts). */
export interface ListingRefreshRow {
  product_id: string
  tenant: string
  /** Time of the change. An account's products are processed in this order. */
  queued_ms: number
  after_store: string
  /** 1 if the product changed again: all its listings must be written once more after this pass. */
  again: number
  /** 1 if agents must receive the items of the product again. */
  is_news: number
}

/** For one store, one search term and one block of listing numbers: the listings whose product has the term. */
export interface ProductWordRow {
  store_id: string
  word: string
  /** Listing number divided by `LISTING_BLOCK`. */
  block: number
  /** The listings, as shop/catalogue/search-queries.ts writes them. */
  products: string
}

/** Number of products of a store in a folded category. The category '' means all categories. */
export interface ProductCountRow {
  store_id: string
  category: string
  products: number
}
