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

/** Name of the row's store while all stores are chosen; undefined while one is. */
export function nameOfStore(at: PageContext, storeId: string | undefined): string | undefined {
  if (at.store || storeId === undefined) return undefined
  return at.stores.find((store) => store.storeId === storeId)?.tradingName ?? storeId
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

/** Says which stores and rows are missing while all stores are chosen, on pages that read store by store. */
export function StoresRead({ at, shown, total }: { at: PageContext; shown?: number; total?: number }) {
  const t = at.texts.frame
  if (at.store) return null
  const { number } = at.formats
  const isShort = shown !== undefined && total !== undefined && shown < total
  return (
    <>
      {at.storesTotal > STORES_READ ? (
        <p class="soft small">{t.someStores(number(STORES_READ), number(at.storesTotal))}</p>
      ) : null}
      {isShort ? <p class="soft small">{t.newestOfStores(number(shown), number(total))}</p> : null}
    </>
  )
}
