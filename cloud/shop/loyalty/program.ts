import { hasDecimals } from '../../../policy/decimals.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { iso } from '../../platform/operations/fields.ts'
import { isAtLeast, type Package, knownCaller } from '../../platform/foundation/caller.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { EarningMethod, LoyaltyProgram, ProgramType } from './schema.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { findProgram } from './queries.ts'

/** Internal amounts are whole units: points, stamps, or cents of cashback. */
export interface Reward {
  rewardId: string
  name: string
  cost: number
}

export interface Tier {
  name: string
  threshold: number
}

/** A program with parsed lists. */
export interface Program {
  readonly row: Row<'loyalty_program'>
  readonly type: ProgramType
  readonly methods: readonly EarningMethod[]
  /** Sorted by cost, the cheapest first. */
  readonly rewards: readonly Reward[]
  /** Sorted by threshold, the lowest first. */
  readonly tiers: readonly Tier[]
  /** True if the store's package includes tier events. */
  readonly hasTierEvents: boolean
}

/** Parses a program's row. */
export function openProgram(row: Row<'loyalty_program'>, store: Pick<Row<'store'>, 'package'>): Program {
  return {
    row,
    type: row.type as ProgramType,
    methods: JSON.parse(row.earning_methods) as EarningMethod[],
    rewards: JSON.parse(row.rewards) as Reward[],
    tiers: JSON.parse(row.tiers) as Tier[],
    hasTierEvents: isAtLeast(store.package as Package, 'PRIME'),
  }
}

/** Converts an amount of the API to whole units. Throws 400 for fractions of a point or cent. */
export function unitsOf(type: ProgramType, amount: number, path: string): number {
  const places = type === 'cashback' ? 2 : 0
  if (hasDecimals(amount, places)) return Math.round(amount * 10 ** places)
  throw invalid(path, type === 'cashback' ? 'must have at most 2 decimals' : 'must be a whole number')
}

/** Converts units to an amount of the API. */
export function amountOf(type: ProgramType, units: number): number {
  return type === 'cashback' ? units / 100 : units
}

/** Units that a purchase earns: points rounded down, cashback rounded half up to a cent, stamps per visit. */
export function earnedByPurchase({ type, row }: Program, totalCent: number): number {
  if (totalCent <= 0) return 0
  if (type === 'stamps') return row.stamps_per_visit
  if (type === 'cashback') return Math.floor((totalCent * row.cashback_basis_points + 5_000) / 10_000)
  return Math.floor((totalCent * row.points_per_euro_milli) / 100_000)
}

/** Units that a check-in earns; 0 for cashback, which needs a payment. */
export function earnedByVisit({ type, row }: Program): number {
  return type === 'cashback' ? 0 : row.stamps_per_visit
}

/** Tier of a balance: the highest tier whose threshold the balance reaches. */
export function tierOf({ tiers }: Pick<Program, 'tiers'>, balance: number): Tier | undefined {
  return tiers.findLast((tier) => tier.threshold <= balance)
}

/** Rewards that the new balance can pay for, but the old balance could not. */
export function unlockedRewards({ rewards }: Pick<Program, 'rewards'>, before: number, after: number): Reward[] {
  return rewards.filter((reward) => before < reward.cost && reward.cost <= after)
}

/**
 * Expiry of an earning, ms since 1970: the same day some calendar months later (UTC), or the last day of a shorter
 * month.
 */
export function expiryOf({ row }: Pick<Program, 'row'>, nowMs: number): number | null {
  if (row.points_valid_months === null) return null
  const now = new Date(nowMs)
  const lastDay = new Date(
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + row.points_valid_months + 1, 0),
  ).getUTCDate()
  const day = Math.min(now.getUTCDate(), lastDay)
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + row.points_valid_months, day) + (nowMs % 86_400_000)
}

/** Month of a time in UTC, such as `2026-11`. */
export function monthOf(ms: number): string {
  return iso(ms).slice(0, 7)
}

/** Content of a program's printed QR code. */
export function checkInCode({ store_id, program_id }: Row<'loyalty_program'>): string {
  return `untag://loyalty/${store_id}/${program_id}`
}

/** Converts a program to its API form. */
export function toLoyaltyProgram({ row, type, methods, rewards, tiers }: Program): LoyaltyProgram {
  return {
    programId: row.program_id,
    storeId: row.store_id,
    name: row.name,
    type,
    earningMethods: [...methods],
    rewards: rewards.map((reward) => ({ ...reward, cost: amountOf(type, reward.cost) })),
    tiers: tiers.map((tier) => ({ ...tier, threshold: amountOf(type, tier.threshold) })),
    pointsPerEuro: row.points_per_euro_milli / 1_000,
    stampsPerVisit: row.stamps_per_visit,
    cashbackPercent: row.cashback_basis_points / 100,
    pointsValidMonths: row.points_valid_months,
    isActive: row.is_active === 1,
    checkInCode: checkInCode(row),
    createdAt: iso(row.created_ms),
    updatedAt: iso(row.updated_ms),
  }
}

/**
 * Finds a program of the caller with its store. Throws 404 if the program is unknown, or if the caller may not see its
 * store.
 */
export async function programOfCaller(
  call: Call,
  programId: string,
): Promise<{ program: Program; store: Row<'store'> }> {
  const row = await findProgram(call.db, knownCaller(call.caller).tenant, programId)
  if (!row) throw notFound('loyalty program')
  const store = await ownStoreOf(call, row.store_id, 'loyalty program')
  return { program: openProgram(row, store), store }
}

/** Throws 409 if the program is inactive. */
export function assertActive({ row }: Program): void {
  if (row.is_active !== 1)
    throw precondition('program_inactive', 'this loyalty program is not active: activate it with updateLoyaltyProgram')
}
