import { newId } from '../../../policy/ids.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { isAtLeast, type Package } from '../../platform/foundation/packages.ts'
import { packageMissing } from '../../platform/operations/perform.ts'
import type { Randomness, Clock } from '../../../policy/platform.ts'
import type { LoyaltyProgramRow } from '../../platform/persistence/tables/loyalty.ts'
import { unitsOf, type Reward, type Tier } from './program.ts'
import type { EarningMethod, ProgramType } from './schema.ts'

/** Settings of a program; undefined keeps the old value. */
export interface ProgramSettings {
  name?: string | undefined
  earningMethods?: readonly EarningMethod[] | undefined
  rewards?: readonly { rewardId?: string | undefined; name: string; cost: number }[] | undefined
  tiers?: readonly Tier[] | undefined
  pointsPerEuro?: number | undefined
  stampsPerVisit?: number | undefined
  cashbackPercent?: number | undefined
  pointsValidMonths?: number | null | undefined
  isActive?: boolean | undefined
}

/** Builds the row of a new program with default settings. */
export function blankProgram(
  of: { tenant: string; storeId: string; package: Package; name: string; type: ProgramType },
  platform: { clock: Clock; random: Randomness },
): LoyaltyProgramRow {
  const nowMs = platform.clock.wall()
  return {
    program_id: newId('loy', platform),
    tenant: of.tenant,
    store_id: of.storeId,
    name: of.name,
    type: of.type,
    earning_methods: JSON.stringify([isAtLeast(of.package, 'GROW') ? 'scan_and_go' : 'qr_checkin']),
    points_per_euro_milli: 1_000,
    stamps_per_visit: 1,
    cashback_basis_points: 100,
    points_valid_months: null,
    rewards: '[]',
    tiers: '[]',
    is_active: 1,
    created_ms: nowMs,
    updated_ms: nowMs,
  }
}

/** Throws 403 if settings add an earning method that the package of the store lacks. */
export function assertMethodsIncluded(
  { earningMethods = [] }: ProgramSettings,
  known: readonly EarningMethod[],
  have: Package,
): void {
  if (earningMethods.includes('scan_and_go') && !known.includes('scan_and_go') && !isAtLeast(have, 'GROW'))
    throw packageMissing('the earning method scan_and_go', 'GROW', have, 'store')
}

/** Applies settings to a program. Throws 400 if an amount has more decimals than the program's type allows. */
export function withSettings(
  row: LoyaltyProgramRow,
  settings: ProgramSettings,
  platform: { clock: Clock; random: Randomness },
): LoyaltyProgramRow {
  const type = row.type as ProgramType
  const {
    name,
    earningMethods,
    rewards,
    tiers,
    pointsPerEuro,
    stampsPerVisit,
    cashbackPercent,
    pointsValidMonths,
    isActive,
  } = settings
  return {
    ...row,
    ...(name !== undefined && { name }),
    ...(earningMethods && { earning_methods: JSON.stringify(earningMethods) }),
    ...(rewards && { rewards: JSON.stringify(rewardsOf(type, rewards, () => newId('rwd', platform))) }),
    ...(tiers && { tiers: JSON.stringify(tiersOf(type, tiers)) }),
    ...(pointsPerEuro !== undefined && { points_per_euro_milli: Math.round(pointsPerEuro * 1_000) }),
    ...(stampsPerVisit !== undefined && { stamps_per_visit: stampsPerVisit }),
    ...(cashbackPercent !== undefined && { cashback_basis_points: Math.round(cashbackPercent * 100) }),
    ...(pointsValidMonths !== undefined && { points_valid_months: pointsValidMonths }),
    ...(isActive !== undefined && { is_active: isActive ? 1 : 0 }),
  }
}

function rewardsOf(
  type: ProgramType,
  rewards: NonNullable<ProgramSettings['rewards']>,
  newRewardId: () => string,
): Reward[] {
  const read = rewards.map(({ rewardId, name, cost }, i) => ({
    rewardId: rewardId ?? newRewardId(),
    name,
    cost: unitsOf(type, cost, `rewards[${i}].cost`),
  }))
  return read.sort((a, b) => a.cost - b.cost)
}

function tiersOf(type: ProgramType, tiers: readonly Tier[]): Tier[] {
  return tiers
    .map(({ name, threshold }, i) => ({ name, threshold: unitsOf(type, threshold, `tiers[${i}].threshold`) }))
    .sort((a, b) => a.threshold - b.threshold)
}

/** Throws 400 if a request sends another value for a field that the system sets (ADR 0002). */
export function assertUnchanged(known: object, sent: Record<string, unknown>): void {
  for (const [field, value] of Object.entries(sent)) {
    if (value !== undefined && value !== (known as Record<string, unknown>)[field])
      throw invalid(field, 'is set by the system and cannot be changed', 'system_field')
  }
}
