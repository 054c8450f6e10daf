/**
 * Stores and products. The catalogue reads derived data: one rendered document per store and product (`doc`), search
 * terms and counts. The derived data is computed from `product` and `store_product`.
 */
export const STORES: readonly string[] = [
  // `in_store_codes`: Patterns of the store's own barcodes, JSON; null: the default patterns. `gln`: 13 digits.
  `CREATE TABLE store (
    store_id text PRIMARY KEY, tenant text NOT NULL, legal_name text NOT NULL, trading_name text NOT NULL, street text NOT NULL,
    city text NOT NULL, postal_code text NOT NULL, country_code text NOT NULL, lat double precision, lng double precision,
    phone text, email text, website text, package text NOT NULL, has_scan_and_go bigint NOT NULL, has_offers bigint NOT NULL,
    opening_hours text, media text, social text, psp_account_id text,
    security_tag_mode text NOT NULL, security_tag_hint text, protection_technology text, device_type text, workflow_type text,
    policy text NOT NULL, policy_version bigint NOT NULL, document_version bigint NOT NULL, deny_seq bigint NOT NULL,
    created_ms bigint NOT NULL, in_store_codes text, gln text)`,
  `CREATE INDEX store_by_tenant ON store (tenant, store_id)`,
  // `nutrition`: JSON. `media_snapshot`: Address of the uploaded image. `deposit_cent`: Deposit for one piece.
  // `deposit_vat`: VAT rate of the deposit, percent; null: the product's rate.
  `CREATE TABLE product (
    product_id text PRIMARY KEY, tenant text NOT NULL, ean text NOT NULL, name text NOT NULL, name_lower text NOT NULL,
    brand text, brand_lower text, price_cent bigint NOT NULL, old_price_cent bigint, vat bigint NOT NULL, category text,
    unit text, description text, image_url text, weight text, is_organic bigint, is_vegan bigint, allergens text,
    requires_human_verification bigint NOT NULL, tagged bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL,
    nutrition text, media_snapshot text, from_pos bigint NOT NULL DEFAULT 0, pos_product_id text, deposit_cent bigint,
    deposit_vat bigint, UNIQUE (tenant, ean))`,
  // Small picture of an uploaded image, for the agents. `image_url`: Address of the image, as products name it.
  // `hash`: SHA-256 of the picture, base64url. `bytes`: WebP, base64url.
  `CREATE TABLE product_picture (image_url text PRIMARY KEY, hash text NOT NULL, bytes text NOT NULL)`,
  // Bytes of the pictures that a tenant uploaded, also of those that it replaced: their files stay.
  `CREATE TABLE image_room (tenant text PRIMARY KEY, bytes bigint NOT NULL)`,
  `CREATE INDEX product_picture_by_hash ON product_picture (hash)`,
  // `category`: The product's category, folded, for filters. Null if it is blank. `updated_ms`: Time of the last
  // price change in this store. `doc`: JSON of the product with this store's price, as responses contain it. `words`:
  // The search terms of the product, with a space before and after each. `listing_no`: Number of this listing in the
  // search index; unique in the store.
  `CREATE TABLE store_product (
    store_id text NOT NULL REFERENCES store (store_id), product_id text NOT NULL REFERENCES product (product_id),
    price_cent bigint NOT NULL, old_price_cent bigint, category text, updated_ms bigint NOT NULL DEFAULT 0,
    doc text NOT NULL DEFAULT '', words text NOT NULL, listing_no bigint NOT NULL, PRIMARY KEY (store_id, product_id))`,
  // The number after CACHE is LISTING_BLOCK of listing-numbers.ts. Dropping the table drops the sequence, too.
  `CREATE SEQUENCE listing_number MINVALUE 0 CACHE 4096 OWNED BY store_product.listing_no`,
  `CREATE UNIQUE INDEX store_product_by_number ON store_product (store_id, listing_no)`,
  `CREATE INDEX store_product_by_product ON store_product (product_id, store_id)`,
  `CREATE INDEX store_product_by_category ON store_product (store_id, category, product_id)`,
  // Changed products. A job writes their listings in the stores after `after_store`, then from the first store if
  // `again` is 1. `queued_ms`: Time of the change. An account's products are processed in this order. `again`: 1 if
  // the product changed again: all its listings must be written once more after this pass. `is_news`: 1 if agents
  // must receive the items of the product again.
  `CREATE TABLE listing_refresh (
    product_id text PRIMARY KEY REFERENCES product (product_id), tenant text NOT NULL, queued_ms bigint NOT NULL,
    after_store text NOT NULL, again bigint NOT NULL, is_news bigint NOT NULL)`,
  `CREATE INDEX listing_refresh_by_tenant ON listing_refresh (tenant, queued_ms, product_id)`,
  // Sorted by bytes, because a prefix search is a range of bytes. A row contains all listings of one block that have
  // the word (shop/catalogue/search-queries.ts). `block`: Listing number divided by `LISTING_BLOCK`. `products`: The
  // listings, as shop/catalogue/search-queries.ts writes them.
  `CREATE TABLE product_word (
    store_id text NOT NULL, word text COLLATE "C" NOT NULL, block bigint NOT NULL, products text NOT NULL,
    PRIMARY KEY (store_id, word, block)) /* clustered */`,
  // These tables stay empty. PostgreSQL transactions lock them (ADR database).
  `CREATE TABLE gate_catalogue (unused bigint)`,
  `CREATE TABLE gate_sales (unused bigint)`,
  // The category '' stands for all categories. A count is the sum over all slots. Each connection to PostgreSQL adds to
  // a row of its own, so that concurrent writers do not wait for each other.
  `CREATE TABLE product_count (
    store_id text NOT NULL, category text NOT NULL, slot bigint NOT NULL DEFAULT (pg_backend_pid() % 128),
    products bigint NOT NULL, PRIMARY KEY (store_id, category, slot))`,
]
