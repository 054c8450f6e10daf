import { z } from 'zod'
import { knownCaller, rolesFrom, type Package, isAtLeast } from '../../platform/foundation/caller.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import { Id, iso, Limit, Offset, Success, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, pageAfter, readPageWithinText, pageLimits } from '../../platform/operations/paging.ts'
import { qrPngBase64 } from '../../platform/foundation/qr-code.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { findStore } from '../../platform/stores/queries.ts'
import {
  programOfCaller,
  amountOf,
  checkInCode,
  openProgram,
  tierOf,
  toLoyaltyProgram,
  type Program,
  unitsOf,
  type Reward,
  type Tier,
} from './program.ts'
import { countPrograms, findMember, listPrograms, programsOfStore, saveProgram } from './queries.ts'
import {
  LoyaltyProgram,
  Membership,
  PROGRAM_SETTINGS,
  PROGRAM_TYPES,
  SYSTEM_FIELDS,
  UserId,
  type EarningMethod,
  type ProgramType,
} from './schema.ts'
import { newId } from '../../../policy/ids.ts'
import { packageMissing } from '../../platform/operations/perform.ts'
import type { Randomness, Clock } from '../../../policy/platform.ts'

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
): Row<'loyalty_program'> {
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
function assertMethodsIncluded(
  { earningMethods = [] }: ProgramSettings,
  known: readonly EarningMethod[],
  have: Package,
): void {
  if (earningMethods.includes('scan_and_go') && !known.includes('scan_and_go') && !isAtLeast(have, 'GROW'))
    throw packageMissing('the earning method scan_and_go', 'GROW', have, 'store')
}

/** Applies settings to a program. Throws 400 if an amount has more decimals than the program's type allows. */
export function withSettings(
  row: Row<'loyalty_program'>,
  settings: ProgramSettings,
  platform: { clock: Clock; random: Randomness },
): Row<'loyalty_program'> {
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

/** Throws 400 if a request sends another value for a field that the system sets (ADR requests). */
function assertUnchanged(known: object, sent: Record<string, unknown>): void {
  for (const [field, value] of Object.entries(sent)) {
    if (value !== undefined && value !== (known as Record<string, unknown>)[field])
      throw invalid(field, 'is set by the system and cannot be changed', 'system_field')
  }
}

/** Maximum number of active programs per store; each check-in and checkout reads them all. */
const ACTIVE_PER_STORE = 50
/** Maximum number of programs per store. Programs cannot be deleted, and `getStoreLoyaltyPrograms` returns all. */
const PROGRAMS_PER_STORE = 500
/** Maximum number of characters of the rewards and tiers of all programs of a store, which are read together. */
const PROGRAM_TEXT_PER_STORE = 1_000_000

function textOf({ rewards, tiers }: Pick<Row<'loyalty_program'>, 'rewards' | 'tiers'>): number {
  return rewards.length + tiers.length
}

/** Throws 400 if the store would have too many programs with this new or changed program. */
async function assertProgramLimits({ db }: Call, program: Row<'loyalty_program'>): Promise<void> {
  const { program_id: programId, store_id: storeId, is_active: isActive } = program
  const all = await programsOfStore(db, storeId)
  const others = all.filter((row) => row.program_id !== programId)
  const text = [program, ...others].reduce((sum, row) => sum + textOf(row), 0)
  if (text > PROGRAM_TEXT_PER_STORE && text > all.reduce((sum, row) => sum + textOf(row), 0))
    throw invalid(
      'rewards',
      `of all programs of a store may have ${PROGRAM_TEXT_PER_STORE} characters with their tiers: name fewer rewards`,
      'too_many_programs',
    )
  if (others.length >= PROGRAMS_PER_STORE)
    throw invalid(
      'storeId',
      `has ${PROGRAMS_PER_STORE} loyalty programs, the maximum: change one of them`,
      'too_many_programs',
    )
  if (isActive === 1 && others.filter((row) => row.is_active === 1).length >= ACTIVE_PER_STORE) {
    const fix = 'set isActive to false for one with updateLoyaltyProgram'
    throw invalid(
      'storeId',
      `has ${ACTIVE_PER_STORE} active loyalty programs, the maximum: ${fix}`,
      'too_many_programs',
    )
  }
}
const DEFAULT_PAGE = 50
const Name = text(120).refine((name) => name.trim() !== '', 'must not be blank')

export const createLoyaltyProgram = operation({
  name: 'createLoyaltyProgram',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('manager'),
  summary: 'Creates a loyalty program for a store.',
  description:
    'Stamps count visits, points and tier programs count euros, cashback is a share of the payment. Customers ' +
    'become members with their first earning. `scan_and_go` and `click_collect` credit automatically when a ' +
    'checkout is paid or an order is picked up.',
  changes: true,
  request: z.strictObject({ storeId: Id, name: Name, type: z.enum(PROGRAM_TYPES), ...PROGRAM_SETTINGS }),
  response: LoyaltyProgram.extend(Success),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    name: 'Stempelkarte',
    type: 'stamps',
    rewards: [{ name: 'Ein Kaffee', cost: 10 }],
  },
  async run(call, { storeId, type, ...settings }) {
    const store = await ownStore(call, storeId)
    const { platform } = call.services
    const have = store.package as Package
    assertMethodsIncluded(settings, [], have)
    const blank = blankProgram({ tenant: store.tenant, storeId, package: have, name: settings.name, type }, platform)
    const row = withSettings(blank, settings, platform)
    await assertProgramLimits(call, row)
    await saveProgram(call.db, row)
    call.changed(row.program_id)
    return { success: true as const, ...toLoyaltyProgram(openProgram(row, store)) }
  },
})

export const updateLoyaltyProgram = operation({
  name: 'updateLoyaltyProgram',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('manager'),
  summary: 'Changes a loyalty program.',
  description:
    'Omitted fields keep their values. `rewards` and `tiers` replace the whole list; rewards that you send with ' +
    'their `rewardId` keep it. The type of a program cannot change.',
  changes: true,
  request: z.strictObject({ programId: Id, name: Name.optional(), ...PROGRAM_SETTINGS, ...SYSTEM_FIELDS }),
  response: LoyaltyProgram.extend(Success),
  example: {
    programId: 'loy_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    earningMethods: ['qr_checkin', 'scan_and_go'],
    isActive: true,
  },
  async run(
    call,
    { programId, storeId, type, checkInCode: code, qrCodeImage: _image, createdAt, updatedAt, ...settings },
  ) {
    const { program, store } = await programOfCaller(call, programId)
    assertUnchanged(toLoyaltyProgram(program), { storeId, type, checkInCode: code, createdAt, updatedAt })
    assertMethodsIncluded(settings, toLoyaltyProgram(program).earningMethods, store.package as Package)
    const row = { ...withSettings(program.row, settings, call.services.platform), updated_ms: call.nowMs }
    await assertProgramLimits(call, row)
    await saveProgram(call.db, row)
    call.changed(programId)
    return { success: true as const, ...toLoyaltyProgram(openProgram(row, store)) }
  },
})

const ProgramToPrint = LoyaltyProgram.extend({
  ...Success,
  qrCodeImage: z.string().describe('PNG of `checkInCode`, Base64, to print and put up at the counter.'),
  membership: Membership.optional(),
})

export const getLoyaltyProgram = operation({
  name: 'getLoyaltyProgram',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Returns one loyalty program with its QR code to print.',
  description: 'With `userId` (secret keys only) the response contains the membership of this customer.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: z.strictObject({ programId: Id, userId: UserId.optional() }),
  response: ProgramToPrint,
  example: { programId: 'loy_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { programId, userId }) {
    if (userId !== undefined && knownCaller(call.caller).kind === 'publishable') {
      throw new Failure('permission-denied', 'only secret keys can read balances', { reason: 'secret_keys_only' })
    }
    const { program } = await programOfCaller(call, programId)
    const qrCodeImage = qrPngBase64(checkInCode(program.row))
    const membership = userId === undefined ? undefined : await membershipOf(call, program, userId)
    return { success: true as const, ...toLoyaltyProgram(program), qrCodeImage, ...(membership && { membership }) }
  },
})

async function membershipOf({ db }: Call, program: Program, userId: string): Promise<z.infer<typeof Membership>> {
  const member = await findMember(db, program.row.program_id, userId)
  const balance = member?.balance ?? 0
  const membership = { userId, balance: amountOf(program.type, balance), tier: tierOf(program, balance)?.name ?? null }
  return { ...membership, ...(member && { enrolledAt: iso(member.enrolled_ms) }) }
}

const Programs = z.strictObject({
  ...Success,
  programs: z.array(LoyaltyProgram),
  total: z.int(),
  nextCursor: z.string().optional(),
})

export const getStoreLoyaltyPrograms = operation({
  name: 'getStoreLoyaltyPrograms',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Lists the loyalty programs of one store.',
  changes: false,
  request: z.strictObject({ storeId: Id }),
  response: Programs,
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    const store = await ownStore(call, storeId)
    const programs = (await programsOfStore(call.db, storeId)).map((row) => toLoyaltyProgram(openProgram(row, store)))
    return { success: true as const, programs, total: programs.length }
  },
})

export const getLoyaltyPrograms = operation({
  name: 'getLoyaltyPrograms',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('viewer'),
  summary: 'Lists the loyalty programs of all own stores.',
  changes: false,
  request: z.strictObject({
    isActive: z.boolean().optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('loy').optional(),
  }),
  response: Programs,
  example: { isActive: true },
  async run(call, { isActive, ...paging }) {
    const { tenant, ...caller } = knownCaller(call.caller)
    const filter = { tenant, storeIds: caller.kind === 'agent' ? [caller.storeId] : caller.storeIds, isActive }
    const page = pageLimits(paging, DEFAULT_PAGE)
    const { items, nextCursor } = await readPageWithinText(
      (atMost, last: Row<'loyalty_program'> | undefined) =>
        listPrograms(call.db, filter, { ...pageAfter(page, last?.program_id), limit: atMost }),
      (row) => row.program_id,
      textOf,
      page,
    )
    const programs = []
    for (const row of items) {
      const store = await findStore(call.db, row.store_id)
      if (store) programs.push(toLoyaltyProgram(openProgram(row, store)))
    }
    return {
      success: true as const,
      programs,
      total: await countPrograms(call.db, filter),
      ...(nextCursor && { nextCursor }),
    }
  },
})
