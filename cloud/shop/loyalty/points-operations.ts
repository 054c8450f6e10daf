import { z } from 'zod'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { Id, iso, Success, scanned, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { refundsOf } from '../purchases/refund-queries.ts'
import { unrefundedCent } from '../purchases/refunds.ts'
import { purchaseOfCaller } from '../purchases/queries.ts'
import { memberOfRequest } from './card-operations.ts'
import { earn, redeem, type Earning, enrol, type Scope } from './ledger.ts'
import {
  assertActive,
  programOfCaller,
  amountOf,
  earnedByPurchase,
  tierOf,
  unitsOf,
  type Program,
  checkInCode,
  earnedByVisit,
} from './program.ts'
import { findEarned, findMember, recordCheckIn } from './queries.ts'
import { Amount, CardCode, EARNING_SOURCES, UserId } from './schema.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { distanceKm, type Position } from '../../platform/stores/queries.ts'

/** Maximum distance between customer and store, km. */
const NEAR_KM = 0.2
/** Minimum time between two check-ins of the same kind, ms (specification, Limits). */
const WAIT_MS = { qr_checkin: 3_600_000, store_checkin: 86_400_000 } as const
const COLUMN = { qr_checkin: 'last_qr_ms', store_checkin: 'last_visit_ms' } as const

type CheckIn = { method: 'qr_checkin'; code: string } | { method: 'store_checkin'; at: Position }

interface CheckedIn {
  enrolled: boolean
  /** Earned units: points, stamps, or cents of cashback. */
  earned: number
  balance: number
  nextMs: number
}

/**
 * Checks a customer in. Requires the program's code or a position near the store. Rejects a check-in that comes too
 * soon after the last one of the same kind.
 */
async function checkInCustomer(
  scope: Scope,
  program: Program,
  store: Row<'store'>,
  userId: string,
  checkIn: CheckIn,
): Promise<CheckedIn> {
  const { method } = checkIn
  const { db, nowMs } = scope
  const programId = program.row.program_id
  if (!program.methods.includes(method))
    throw precondition(
      'earning_method_off',
      `this program does not earn points by ${method}: change its earningMethods`,
    )
  if (checkIn.method === 'qr_checkin') assertCode(program, checkIn.code)
  else assertNear(store, checkIn.at)
  const enrolled = await enrol(scope, program, userId, method)
  if (!(await recordCheckIn(db, programId, userId, COLUMN[method], nowMs, WAIT_MS[method]))) {
    const last = (await findMember(db, programId, userId))?.[COLUMN[method]] ?? nowMs
    throw precondition('too_soon', 'this customer has already checked in: try again after retryAt', {
      retryAt: iso(last + WAIT_MS[method]),
    })
  }
  const units = earnedByVisit(program)
  const balance =
    units > 0
      ? (await earn(scope, program, { userId, units, source: method })).balance
      : ((await findMember(db, programId, userId))?.balance ?? 0)
  return { enrolled, earned: units, balance, nextMs: nowMs + WAIT_MS[method] }
}

function assertCode({ row }: Program, code: string): void {
  if (!secretsEqual(checkInCode(row), code.trim()))
    throw invalid('code', 'is not the code of this program', 'wrong_code')
}

function assertNear({ lat, lng }: Row<'store'>, at: Position): void {
  if (lat === null || lng === null)
    throw precondition(
      'store_position_unknown',
      'the position of this store is unknown: set its coordinates with updateStore',
    )
  const km = distanceKm({ lat, lng }, at)
  if (km > NEAR_KM)
    throw precondition('too_far', `${Math.round(km * 1_000)} m from the store; at most ${NEAR_KM * 1_000} m`)
}

const Movement = {
  ...Success,
  programId: z.string(),
  userId: z.string(),
  amount: z.number(),
  newBalance: z.number(),
  tier: z.string().nullable().describe('Tier after this movement; null without tiers or below the first.'),
}

function movement(program: Program, userId: string, units: number, balance: number) {
  return {
    success: true as const,
    programId: program.row.program_id,
    userId,
    amount: amountOf(program.type, units),
    newBalance: amountOf(program.type, balance),
    tier: tierOf(program, balance)?.name ?? null,
  }
}

export const addLoyaltyPoints = operation({
  name: 'addLoyaltyPoints',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Credits points, stamps or cashback to a customer.',
  description:
    'Credits an `amount`, or the amount that a paid purchase (`purchaseId`) earns by the rules of the program. ' +
    'Refunded parts of the purchase earn nothing. A transaction earns once per program; repeated calls return the ' +
    'first result. Send `userId` or `cardCode`.',
  changes: true,
  refusals: ['program_inactive', 'transaction_used', 'purchase_not_paid', 'nothing_earned'],
  request: z.strictObject({
    programId: Id,
    userId: UserId.optional(),
    cardCode: CardCode.optional(),
    amount: Amount.optional(),
    purchaseId: Id.optional(),
    source: z.enum(EARNING_SOURCES).optional().describe('Default `scan_and_go` with a purchase, else `manual`.'),
    transactionId: text(128).optional().describe('Id in your own system; with a purchase, its id.'),
  }),
  response: z.strictObject({ ...Movement, transactionId: z.string() }),
  example: {
    programId: 'loy_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    userId: 'shopper-17',
    amount: 25,
    transactionId: 'till-4-20261120-0815',
  },
  emits: [
    'loyalty.points_earned',
    'loyalty.enrollment',
    'loyalty.reward_unlocked',
    'loyalty.tier_changed',
    'loyalty.qr_earned',
    'loyalty.checkin_earned',
  ],
  async run(call, input) {
    const { programId, purchaseId } = input
    const { program } = await programOfCaller(call, programId)
    assertActive(program)
    const userId = await memberOfRequest(call, program, input)
    if (purchaseId !== undefined && input.transactionId !== undefined && input.transactionId !== purchaseId)
      throw invalid('transactionId', 'differs from purchaseId')
    const earned = await toAdd(call, program, input)
    const source = input.source ?? (purchaseId === undefined ? 'manual' : 'scan_and_go')
    const moved = await earn(call, program, {
      userId,
      ...earned,
      source,
      transactionId: purchaseId ?? input.transactionId,
    })
    call.changed(moved.entryId)
    return { ...movement(program, userId, moved.units, moved.balance), transactionId: moved.transactionId }
  },
})

interface PointsRequest {
  amount?: number | undefined
  purchaseId?: string | undefined
}

/** Units to credit; for a purchase also the amount that the customer still pays. */
async function toAdd(
  call: Call,
  program: Program,
  { amount, purchaseId }: PointsRequest,
): Promise<Pick<Earning, 'units' | 'earnedOnCent'>> {
  if (purchaseId === undefined) {
    if (amount === undefined) throw invalid('amount', 'is missing: send an amount or a purchaseId', 'missing')
    return { units: unitsOf(program.type, amount, 'amount') }
  }
  const { purchase } = await purchaseOfCaller(call, purchaseId)
  if (purchase.store_id !== program.row.store_id) throw notFound('purchase')
  if (purchase.status !== 'SUCCESS' && purchase.status !== 'UNLOADED')
    throw precondition('purchase_not_paid', `a purchase with status ${purchase.status} earns nothing`)
  const earnedOnCent = unrefundedCent(purchase, await refundsOf(call.db, purchaseId))
  if (amount !== undefined) return { units: unitsOf(program.type, amount, 'amount'), earnedOnCent }
  const isAllBack = earnedOnCent <= 0 && purchase.total_cent > 0
  const units = isAllBack ? 0 : earnedByPurchase(program, earnedOnCent)
  // If this purchase has already earned units, `earn` returns the stored earning unchanged.
  if (units === 0 && !(await findEarned(call.db, program.row.program_id, purchaseId)))
    throw precondition(
      'nothing_earned',
      isAllBack ? 'the whole payment was refunded' : 'this purchase is too small to earn anything in this program',
    )
  return { units, earnedOnCent }
}

export const redeemLoyaltyPoints = operation({
  name: 'redeemLoyaltyPoints',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Redeems points, stamps or cashback of a customer, for a reward or as an amount.',
  description:
    'The balance never falls below 0: the operation fails with 409 `balance_too_low`. Send `userId` or `cardCode`.',
  changes: true,
  refusals: ['balance_too_low'],
  request: z.strictObject({
    programId: Id,
    userId: UserId.optional(),
    cardCode: CardCode.optional(),
    rewardId: Id.optional(),
    amount: Amount.optional(),
  }),
  response: z.strictObject({
    ...Movement,
    transactionId: z.string(),
    rewardId: z.string().optional(),
    rewardName: z.string().optional(),
  }),
  example: { programId: 'loy_01KANX6Y7C3V9Q2M8R5T4W6Z1B', userId: 'shopper-17', amount: 10 },
  emits: ['loyalty.points_redeemed', 'loyalty.tier_changed'],
  async run(call, { programId, rewardId, amount, ...input }) {
    const { program } = await programOfCaller(call, programId)
    const userId = await memberOfRequest(call, program, input)
    const reward = rewardId === undefined ? undefined : program.rewards.find((each) => each.rewardId === rewardId)
    if (rewardId !== undefined && !reward) throw notFound('reward')
    if (reward === undefined && amount === undefined)
      throw invalid('rewardId', 'is missing: send a rewardId or an amount', 'missing')
    const units = amount === undefined ? (reward?.cost ?? 0) : unitsOf(program.type, amount, 'amount')
    if (reward && reward.cost !== units) throw invalid('amount', 'differs from the cost of the reward')
    const moved = await redeem(call, program, userId, units, rewardId)
    call.changed(moved.entryId)
    return {
      ...movement(program, userId, units, moved.balance),
      transactionId: moved.transactionId,
      ...(reward && { rewardId: reward.rewardId, rewardName: reward.name }),
    }
  },
})

const Degrees = (limit: number) => z.number().min(-limit).max(limit).optional()

export const loyaltyCheckIn = operation({
  name: 'loyaltyCheckIn',
  area: 'loyalty',
  minimumPackage: 'GO',
  roles: rolesFrom('associate'),
  summary: 'Checks a customer in by the QR code at the counter or by the position.',
  description:
    'A customer can check in by QR code once per hour, and by position (within 200 m of the store) once in 24 ' +
    'hours. Earlier check-ins fail with 409 `too_soon` and `retryAt`. The first check-in enrols the customer. In a ' +
    'cashback program a visit earns nothing.',
  changes: true,
  refusals: ['too_soon', 'too_far', 'earning_method_off', 'program_inactive', 'store_position_unknown'],
  request: z.strictObject({
    programId: Id,
    userId: UserId,
    method: z.enum(['qr_checkin', 'store_checkin']),
    code: scanned(400).optional().describe('With `qr_checkin`: content of the QR code.'),
    lat: Degrees(90).describe('With `store_checkin`.'),
    lng: Degrees(180),
    latitude: Degrees(90).describe('Synonym of `lat`.'),
    longitude: Degrees(180).describe('Synonym of `lng`.'),
  }),
  response: z.strictObject({
    ...Movement,
    method: z.enum(['qr_checkin', 'store_checkin']),
    enrolled: z.boolean().describe('True if this check-in enrolled the customer.'),
    nextCheckInAt: z.string(),
  }),
  example: {
    programId: 'loy_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    userId: 'shopper-17',
    method: 'store_checkin',
    lat: 53.5446,
    lng: 9.9889,
  },
  emits: [
    'loyalty.points_earned',
    'loyalty.qr_earned',
    'loyalty.checkin_earned',
    'loyalty.enrollment',
    'loyalty.reward_unlocked',
    'loyalty.tier_changed',
  ],
  async run(call, { programId, userId, ...input }) {
    const checkIn = checkInOf(input)
    const { program, store } = await programOfCaller(call, programId)
    assertActive(program)
    const { earned, balance, enrolled, nextMs } = await checkInCustomer(call, program, store, userId, checkIn)
    call.changed(programId)
    return {
      ...movement(program, userId, earned, balance),
      method: checkIn.method,
      enrolled,
      nextCheckInAt: iso(nextMs),
    }
  },
})

interface CheckInInput {
  method: CheckIn['method']
  code?: string | undefined
  lat?: number | undefined
  lng?: number | undefined
  latitude?: number | undefined
  longitude?: number | undefined
}

function checkInOf({ method, code, ...input }: CheckInInput): CheckIn {
  if (method === 'qr_checkin') {
    if (code === undefined) throw invalid('code', 'is missing: send the content of the QR code', 'missing')
    return { method, code }
  }
  const [lat, lng] = [agreedValue('lat', input.lat, input.latitude), agreedValue('lng', input.lng, input.longitude)]
  if (lat === undefined) throw invalid('lat', 'is missing: send the position of the customer', 'missing')
  if (lng === undefined) throw invalid('lng', 'is missing: send the position of the customer', 'missing')
  return { method, at: { lat, lng } }
}

function agreedValue(field: string, a: number | undefined, b: number | undefined): number | undefined {
  if (a !== undefined && b !== undefined && a !== b) throw invalid(field, 'is sent twice with different values')
  return a ?? b
}
