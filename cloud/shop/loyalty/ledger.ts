import { newId } from '../../../policy/ids.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { LoyaltyEntryRow } from '../../platform/persistence/tables/loyalty.ts'
import { amountOf, expiryOf, monthOf, tierOf, unlockedRewards, type Program } from './program.ts'
import {
  earnedByTransaction,
  enrolMember,
  findEarned,
  findMember,
  insertEntry,
  moveBalance,
  reversedOf,
} from './queries.ts'
import { type EarningSource, EARNING_SOURCES } from './schema.ts'
import { z } from 'zod'

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

export interface Moved {
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

async function earnedBefore({ db }: Scope, known: LoyaltyEntryRow, userId: string): Promise<Moved> {
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
export async function deduct(
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
export async function returnReversed(
  scope: Scope,
  program: Program,
  earned: LoyaltyEntryRow,
  units: number,
): Promise<void> {
  if (units <= 0) return
  const balance = (await moveBalance(scope.db, program.row.program_id, earned.user_id, units, earned.expires_ms)) ?? 0
  await post(scope, program, { userId: earned.user_id, kind: 'reverse', units, balance, reverses: earned.entry_id })
  emitCrossings(scope, program, earned.user_id, balance - units, balance)
}

/** Earnings of a transaction in the tenant's programs, with the units already reversed. */
export async function openEarnings(
  { db }: Pick<Scope, 'db'>,
  tenant: string,
  transactionId: string,
): Promise<{ entry: LoyaltyEntryRow; reversed: number }[]> {
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
