import type { Migration } from './migration.ts'

/** The orders that an item is kept for are looked up when staff free it by hand. */
export const KEPT_BY_ITEM: Migration = {
  name: '0026-kept-by-item',
  statements: [`CREATE INDEX pickup_order_item_by_item ON pickup_order_item (item_id)`],
}
