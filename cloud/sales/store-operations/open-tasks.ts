import { sql } from 'kysely'
import { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { Id, iso, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { type Db, groupBy } from '../../platform/persistence/database.ts'
import { emergencyTimes } from '../../protection/records/exceptions.ts'
import { inScopes, ownScopes, type StoreScope } from '../../platform/stores/own-store.ts'

/** Kinds of open tasks, in the order in which staff should look at them. */
const TASK_KINDS = [
  'emergency',
  'alarm',
  'alarmHelp',
  'ageCheck',
  'spotCheck',
  'help',
  'order',
  'release',
  'refund',
  'exception',
] as const
export type TaskKind = (typeof TASK_KINDS)[number]
/** Kinds that cannot wait. */
export const URGENT_TASKS: ReadonlySet<TaskKind> = new Set(['emergency', 'alarm', 'alarmHelp'])

/** Exceptions that are tasks of their own kind. All others are `exception`. */
const KIND_OF_EXCEPTION: Readonly<Record<string, TaskKind>> = {
  gate_alarm: 'alarm',
  gate_bulk_alarm: 'alarm',
  outcome_unknown: 'release',
  outcome_conflict: 'release',
  refund_failed: 'refund',
  refund_unclear: 'refund',
  refunded_outside: 'refund',
  second_charge: 'refund',
  released_after_refund: 'refund',
}

const EMERGENCY = 'emergency_started'
/** Maximum open exceptions that are counted. */
const EXCEPTIONS_LIMIT = 100_000
/** Maximum devices that emergencies opened and that are counted, the latest first. */
const EMERGENCIES_LIMIT = 1_000

/** Number of open tasks of a kind in a store, and when the oldest began. */
interface Waiting {
  storeId: string
  kind: TaskKind
  count: number
  oldestMs: number
}

/** Literals, because SQLite would not use the partial indexes with parameters. */
const IS_AWAITING = sql<boolean>`approval = 'awaiting'`
const IS_NOT_CLOSED = sql<boolean>`status <> 'closed'`
const IS_PENDING = sql<boolean>`status = 'pending'`

/** A row of a query that counts. */
type Counted = { store_id: string; count: unknown; oldest: unknown }

function waitingOf<R extends Counted>(rows: readonly R[], kindOf: (row: R) => TaskKind): Waiting[] {
  return rows.map((row) => ({
    storeId: row.store_id,
    kind: kindOf(row),
    count: Number(row.count),
    oldestMs: Number(row.oldest),
  }))
}

async function exceptionsOf(db: Db, scopes: readonly StoreScope[]): Promise<Waiting[]> {
  // Grouped at once, SQLite would read acknowledged ones, too, because their index has the order of the groups.
  const open = db
    .selectFrom('protection_exception')
    .select(['store_id', 'kind', 'raised_ms'])
    .where(inScopes('protection_exception', scopes))
    .where('acknowledged_ms', 'is', null)
    .where('kind', '!=', EMERGENCY)
    .limit(EXCEPTIONS_LIMIT)
  const rows = await db
    .selectFrom(open.as('open'))
    .select((eb) => ['store_id', 'kind', eb.fn.countAll().as('count'), eb.fn.min('raised_ms').as('oldest')])
    .groupBy(['store_id', 'kind'])
    .execute()
  const waiting = waitingOf(rows, ({ kind }) => KIND_OF_EXCEPTION[kind] ?? 'exception')
  return [...waiting, ...(await emergenciesOf(db, scopes))]
}

/** Emergencies that run. When they have ended, people have time to read about them: they wait as other exceptions do. */
async function emergenciesOf(db: Db, scopes: readonly StoreScope[]): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('protection_exception')
    .selectAll()
    .where(inScopes('protection_exception', scopes))
    .where('acknowledged_ms', 'is', null)
    .where('kind', '=', EMERGENCY)
    .orderBy('raised_ms', 'desc')
    .limit(EMERGENCIES_LIMIT)
    .execute()
  const times = await emergencyTimes(db, rows)
  return rows.map(({ exception_id: id, store_id: storeId, raised_ms: oldestMs }) => ({
    storeId,
    kind: times.get(id)?.endedMs === undefined ? 'emergency' : 'exception',
    count: 1,
    oldestMs,
  }))
}

async function approvalsOf(db: Db, scopes: readonly StoreScope[]): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('purchase')
    .select((eb) => ['store_id', 'approval_reason', eb.fn.countAll().as('count'), eb.fn.min('created_ms').as('oldest')])
    .where(inScopes('purchase', scopes))
    .where(IS_AWAITING)
    .where('status', '=', 'CREATED')
    .groupBy(['store_id', 'approval_reason'])
    .execute()
  return waitingOf(rows, (row) => (row.approval_reason === 'age' ? 'ageCheck' : 'spotCheck'))
}

async function ordersOf(db: Db, scopes: readonly StoreScope[]): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('pickup_order')
    .select((eb) => ['store_id', eb.fn.countAll().as('count'), eb.fn.min('created_ms').as('oldest')])
    .where(inScopes('pickup_order', scopes))
    .where(IS_PENDING)
    .groupBy('store_id')
    .execute()
  return waitingOf(rows, () => 'order')
}

async function helpOf(db: Db, scopes: readonly StoreScope[]): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('assistance_request')
    .select((eb) => ['store_id', 'reason', eb.fn.countAll().as('count'), eb.fn.min('created_ms').as('oldest')])
    .where(inScopes('assistance_request', scopes))
    .where(IS_NOT_CLOSED)
    .where('status', '=', 'open')
    .groupBy(['store_id', 'reason'])
    .execute()
  return waitingOf(rows, ({ reason }) => (reason === 'alarm' ? 'alarmHelp' : 'help'))
}

/** One entry of each kind, also of kinds of which nothing waits. */
function tasksOf(waiting: readonly Waiting[]) {
  return TASK_KINDS.map((kind) => {
    const own = waiting.filter((each) => each.kind === kind)
    const count = own.reduce((sum, each) => sum + each.count, 0)
    return count === 0 ? { kind, count } : { kind, count, oldestAt: iso(Math.min(...own.map((w) => w.oldestMs))) }
  })
}

const Task = z.strictObject({
  kind: z.enum(TASK_KINDS),
  count: z.int(),
  oldestAt: z.string().optional().describe('When the oldest began; absent if there is none.'),
})

export const fetchOpenTasks = operation({
  name: 'fetchOpenTasks',
  area: 'stores',
  roles: rolesFrom('viewer'),
  minimumPackage: 'DISCOVER',
  summary: 'Counts what waits for a person in a store, or in all stores of the caller.',
  description:
    '`emergency`: devices that an emergency opens now, until it ends or a person acknowledges the exception; afterwards they count as `exception`. `alarm`: gate alarms without a disposition (`disposeAlarm`). `ageCheck` and `spotCheck`: baskets that await `approveCheckout`. `alarmHelp`: calls to an alarm without an answer (`callHelpToAlarm`). `help`: other requests without an answer. `order`: click and collect orders that are not accepted yet. `release`: releases with an unknown outcome or contradicting reports. `refund`: failed refunds, and refunded goods that left. `exception`: all other open exceptions. Without `storeId`, the answer adds up all stores that the caller may see, and lists those in which something waits.',
  changes: false,
  request: z.strictObject({ storeId: Id.optional() }),
  response: z.strictObject({
    ...Success,
    tasks: z.array(Task).describe('One entry of each kind.'),
    stores: z
      .array(z.strictObject({ storeId: z.string(), tasks: z.array(Task) }))
      .optional()
      .describe('Only without `storeId`: the stores in which something waits, each with an entry of each kind.'),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    const { db } = call
    const scopes = await ownScopes(call, storeId)
    if (scopes.length === 0) return { success: true as const, tasks: tasksOf([]), stores: [] }
    const waiting = [
      ...(await exceptionsOf(db, scopes)),
      ...(await approvalsOf(db, scopes)),
      ...(await helpOf(db, scopes)),
      ...(await ordersOf(db, scopes)),
    ]
    const tasks = tasksOf(waiting)
    if (storeId !== undefined) return { success: true as const, tasks }
    const byStore = groupBy(waiting, (each) => each.storeId)
    const stores = [...byStore.keys()].toSorted().map((id) => ({ storeId: id, tasks: tasksOf(byStore.get(id) ?? []) }))
    return { success: true as const, tasks, stores }
  },
})
