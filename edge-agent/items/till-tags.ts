import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { ItemTable, KnownItem } from './item-table.ts'

/** Status of a tag by a report of a till, and the position of the items that contains it; `ver` null: not known yet. */
export interface TillTag {
  readonly status: ItemStatus
  readonly epoch: number
  readonly ver: number | null
  /** When this agent stored the report, trusted ms. */
  readonly storedMs: number
}

/** What tills reported of tags, by their key. */
export interface TillTags {
  tag(key: string): TillTag | undefined
  /** Keys of the tags that a till gave one of these statuses, at most `limit`; `paid` is not among them. */
  in(statuses: ReadonlySet<ItemStatus>, limit: number): readonly string[]
}

/** An agent without tills. */
export const NO_TILL_TAGS: TillTags = { tag: () => undefined, in: () => [] }

/** Tills also sell goods that came back before staff checked them, and ring goods up again after a void. */
export const MAY_BE_SOLD: ReadonlySet<ItemStatus> = new Set(['sellable', 'returned', 'cancelled'])

/**
 * A report of a till changes only what the till can know: goods that may be sold are paid, and goods that were sold
 * came back. Goods that must stay for another reason stay.
 */
export function withReport(item: KnownItem, { status, storedMs }: TillTag): KnownItem {
  if (status === 'paid') return MAY_BE_SOLD.has(item.status) ? { ...item, status, paying: false } : item
  const isSold = item.status === 'paid' || item.status === 'picked_up'
  if (!isSold && item.status !== 'sellable') return item
  return { ...item, status, paying: false, ...(status === 'sellable' && { backMs: storedMs }) }
}

/** Most names that one decision compares, in about a tenth of a second: more would stop the gates. */
const NAMES_LIMIT = 50_000

/** Names of the items in one of these statuses, by table or report; undefined if there are more than `NAMES_LIMIT`. */
export function namesIn(
  table: Pick<ItemTable, 'get' | 'namesIn'>,
  tillTags: TillTags,
  statuses: ReadonlySet<ItemStatus>,
): string[] | undefined {
  const reported = tillTags.in(statuses, NAMES_LIMIT + 1)
  if (reported.length > NAMES_LIMIT) return undefined
  // A till may name tags that no item has.
  const names = reported.filter((key) => table.get(key) !== undefined)
  for (const name of table.namesIn(statuses)) if (names.push(name) > NAMES_LIMIT) return undefined
  return names
}
