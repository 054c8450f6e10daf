import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { KnownItem } from './item-table.ts'

/** Status of a tag by a report of a till, and the position of the items that contains it; `ver` null: not known yet. */
export interface TillTag {
  readonly status: ItemStatus
  readonly epoch: number
  readonly ver: number | null
}

/** What tills reported of tags, by their key. */
export interface TillTags {
  tag(key: string): TillTag | undefined
  /** Keys of the tags that a till gave one of these statuses; `paid` is not among them. */
  in(statuses: ReadonlySet<ItemStatus>): readonly string[]
}

/** An agent without tills. */
export const NO_TILL_TAGS: TillTags = { tag: () => undefined, in: () => [] }

/**
 * A report of a till changes only what the till can know: goods that were for sale are paid, and goods that were sold
 * came back. Goods that must stay for another reason stay.
 */
export function withReport(item: KnownItem, status: ItemStatus): KnownItem {
  if (status === 'paid') return item.status === 'sellable' ? { ...item, status, paying: false } : item
  const isSold = item.status === 'paid' || item.status === 'picked_up'
  return isSold || item.status === 'sellable' ? { ...item, status, paying: false } : item
}
