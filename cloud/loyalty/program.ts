import { hasDecimals } from '../../policy/decimals.ts'
import { invalid } from '../foundation/failure.ts'
import { iso } from '../operations/fields.ts'
import { isAtLeast, type Package } from '../foundation/packages.ts'
import type { LoyaltyProgramRow } from '../persistence/tables/loyalty.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import type { EarningMethod, LoyaltyProgram, ProgramType } from './schema.ts'

/** Amounts inside are whole units: points, stamps, or cents of a cashback. */
export interface Reward {
  rewardId: string
  name: string
  cost: number
}

export interface Tier {
  name: string
  threshold: number
}

/** A program with its lists read, ready to be counted with. */
export interface Program {
  readonly row: LoyaltyProgramRow
  readonly type: ProgramType
  readonly methods: readonly EarningMethod[]
  /** The cheapest first. */
  readonly rewards: readonly Reward[]
  /** The lowest first. */
  readonly tiers: readonly Tier[]
  /** Whether the store's package has tier events. */
  readonly hasTierEvents: boolean
}

/** Reads a program's row. */
export function openProgram(row: LoyaltyProgramRow, store: Pick<StoreRow, 'package'>): Program {
  return {
    row,
    type: row.type as ProgramType,
    methods: JSON.parse(row.earning_methods) as EarningMethod[],
    rewards: JSON.parse(row.rewards) as Reward[],
    tiers: JSON.parse(row.tiers) as Tier[],
    hasTierEvents: isAtLeast(store.package as Package, 'PRIME'),
  }
}

/** Whole units of an amount as the API writes it. Throws 400 for a part of a point or of a cent. */
export function unitsOf(type: ProgramType, amount: number, path: string): number {
  const places = type === 'cashback' ? 2 : 0
  if (hasDecimals(amount, places)) return Math.round(amount * 10 ** places)
  throw invalid(path, type === 'cashback' ? 'must have at most 2 decimals' : 'must be a whole number')
}

/** The amount of some units as the API writes it. */
export function amountOf(type: ProgramType, units: number): number {
  return type === 'cashback' ? units / 100 : units
}

/** What a purchase of this total earns, units: points rounded down, cashback half up to a cent, stamps per visit. */
export function earnedByPurchase({ type, row }: Program, totalCent: number): number {
  if (totalCent <= 0) return 0
  if (type === 'stamps') return row.stamps_per_visit
  if (type === 'cashback') return Math.floor((totalCent * row.cashback_basis_points + 5_000) / 10_000)
  return Math.floor((totalCent * row.points_per_euro_milli) / 100_000)
}

/** What a check-in earns, units: cashback is a share of a payment, and a visit has none. */
export function earnedByVisit({ type, row }: Program): number {
  return type === 'cashback' ? 0 : row.stamps_per_visit
}

/** The tier of a balance: the highest whose threshold it has reached. */
export function tierOf({ tiers }: Pick<Program, 'tiers'>, balance: number): Tier | undefined {
  return tiers.findLast((tier) => tier.threshold <= balance)
}

/** The rewards that a balance has come to be enough for. */
export function unlockedRewards({ rewards }: Pick<Program, 'rewards'>, before: number, after: number): Reward[] {
  return rewards.filter((reward) => before < reward.cost && reward.cost <= after)
}

/** When something earned now expires, ms: the same day some calendar months later (UTC), or the last day of a shorter month. */
export function expiryOf({ row }: Pick<Program, 'row'>, nowMs: number): number | null {
  if (row.points_valid_months === null) return null
  const now = new Date(nowMs)
  const lastDay = new Date(
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + row.points_valid_months + 1, 0),
  ).getUTCDate()
  const day = Math.min(now.getUTCDate(), lastDay)
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + row.points_valid_months, day) + (nowMs % 86_400_000)
}

/** `2026-11`, in UTC. */
export function monthOf(ms: number): string {
  return iso(ms).slice(0, 7)
}

/** What the printed code of a program holds. */
export function checkInCode({ store_id, program_id }: LoyaltyProgramRow): string {
  return `untag://loyalty/${store_id}/${program_id}`
}

/** A program as the API shows it. */
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
