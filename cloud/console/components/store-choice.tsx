import { URGENT_TASKS } from '../../sales/store-operations/open-tasks.ts'
import type { BusyStores, ConsolePage, PageContext } from '../frame/page.ts'
import { Badge, Card } from './card.tsx'
import { Live } from './live.tsx'
import { List, Pagination, rowsOfPage } from './table.tsx'

/** Tasks of a store. */
type Tasks = BusyStores[number]['tasks']

/** A store of the user, and what waits in it. */
export interface StoreTasks {
  readonly storeId: string
  readonly name: string
  readonly city?: string | undefined
  readonly tasks: Tasks
}

const urgentFirst = (tasks: Tasks) => (isUrgent(tasks) ? 0 : countOf(tasks) > 0 ? 1 : 2)
const isUrgent = (tasks: Tasks) => tasks.some(({ kind, count }) => count > 0 && URGENT_TASKS.has(kind))
const countOf = (tasks: Tasks) => tasks.reduce((sum, { count }) => sum + count, 0)

/** Stores of the user with their tasks: urgent ones first, then those in which something waits. */
export function storesWithTasks(at: PageContext, busy: BusyStores): StoreTasks[] {
  const tasks = new Map(busy.map((store) => [store.storeId, store.tasks]))
  const listed = at.stores.map(({ storeId, tradingName, city }) => ({
    storeId,
    name: tradingName,
    city,
    tasks: tasks.get(storeId) ?? [],
  }))
  const known = new Set(listed.map(({ storeId }) => storeId))
  const others = busy.filter(({ storeId }) => !known.has(storeId))
  return [...listed, ...others.map((store) => ({ ...store, name: store.storeId }))].toSorted(
    (a, b) => urgentFirst(a.tasks) - urgentFirst(b.tasks),
  )
}

function namesOf(at: PageContext, tasks: Tasks): string {
  return tasks
    .filter(({ count }) => count > 0)
    .map(({ kind, count }) => `${at.texts.today.kinds[kind].title}: ${at.formats.number(count)}`)
    .join(' · ')
}

/** Stores with the number of tasks that wait, each with a link to `path` in that store. */
export function StoreList({ at, stores, path }: { at: PageContext; stores: readonly StoreTasks[]; path: string }) {
  const t = at.texts.today
  const { rows, nextCursor } = rowsOfPage(at, stores)
  return (
    <>
      <List>
        {rows.map(({ storeId, name, city, tasks }) => (
          <li>
            <div>
              <strong>{name}</strong>
              {city === undefined ? null : <span class="sub">{city}</span>}
              {countOf(tasks) === 0 ? null : <span class="sub">{namesOf(at, tasks)}</span>}
            </div>
            <span class="row">
              {countOf(tasks) === 0 ? null : (
                <Badge tone={isUrgent(tasks) ? 'alarm' : 'warn'}>{at.formats.number(countOf(tasks))}</Badge>
              )}
              <a class="button" href={`${path}?store=${storeId}`} aria-label={`${t.open}: ${name}`}>
                {t.open}
              </a>
            </span>
          </li>
        ))}
      </List>
      <Pagination at={at} shown={rows.length} total={stores.length} nextCursor={nextCursor} />
    </>
  )
}

/** In place of a page that shows one store, while all are chosen: the stores, with the page's tasks in each. */
export function StoreChoice({ at, page }: { at: PageContext; page: ConsolePage }) {
  const kinds = page.navigation?.tasks ?? []
  const busy = at.busyStores.map(({ storeId, tasks }) => ({
    storeId,
    tasks: tasks.filter(({ kind }) => kinds.includes(kind)),
  }))
  return (
    <Live at={at} id="stores-of-page">
      <Card title={at.texts.frame.chooseStore} flush>
        <StoreList at={at} stores={storesWithTasks(at, busy)} path={at.path} />
      </Card>
    </Live>
  )
}
