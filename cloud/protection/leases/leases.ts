import type { DecisionFacts } from '../../../policy/decide.ts'
import type { ProtectionAction } from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import {
  findAuthorization,
  mayReissue,
  redemptionsOf,
  unitsOfAuthorization,
  updateAuthorization,
} from './authorizations.ts'
import { denyNonce } from '../rights/deny-list.ts'
import { moveEndsAt } from './outstanding-tokens.ts'
import { settleRight } from '../rights/settle-right.ts'
import { RedemptionBatch } from '../rights/redemption-batch.ts'
import { findRight, type RightView, type UnitKey } from '../rights/rights.ts'
import type { RightClass } from '../../../policy/vocabulary.ts'

/** How a right that may be leased stands towards the device that asks. */
export interface LeaseView {
  right: DecisionFacts['right']
  /** The authorization that the same device already has for this. */
  own?: ProtectionAuthorizationRow
  /** One that can be taken at once from the device that holds it. */
  takeable?: ProtectionAuthorizationRow
  /** Seconds since 1970 after which a lease that cannot be taken has ended, guard included. */
  endsAt?: number
  /** One that an agent holds and can be asked to give up. */
  held?: ProtectionAuthorizationRow
  /** One that an operator goes past (../authorize/override-lease.ts). */
  overridden?: ProtectionAuthorizationRow
}

const GUARD_SECONDS = 60

/** Whether a clock that is behind may still honour it. */
export function mayBeHonoured({ exp }: Pick<ProtectionAuthorizationRow, 'exp'>, nowMs: number): boolean {
  return (exp + GUARD_SECONDS) * 1_000 > nowMs
}

/** Whether it was granted by a clock that was ahead: nobody whose clock is right honours it, and its end says nothing. */
function isOfFuture({ iat }: Pick<ProtectionAuthorizationRow, 'iat'>, nowMs: number): boolean {
  return (iat - GUARD_SECONDS) * 1_000 > nowMs
}

/**
 * At most one lease lives: the same device gets its own again, another one only what can be taken at once (contracts §4).
 * `right`: absent for what uses nothing up. `isForThat`: whether a lease is for what is asked about, be that an item or a purchase as a
 * whole. A device on its way to another agent gets nothing new until it is there.
 */
export async function viewLease(
  call: Call,
  right: RightView | undefined,
  device: DeviceRow,
  action: ProtectionAction,
  covers: (row: ProtectionAuthorizationRow) => boolean,
): Promise<LeaseView> {
  if (device.moving_to !== null && action !== 'verify_item_status' && right?.state !== 'used') {
    return { right: 'leased_elsewhere', endsAt: await moveEndsAt(call.db, device, call.nowMs) }
  }
  if (right?.state !== 'leased') return { right: right?.state ?? 'free' }
  const { device_id: deviceId } = device
  const row = await findAuthorization(call.db, right.nonce)
  if (!row) return { right: 'free' }
  const isAhead = isOfFuture(row, call.nowMs)
  const endsAt = (isAhead ? Math.floor(call.nowMs / 1_000) : row.exp) + GUARD_SECONDS
  const isLive = !isAhead && row.exp * 1_000 > call.nowMs && row.revoked_ms === null && row.voided_ms === null
  const isOwn = row.device_id === deviceId && row.action === action && covers(row)
  if (isOwn && isLive) {
    // Its agent may have given it up already.
    if (row.void_asked_ms !== null) return { right: 'leased_elsewhere', endsAt, held: row }
    if (await mayReissue(call, row, device)) return { right: 'free', own: row }
    if (row.agent_id !== null) return { right: 'leased_elsewhere', endsAt }
  }
  // Whoever has one of our own ledger asks us before they act. An agent that does not know that its token was taken back, or whose clock is
  // behind, may still act on it, at the same device as well.
  if (row.agent_id === null || row.voided_ms !== null) return { right: 'free', takeable: row }
  return { right: 'leased_elsewhere', endsAt, held: row }
}

type Revoking = Pick<Call, 'db' | 'services' | 'afterCommit' | 'nowMs'>

/** Takes what can be taken at once for another device; what the same device's agent is given instead is only exchanged (../authorize/presented-token.ts). */
export async function takeLease(
  call: Revoking,
  row: ProtectionAuthorizationRow,
  device: Pick<DeviceRow, 'device_id'>,
): Promise<void> {
  if (row.agent_id !== null || row.device_id !== device.device_id)
    return void (await revokeAuthorization(call, row, 'asked for by another device'))
  if (row.revoked_ms === null)
    await updateAuthorization(call.db, row, { revoked_ms: call.nowMs, voided_ms: call.nowMs })
  await freeUnusedRights(call, row)
}

/** Takes an authorization back and frees the rights of its steps that were not used. */
export async function revokeAuthorization(
  call: Revoking,
  row: ProtectionAuthorizationRow,
  reason: string,
): Promise<ProtectionAuthorizationRow> {
  if (row.revoked_ms !== null) return row
  const { store_id: storeId, agent_id: agentId, nonce } = row
  const revoked = await updateAuthorization(call.db, row, {
    revoked_ms: call.nowMs,
    ...(agentId !== null && { void_asked_ms: row.void_asked_ms ?? call.nowMs }),
  })
  if (agentId === null) await freeUnusedRights(call, row)
  else {
    await denyNonce(call, row)
    // Every agent is told by the list; the one that may hold it answers for it.
    call.afterCommit(() => call.services.agents.sendCommand({ storeId, agentId }, { command: 'void', nonce }))
  }
  call.services.log.info({ nonce: row.nonce.slice(0, 8), reason }, 'an authorization was revoked')
  return revoked
}

/**
 * Has an authorization given up whose unit was used by other means. What its agent did with it before it hears that is no
 * offence, so it is not taken back; a device without agent asks us, and hears no.
 */
export async function recallLease(call: Revoking, row: ProtectionAuthorizationRow): Promise<void> {
  const { store_id: storeId, agent_id: agentId, nonce } = row
  if (agentId === null) return void (await revokeAuthorization(call, row, 'a unit of it was used by the receipt'))
  if (row.void_asked_ms !== null) return
  await updateAuthorization(call.db, row, { void_asked_ms: call.nowMs })
  call.afterCommit(() => call.services.agents.sendCommand({ storeId, agentId }, { command: 'void', nonce }))
}

/** Frees what an authorization still leases: its steps without a redemption. */
export async function freeUnusedRights({ db }: Pick<Call, 'db'>, row: ProtectionAuthorizationRow): Promise<void> {
  const used = new Set((await redemptionsOf(db, row.nonce)).map((r) => r.step))
  for (const unit of await unitsOfAuthorization(db, row.nonce)) {
    if (used.has(unit.ordinal + 1)) continue
    const key: UnitKey = {
      lineId: unit.line_id,
      unitNo: unit.unit_no,
      rightClass: row.right_class as RightClass,
      purchaseId: row.purchase_id ?? '',
    }
    const right = await findRight(db, key)
    if (right?.nonce !== row.nonce || right.state !== 'leased') continue
    await settleRight(new RedemptionBatch(db, row.tenant), key, true)
  }
}
