import { isDeepStrictEqual } from 'node:util'
import type { ItemIdentifiers } from '../../policy/item-identifiers.ts'
import type { KnownItem } from './item-table.ts'
import type { Replica } from './replica.ts'

/** Finds the item with the named tag. If the request names both EPC and UID, the EPC decides. */
export function findByTag(items: Pick<Replica, 'find'>, { epc, tagUid }: ItemIdentifiers): KnownItem | undefined {
  if (epc !== undefined) return items.find('epc', epc)
  return tagUid === undefined ? undefined : items.find('tagUid', tagUid)
}

/**
 * Finds the item that a request names. Undefined if the item is unknown, or if the identifiers name different items.
 */
export function findByIdentifiers(items: Pick<Replica, 'find'>, identifiers: ItemIdentifiers): KnownItem | undefined {
  const found = (['epc', 'tagUid', 'tagId'] as const).flatMap((kind) => {
    const name = identifiers[kind]
    return name === undefined ? [] : [items.find(kind, name)]
  })
  const [first] = found
  return found.every((item) => isDeepStrictEqual(item, first)) ? first : undefined
}
