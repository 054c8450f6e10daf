/**
 * Offers. `offer_group` contains the data that all branches share; `offer` is the document of one store. `offer_list`
 * contains products and prices. Branches with the same prices share a list.
 */
export const OFFERS: readonly string[] = [
  `CREATE TABLE offer_group (
    group_id text PRIMARY KEY, tenant text NOT NULL, lead_id text NOT NULL UNIQUE, title text NOT NULL, description text NOT NULL,
    description_generated bigint NOT NULL, merchant_color text NOT NULL, tags text, image_url text, quantity bigint,
    valid_from_ms bigint NOT NULL, valid_to_ms bigint NOT NULL, status text NOT NULL, due_ms bigint,
    discount_percent bigint NOT NULL, product_count bigint NOT NULL, store_count bigint NOT NULL, created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL, rev bigint NOT NULL)`,
  `CREATE INDEX offer_group_by_tenant ON offer_group (tenant, lead_id)`,
  `CREATE INDEX offer_group_by_due ON offer_group (due_ms) WHERE due_ms IS NOT NULL`,
  `CREATE TABLE offer_list (
    list_id text PRIMARY KEY, tenant text NOT NULL, products text NOT NULL, discount_percent bigint NOT NULL)`,
  `CREATE TABLE offer_price (
    list_id text NOT NULL REFERENCES offer_list (list_id), ean text NOT NULL, price_cent bigint NOT NULL,
    PRIMARY KEY (list_id, ean))`,
  // The validity is a copy from `offer_group`, so that the offers for a basket are one range of one index.
  `CREATE TABLE offer (
    offer_id text PRIMARY KEY, tenant text NOT NULL, group_id text NOT NULL REFERENCES offer_group (group_id),
    branch_no bigint NOT NULL, store_id text NOT NULL REFERENCES store (store_id),
    list_id text NOT NULL REFERENCES offer_list (list_id), is_active bigint NOT NULL, valid_from_ms bigint NOT NULL,
    valid_to_ms bigint NOT NULL, click_count bigint NOT NULL, favorited_count bigint NOT NULL, created_ms bigint NOT NULL)`,
  `CREATE INDEX offer_by_group ON offer (group_id, branch_no)`,
  `CREATE UNIQUE INDEX one_branch_a_store ON offer (group_id, store_id) WHERE is_active = 1`,
  `CREATE INDEX offer_by_store ON offer (store_id, is_active, valid_to_ms)`,
  `CREATE INDEX offer_by_list ON offer (list_id)`,
]
