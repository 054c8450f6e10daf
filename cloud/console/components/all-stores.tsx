import type { TaskKind } from '../../sales/store-operations/open-tasks.ts'
import type { PageContext } from '../frame/page.ts'
import { storesWithTasks } from './store-choice.tsx'

/** Maximum number of stores whose rows a page reads one by one while all stores are chosen. */
const STORES_READ = 20

/**
 * Ids of the stores of which the page shows rows: the chosen one, or the first `STORES_READ` of all, those first in
 * which tasks of these kinds wait.
 */
export function storesToRead(at: PageContext, kinds: readonly TaskKind[]): readonly string[] {
  if (at.store) return [at.store.storeId]
  const busy = at.busyStores.map(({ storeId, tasks }) => ({
    storeId,
    tasks: tasks.filter(({ kind }) => kinds.includes(kind)),
  }))
  return storesWithTasks(at, busy)
    .slice(0, STORES_READ)
    .map(({ storeId }) => storeId)
}

/** Names of stores by id, for each list of stores. */
const namesOfLists = new WeakMap<PageContext['stores'], ReadonlyMap<string, string>>()

/** Name of a store; its id if the user may not see it. */
export function storeName({ stores }: PageContext, id: string): string {
  let names = namesOfLists.get(stores)
  if (!names) {
    names = new Map(stores.map(({ storeId, tradingName }) => [storeId, tradingName]))
    namesOfLists.set(stores, names)
  }
  return names.get(id) ?? id
}

/** Stores that a text names before it counts the others. */
const NAMED = 3

/** Names of the first stores, and the number of the others: rows may have a hundred. */
export function storeNames(at: PageContext, storeIds: readonly string[]): string {
  const names = storeIds.slice(0, NAMED).map((id) => storeName(at, id))
  const others = storeIds.length - names.length
  return [...names, ...(others > 0 ? [at.texts.frame.otherStores(at.formats.number(others))] : [])].join(', ')
}

/** Name of the row's store while all stores are chosen; undefined while one is. */
export function nameOfStore(at: PageContext, storeId: string | undefined): string | undefined {
  if (at.store || storeId === undefined) return undefined
  return storeName(at, storeId)
}

/** The address, in the store of a row while all stores are chosen. */
export function inStore(at: PageContext, href: string, storeId: string): string {
  return at.store ? href : `${href}${href.includes('?') ? '&' : '?'}store=${storeId}`
}

/** The store of a row, while all stores are chosen. */
export function StoreOfRow({ at, storeId }: { at: PageContext; storeId: string | undefined }) {
  const name = nameOfStore(at, storeId)
  return name === undefined ? null : (
    <span class="sub">
      {at.texts.frame.store}: {name}
    </span>
  )
}

/** Says which stores are missing while all stores are chosen, on pages that read store by store. */
export function StoresRead({ at }: { at: PageContext }) {
  const { number } = at.formats
  if (at.store || at.storesTotal <= STORES_READ) return null
  return <p class="soft small">{at.texts.frame.someStores(number(STORES_READ), number(at.storesTotal))}</p>
}
