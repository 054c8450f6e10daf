import { isDeepStrictEqual } from 'node:util'
import type { ItemIdentifiers } from '../../policy/item-identifiers.ts'
import type { KnownItem } from './item-table.ts'
import type { Replica } from './replica.ts'

/** Finds the item with the named tag. If the request names both EPC and UID, the EPC decides. */
export function findByTag(items: Pick<Replica, 'find'>, { epc, tagUid }: ItemIdentifiers): KnownItem | undefined {
  if (epc !== undefined) return items.find('epc', epc)
  return tagUid === undefined ? undefined : items.find('tagUid', tagUid)
}

const TAG_KINDS = ['epc', 'tagUid', 'tagId'] as const

/**
 * Finds the item that a request names, as the cloud does: an identifier without an item says nothing. Undefined if the
 * item is unknown; `several` if the identifiers name different items.
 */
export function findByIdentifiers(
  items: Pick<Replica, 'find'>,
  identifiers: ItemIdentifiers,
): KnownItem | 'several' | undefined {
  const found = TAG_KINDS.flatMap((kind) => findBy(items, identifiers, kind) ?? [])
  const [first] = found
  return found.every((item) => isDeepStrictEqual(item, first)) ? first : 'several'
}

/** The identifier that names another item than the identifiers before it. Undefined if all name one item. */
export function contradicting(
  items: Pick<Replica, 'find'>,
  identifiers: ItemIdentifiers,
): (typeof TAG_KINDS)[number] | undefined {
  const [first, ...others] = TAG_KINDS.flatMap((kind) => {
    const item = findBy(items, identifiers, kind)
    return item ? [{ kind, item }] : []
  })
  return others.find(({ item }) => !isDeepStrictEqual(item, first?.item))?.kind
}

function findBy(items: Pick<Replica, 'find'>, identifiers: ItemIdentifiers, kind: (typeof TAG_KINDS)[number]) {
  const name = identifiers[kind]
  return name === undefined ? undefined : items.find(kind, name)
}
