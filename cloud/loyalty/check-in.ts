import { secretsEqual } from '../../policy/secrets-equal.ts'
import { invalid, precondition } from '../foundation/failure.ts'
import { iso } from '../operations/fields.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { distanceKm, type Position } from '../stores/distance.ts'
import { earn, enrol, type Scope } from './ledger.ts'
import { checkInCode, earnedByVisit, type Program } from './program.ts'
import { findMember, recordCheckIn } from './queries.ts'

/** Maximum distance between customer and store, km. */
const NEAR_KM = 0.2
/** Minimum time between two check-ins of the same kind, ms (specification, Limits). */
const WAIT_MS = { qr_checkin: 3_600_000, store_checkin: 86_400_000 } as const
const COLUMN = { qr_checkin: 'last_qr_ms', store_checkin: 'last_visit_ms' } as const

export type CheckIn = { method: 'qr_checkin'; code: string } | { method: 'store_checkin'; at: Position }

export interface CheckedIn {
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
export async function checkInCustomer(
  scope: Scope,
  program: Program,
  store: StoreRow,
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

function assertNear({ lat, lng }: StoreRow, at: Position): void {
  if (lat === null || lng === null)
    throw precondition(
      'store_position_unknown',
      'the position of this store is unknown: set its coordinates with updateStore',
    )
  const km = distanceKm({ lat, lng }, at)
  if (km > NEAR_KM)
    throw precondition('too_far', `${Math.round(km * 1_000)} m from the store; at most ${NEAR_KM * 1_000} m`)
}
