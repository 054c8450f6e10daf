import {
  normaliseIdentifiers,
  type ItemIdentifierInput,
  type ItemIdentifiers,
} from '../../../policy/item-identifiers.ts'
import { invalid } from '../../platform/foundation/failure.ts'

/** Lists of tags in a request: a line of a basket, an order, a refund. */
export interface TagLists {
  epcs?: readonly string[] | undefined
  tagUids?: readonly string[] | undefined
  tagIds?: readonly string[] | undefined
}

/** The tags of the lists in their normal form. Throws 400 at the first tag that is none. `prefix` is the path of the lists. */
export function tagsIn(
  { epcs = [], tagUids = [], tagIds = [] }: TagLists,
  prefix: string,
): { path: string; identifiers: ItemIdentifiers }[] {
  const names = [
    ...epcs.map((epc, i) => ({ path: `${prefix}epcs[${i}]`, input: { epc } })),
    ...tagUids.map((tagUid, i) => ({ path: `${prefix}tagUids[${i}]`, input: { tagUid } })),
    ...tagIds.map((tagId, i) => ({ path: `${prefix}tagIds[${i}]`, input: { tagId } })),
  ] satisfies { path: string; input: ItemIdentifierInput }[]
  return names.map(({ path, input }) => {
    const normal = normaliseIdentifiers(input)
    if (!normal.ok) throw invalid(path, normal.message)
    return { path, identifiers: normal.identifiers }
  })
}
