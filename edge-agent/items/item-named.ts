import type { ItemIdentifiers } from '../../policy/identifiers.ts'
import type { KnownItem } from './item-table.ts'
import type { Replica } from './replica.ts'

/** What is known of the item that wears the tag which is named. */
export function itemNamed(items: Pick<Replica, 'find'>, { epc, tagUid }: ItemIdentifiers): KnownItem | undefined {
  if (epc !== undefined) return items.find('epc', epc)
  return tagUid === undefined ? undefined : items.find('tagUid', tagUid)
}
