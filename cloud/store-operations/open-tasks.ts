import { sql } from 'kysely'
import { z } from 'zod'
import { rolesFrom } from '../foundation/roles.ts'
import { Id, iso, Success } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import { ownStore } from '../stores/own-store.ts'

/** Kinds of open tasks, in the order in which staff should look at them. */
export const TASK_KINDS = [
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
export const URGENT_TASKS: ReadonlySet<TaskKind> = new Set(['alarm', 'alarmHelp'])

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

/** Number of open tasks of a kind, and when the oldest began. */
interface Waiting {
  kind: TaskKind
  count: number
  oldestMs: number
}

/** Literals, because SQLite would not use the partial indexes with parameters. */
const IS_AWAITING = sql<boolean>`approval = 'awaiting'`
const IS_NOT_CLOSED = sql<boolean>`status <> 'closed'`

async function exceptionsOf(db: Db, storeId: string): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('protection_exception')
    .select((eb) => ['kind', eb.fn.countAll().as('count'), eb.fn.min('raised_ms').as('oldest')])
    .where('store_id', '=', storeId)
    .where('acknowledged_ms', 'is', null)
    .groupBy('kind')
    .execute()
  return rows.map(({ kind, count, oldest }) => ({
    kind: KIND_OF_EXCEPTION[kind] ?? 'exception',
    count: Number(count),
    oldestMs: Number(oldest),
  }))
}

async function approvalsOf(db: Db, storeId: string): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('purchase')
    .select((eb) => ['approval_reason', eb.fn.countAll().as('count'), eb.fn.min('created_ms').as('oldest')])
    .where('store_id', '=', storeId)
    .where(IS_AWAITING)
    .where('status', '=', 'CREATED')
    .groupBy('approval_reason')
    .execute()
  return rows.map(({ approval_reason, count, oldest }) => ({
    kind: approval_reason === 'age' ? 'ageCheck' : 'spotCheck',
    count: Number(count),
    oldestMs: Number(oldest),
  }))
}

async function ordersOf(db: Db, storeId: string): Promise<Waiting[]> {
  const row = await db
    .selectFrom('pickup_order')
    .select((eb) => [eb.fn.countAll().as('count'), eb.fn.min('created_ms').as('oldest')])
    .where('store_id', '=', storeId)
    .where('status', '=', 'pending')
    .executeTakeFirstOrThrow()
  return [{ kind: 'order', count: Number(row.count), oldestMs: Number(row.oldest) }]
}

async function helpOf(db: Db, storeId: string): Promise<Waiting[]> {
  const rows = await db
    .selectFrom('assistance_request')
    .select((eb) => ['reason', eb.fn.countAll().as('count'), eb.fn.min('created_ms').as('oldest')])
    .where('store_id', '=', storeId)
    .where(IS_NOT_CLOSED)
    .where('status', '=', 'open')
    .groupBy('reason')
    .execute()
  return rows.map(({ reason, count, oldest }) => ({
    kind: reason === 'alarm' ? 'alarmHelp' : 'help',
    count: Number(count),
    oldestMs: Number(oldest),
  }))
}

export const fetchOpenTasks = operation({
  name: 'fetchOpenTasks',
  area: 'stores',
  roles: rolesFrom('viewer'),
  minimumPackage: 'DISCOVER',
  summary: 'Counts what waits for a person in a store.',
  description:
    '`alarm`: gate alarms without a disposition (`disposeAlarm`). `ageCheck` and `spotCheck`: baskets that await `approveCheckout`. `alarmHelp`: calls to an alarm without an answer (`callHelpToAlarm`). `help`: other requests without an answer. `order`: click and collect orders that are not accepted yet. `release`: releases with an unknown outcome or contradicting reports. `refund`: failed refunds, and refunded goods that left. `exception`: all other open exceptions.',
  changes: false,
  request: z.strictObject({ storeId: Id }),
  response: z.strictObject({
    ...Success,
    tasks: z
      .array(
        z.strictObject({
          kind: z.enum(TASK_KINDS),
          count: z.int(),
          oldestAt: z.string().optional().describe('When the oldest began; absent if there is none.'),
        }),
      )
      .describe('One entry of each kind.'),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    const { store_id } = await ownStore(call, storeId)
    const { db } = call
    const waiting = [
      ...(await exceptionsOf(db, store_id)),
      ...(await approvalsOf(db, store_id)),
      ...(await helpOf(db, store_id)),
      ...(await ordersOf(db, store_id)),
    ].filter(({ count }) => count > 0)
    return {
      success: true as const,
      tasks: TASK_KINDS.map((kind) => {
        const own = waiting.filter((each) => each.kind === kind)
        const count = own.reduce((sum, each) => sum + each.count, 0)
        return count === 0
          ? { kind, count }
          : { kind, count, oldestAt: iso(Math.min(...own.map(({ oldestMs }) => oldestMs))) }
      }),
    }
  },
})
