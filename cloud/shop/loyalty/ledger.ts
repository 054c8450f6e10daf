import { newId } from '../../../policy/ids.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import type { Call, OutgoingEvent, Services } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import {
  amountOf,
  expiryOf,
  monthOf,
  tierOf,
  unlockedRewards,
  type Program,
  openProgram,
  earnedByPurchase,
} from './program.ts'
import {
  earnedByTransaction,
  enrolMember,
  findEarned,
  findMember,
  insertEntry,
  moveBalance,
  reversedOf,
  expiredUnits,
  accountsToExpire,
  membersToExpire,
  nextExpiry,
  setNextExpiry,
  activePrograms,
  findProgram,
} from './queries.ts'
import { type EarningSource, EARNING_SOURCES } from './schema.ts'
import { z } from 'zod'
import { assert } from '../../../policy/assert.ts'
import { systemCaller, type Tenant, isAtLeast, type Package } from '../../platform/foundation/caller.ts'
import { processDue } from '../../platform/operations/job-steps.ts'
import { writeOutbox } from '../../platform/operations/call-context.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { findStore } from '../../platform/stores/queries.ts'

/** `data` of loyalty events (specification, Events). */

const MemberFields = { userId: z.string(), programId: z.string(), storeId: z.string() }

const Earned = z.strictObject({
  ...MemberFields,
  amount: z.number(),
  newBalance: z.number(),
  transactionId: z.string().describe('The purchase, order or receipt; a generated id if there is none.'),
  source: z.enum(EARNING_SOURCES),
})

export const LOYALTY_EVENTS = {
  'loyalty.points_earned': Earned,
  'loyalty.qr_earned': Earned,
  'loyalty.checkin_earned': Earned,
  'loyalty.points_redeemed': z.strictObject({
    ...MemberFields,
    amount: z.number(),
    newBalance: z.number(),
    transactionId: z.string(),
    rewardId: z.string().optional(),
  }),
  'loyalty.enrollment': z.strictObject({ ...MemberFields, source: z.enum(EARNING_SOURCES) }),
  'loyalty.reward_unlocked': z.strictObject({
    ...MemberFields,
    rewardId: z.string(),
    rewardName: z.string(),
    cost: z.number(),
    newBalance: z.number(),
  }),
  'loyalty.tier_changed': z.strictObject({
    ...MemberFields,
    previousTier: z.string().nullable(),
    newTier: z.string().nullable(),
    direction: z.enum(['up', 'down']),
    newBalance: z.number(),
  }),
}

type LoyaltyEvent = {
  [T in keyof typeof LOYALTY_EVENTS]: { type: T; storeId: string; data: z.infer<(typeof LOYALTY_EVENTS)[T]> }
}[keyof typeof LOYALTY_EVENTS]

/**
 * The balance is the sum of the entries and never negative: `earn` adds, and `redeem`, `expire` and `reverse` subtract.
 * If a refund fails, a `reverse` entry adds the reversed units again. Each entry is inserted in the transaction that
 * changes the balance. Reversals and expiries subtract at most the balance.
 */
export interface Scope extends Pick<Call, 'db' | 'nowMs'> {
  readonly services: Pick<Call['services'], 'platform'>
  emit(event: LoyaltyEvent): void
}

interface Moved {
  entryId: string
  transactionId: string
  units: number
  balance: number
}

/** Enrols a customer. Returns false if the customer is already a member. */
export async function enrol(scope: Scope, { row }: Program, userId: string, source: EarningSource): Promise<boolean> {
  const { db, nowMs } = scope
  const member = { program_id: row.program_id, user_id: userId, balance: 0, month: monthOf(nowMs), enrolled_ms: nowMs }
  const isNew = await enrolMember(db, {
    ...member,
    last_qr_ms: null,
    last_visit_ms: null,
    next_expiry_ms: null,
    card_number: 0,
    card_hash: null,
  })
  if (isNew)
    scope.emit({
      type: 'loyalty.enrollment',
      storeId: row.store_id,
      data: { userId, programId: row.program_id, storeId: row.store_id, source },
    })
  return isNew
}

export interface Earning {
  userId: string
  units: number
  source: EarningSource
  /** Each transaction earns units once per program. A repeated call of `earn` returns the first result. */
  transactionId?: string | undefined
  /** Amount that the customer still pays, cents, if a part of the transaction was refunded. */
  earnedOnCent?: number | undefined
}

/** Adds units to a balance. Enrols the customer if necessary. */
export async function earn(
  scope: Scope,
  program: Program,
  { userId, units, source, transactionId, earnedOnCent }: Earning,
): Promise<Moved> {
  const { db, nowMs } = scope
  const { program_id: programId, store_id: storeId } = program.row
  const known = transactionId === undefined ? undefined : await findEarned(db, programId, transactionId)
  if (known) return earnedBefore(scope, known, userId)
  await enrol(scope, program, userId, source)
  const expiresMs = expiryOf(program, nowMs)
  const balance = (await moveBalance(db, programId, userId, units, expiresMs)) ?? 0
  const moved = await post(scope, program, {
    userId,
    kind: 'earn',
    units,
    balance,
    source,
    transactionId,
    expiresMs,
    earnedOnCent,
  })
  const data = {
    userId,
    programId,
    storeId,
    amount: amountOf(program.type, units),
    newBalance: amountOf(program.type, balance),
    transactionId: moved.transactionId,
    source,
  }
  scope.emit({ type: 'loyalty.points_earned', storeId, data })
  if (source === 'qr_checkin') scope.emit({ type: 'loyalty.qr_earned', storeId, data })
  if (source === 'store_checkin') scope.emit({ type: 'loyalty.checkin_earned', storeId, data })
  emitCrossings(scope, program, userId, balance - units, balance)
  return moved
}

async function earnedBefore({ db }: Scope, known: Row<'loyalty_entry'>, userId: string): Promise<Moved> {
  if (known.user_id !== userId)
    throw precondition('transaction_used', 'another customer has already earned with this transaction')
  const member = await findMember(db, known.program_id, userId)
  return {
    entryId: known.entry_id,
    transactionId: known.transaction_id ?? known.entry_id,
    units: known.amount,
    balance: member?.balance ?? known.balance,
  }
}

/** Subtracts units that a customer spends. Throws 409 `balance_too_low`. */
export async function redeem(
  scope: Scope,
  program: Program,
  userId: string,
  units: number,
  rewardId?: string,
): Promise<Moved> {
  const { program_id: programId, store_id: storeId } = program.row
  const balance = await moveBalance(scope.db, programId, userId, -units)
  if (balance === undefined) {
    const has = amountOf(program.type, (await findMember(scope.db, programId, userId))?.balance ?? 0)
    throw precondition('balance_too_low', `the balance is ${has}, but ${amountOf(program.type, units)} are needed`)
  }
  const moved = await post(scope, program, { userId, kind: 'redeem', units: -units, balance, rewardId })
  const amounts = {
    amount: amountOf(program.type, units),
    newBalance: amountOf(program.type, balance),
    transactionId: moved.transactionId,
  }
  scope.emit({
    type: 'loyalty.points_redeemed',
    storeId,
    data: definedFields({ userId, programId, storeId, ...amounts, ...(rewardId !== undefined && { rewardId }) }),
  })
  emitCrossings(scope, program, userId, balance + units, balance)
  return moved
}

/** Subtracts units that expired, or whose transaction was refunded. Subtracts at most the balance. */
async function deduct(
  scope: Scope,
  program: Program,
  userId: string,
  kind: 'expire' | 'reverse',
  units: number,
  reverses?: string,
): Promise<void> {
  const member = await findMember(scope.db, program.row.program_id, userId)
  const taken = Math.min(units, member?.balance ?? 0)
  if (taken <= 0) return
  const balance = (await moveBalance(scope.db, program.row.program_id, userId, -taken)) ?? 0
  await post(scope, program, { userId, kind, units: -taken, balance, reverses })
  emitCrossings(scope, program, userId, balance + taken, balance)
}

/** Credits reversed units of an earning again after a refund failed. These units expire together with the earning. */
async function returnReversed(
  scope: Scope,
  program: Program,
  earned: Row<'loyalty_entry'>,
  units: number,
): Promise<void> {
  if (units <= 0) return
  const balance = (await moveBalance(scope.db, program.row.program_id, earned.user_id, units, earned.expires_ms)) ?? 0
  await post(scope, program, { userId: earned.user_id, kind: 'reverse', units, balance, reverses: earned.entry_id })
  emitCrossings(scope, program, earned.user_id, balance - units, balance)
}

/** Earnings of a transaction in the tenant's programs, with the units already reversed. */
async function openEarnings(
  { db }: Pick<Scope, 'db'>,
  tenant: string,
  transactionId: string,
): Promise<{ entry: Row<'loyalty_entry'>; reversed: number }[]> {
  const entries = await earnedByTransaction(db, tenant, transactionId)
  const open = []
  for (const entry of entries) open.push({ entry, reversed: await reversedOf(db, entry) })
  return open
}

interface Posting {
  userId: string
  kind: 'earn' | 'redeem' | 'expire' | 'reverse'
  units: number
  balance: number
  source?: EarningSource | undefined
  transactionId?: string | undefined
  rewardId?: string | undefined
  reverses?: string | undefined
  expiresMs?: number | null
  earnedOnCent?: number | undefined
}

async function post({ db, nowMs, services }: Scope, { row }: Program, posting: Posting): Promise<Moved> {
  const entryId = newId('lte', services.platform)
  const transactionId = posting.transactionId ?? entryId
  await insertEntry(db, {
    entry_id: entryId,
    tenant: row.tenant,
    program_id: row.program_id,
    user_id: posting.userId,
    kind: posting.kind,
    amount: posting.units,
    balance: posting.balance,
    source: posting.source ?? null,
    transaction_id: transactionId,
    reward_id: posting.rewardId ?? null,
    reverses: posting.reverses ?? null,
    month: monthOf(nowMs),
    at_ms: nowMs,
    expires_ms: posting.expiresMs ?? null,
    earned_on_cent: posting.earnedOnCent ?? null,
  })
  return { entryId, transactionId, units: posting.units, balance: posting.balance }
}

/** Emits events for newly affordable rewards and for a changed tier. */
function emitCrossings(scope: Scope, program: Program, userId: string, before: number, after: number): void {
  const { program_id: programId, store_id: storeId } = program.row
  const whom = { userId, programId, storeId }
  const newBalance = amountOf(program.type, after)
  for (const { rewardId, name, cost } of unlockedRewards(program, before, after)) {
    scope.emit({
      type: 'loyalty.reward_unlocked',
      storeId,
      data: { ...whom, rewardId, rewardName: name, cost: amountOf(program.type, cost), newBalance },
    })
  }
  const [from, to] = [tierOf(program, before), tierOf(program, after)]
  if (!program.hasTierEvents || from?.name === to?.name) return
  const direction = after > before ? ('up' as const) : ('down' as const)
  scope.emit({
    type: 'loyalty.tier_changed',
    storeId,
    data: { ...whom, previousTier: from?.name ?? null, newTier: to?.name ?? null, direction, newBalance },
  })
}

/** Source of the events of this job. */
const EXPIRY = { name: 'loyalty-expiry', emits: ['loyalty.tier_changed'] } as const

/** Expires due earnings, each member in its own transaction. Several processes may run this at the same time. */
export function expireEarnings(database: Database, services: Services): Promise<boolean> {
  return processDue(database, services, {
    job: 'loyalty expiry',
    accounts: (db) => accountsToExpire(db, services.platform.clock.wall()),
    read: (db, account, page) => membersToExpire(db, account, services.platform.clock.wall(), page),
    process: ({ program_id, user_id }) =>
      database.write(async (db) => {
        const nowMs = services.platform.clock.wall()
        const member = await findMember(db, program_id, user_id)
        if (!member || member.next_expiry_ms === null || member.next_expiry_ms > nowMs) return
        const events: OutgoingEvent[] = []
        const tenant = await expireMember({ db, nowMs, services, emit: (event) => void events.push(event) }, member)
        await writeOutbox(db, { operation: EXPIRY, caller: systemCaller(tenant, EXPIRY.name) }, events, nowMs, services)
      }),
  })
}

async function expireMember(scope: Scope, member: Row<'loyalty_member'>): Promise<Tenant> {
  const { db, nowMs } = scope
  const row = await db
    .selectFrom('loyalty_program')
    .selectAll()
    .where('program_id', '=', member.program_id)
    .executeTakeFirstOrThrow()
  const store = await findStore(db, row.store_id)
  assert(store, `store ${row.store_id} is gone`)
  await deduct(scope, openProgram(row, store), member.user_id, 'expire', await expiredUnits(db, member, nowMs))
  await setNextExpiry(db, member, await nextExpiry(db, member, nowMs))
  return row.tenant as Tenant
}

/** A paid purchase of scan and go or a till, or an order that was picked up. */
interface PaidTransaction {
  transactionId: string
  userId: string | null
  totalCent: number
  source: 'scan_and_go' | 'click_collect' | 'till'
}

/** Events that `earnAutomatically` emits. */
export const EARNING_EVENTS = [
  'loyalty.enrollment',
  'loyalty.points_earned',
  'loyalty.reward_unlocked',
  'loyalty.tier_changed',
] as const

/**
 * Credits a paid transaction in the store's programs. Ignores programs whose rules do not allow a credit, because an
 * error would make the payment fail.
 */
export async function earnAutomatically(
  scope: Scope,
  store: Row<'store'>,
  { transactionId, userId, totalCent, source }: PaidTransaction,
): Promise<void> {
  if (userId === null || !isAtLeast(store.package as Package, 'GO')) return
  for (const row of await activePrograms(scope.db, store.store_id)) {
    const program = openProgram(row, store)
    const units = program.methods.includes(source) ? earnedByPurchase(program, totalCent) : 0
    if (units === 0) continue
    if (await findEarned(scope.db, row.program_id, transactionId)) continue
    await earn(scope, program, { userId, units, source, transactionId })
  }
}

/** Events that `adjustEarnings` emits. */
export const ADJUSTMENT_EVENTS = ['loyalty.reward_unlocked', 'loyalty.tier_changed'] as const

/** A transaction that was refunded in whole or in part. */
interface RefundedTransaction {
  tenant: string
  transactionId: string
  /** Amount that the customer still pays, cents; 0 after a full refund. */
  remainingCent: number
  totalCent: number
}

/**
 * Adjusts the earnings of a refunded transaction to the amount that the customer still pays. Reverses points, or
 * credits reversed points again after a refund failed. If a purchase was partly refunded before it earned points, only
 * later refunds reduce the earning. Stamps stay until the whole amount is refunded.
 */
export async function adjustEarnings(
  scope: Scope,
  { tenant, transactionId, remainingCent, totalCent }: RefundedTransaction,
): Promise<void> {
  for (const { entry, reversed } of await openEarnings(scope, tenant, transactionId)) {
    const row = await findProgram(scope.db, tenant, entry.program_id)
    const store = row && (await findStore(scope.db, row.store_id))
    assert(row && store, `program ${entry.program_id} is gone`)
    const program = openProgram(row, store)
    const ofCent = entry.earned_on_cent ?? totalCent
    const retained =
      remainingCent <= 0 || ofCent <= 0
        ? 0
        : program.type === 'stamps'
          ? entry.amount
          : Math.floor((entry.amount * Math.min(remainingCent, ofCent)) / ofCent)
    const excess = entry.amount - reversed - retained
    if (excess >= 0) await deduct(scope, program, entry.user_id, 'reverse', excess, entry.entry_id)
    else await returnReversed(scope, program, entry, Math.min(-excess, reversed))
  }
}
