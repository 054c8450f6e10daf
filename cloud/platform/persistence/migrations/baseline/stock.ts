/**
 * Stock levels and reservations. `reserved` is the sum of the reservations with state `held`. Each transaction that
 * changes a reservation also updates `reserved`. If a product has no row, or `on_hand` is null, its stock is unknown.
 */
export const STOCK: readonly string[] = [
  `CREATE TABLE stock_level (
    store_id text NOT NULL REFERENCES store (store_id), product_id text NOT NULL REFERENCES product (product_id), on_hand bigint,
    reserved bigint NOT NULL CHECK (reserved >= 0), updated_ms bigint NOT NULL, PRIMARY KEY (store_id, product_id))`,
  `CREATE TABLE stock_reservation (
    owner_id text NOT NULL, product_id text NOT NULL, store_id text NOT NULL, quantity bigint NOT NULL, state text NOT NULL,
    gives_way bigint NOT NULL, expires_ms bigint NOT NULL, PRIMARY KEY (owner_id, product_id))`,
  `CREATE INDEX stock_reservation_by_expiry ON stock_reservation (state, expires_ms)`,
  `CREATE INDEX stock_reservation_by_product ON stock_reservation (store_id, product_id, gives_way, state, expires_ms)`,
]
