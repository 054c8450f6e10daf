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

/** State of a leasable right for the requesting device. */
export interface LeaseView {
  right: DecisionFacts['right']
  /** Authorization that this device already holds for the same target. */
  own?: ProtectionAuthorizationRow
  /** Authorization that the cloud can transfer at once. */
  takeable?: ProtectionAuthorizationRow
  /** End of a lease that cannot be transferred, s since 1970, with guard. */
  endsAt?: number
  /** Authorization that the cloud can recall from its lease holder. */
  held?: ProtectionAuthorizationRow
  /** Authorization that an operator overrides (../authorize/override-lease.ts). */
  overridden?: ProtectionAuthorizationRow
}

const GUARD_SECONDS = 60

/** True if an agent with a slow clock may still honour it. */
export function mayBeHonoured({ exp }: Pick<ProtectionAuthorizationRow, 'exp'>, nowMs: number): boolean {
  return (exp + GUARD_SECONDS) * 1_000 > nowMs
}

/**
 * True if a process with a fast clock issued it. Its expiry is wrong, and no device with a correct clock honours it.
 */
function isOfFuture({ iat }: Pick<ProtectionAuthorizationRow, 'iat'>, nowMs: number): boolean {
  return (iat - GUARD_SECONDS) * 1_000 > nowMs
}

/**
 * Views a right for a device (ADR 0011). The lease holder gets its lease again; another device gets only what the
 * cloud can transfer at once. `right`: absent for actions without a right. `covers`: true if a lease is for the
 * requested target. A device that moves to another agent gets no new lease until it arrived.
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
    // Its agent may have voided it already.
    if (row.void_asked_ms !== null) return { right: 'leased_elsewhere', endsAt, held: row }
    if (await mayReissue(call, row, device)) return { right: 'free', own: row }
    if (row.agent_id !== null) return { right: 'leased_elsewhere', endsAt }
  }
  // A holder of a cloud token asks the cloud before it acts. An agent that missed the revocation, or has a slow
  // clock, may still act, also at this device.
  if (row.agent_id === null || row.voided_ms !== null) return { right: 'free', takeable: row }
  return { right: 'leased_elsewhere', endsAt, held: row }
}

type Revoking = Pick<Call, 'db' | 'services' | 'afterCommit' | 'nowMs'>

/**
 * Ends a lease that the cloud can transfer at once. If an agent exchanges a cloud token for the same device
 * (../authorize/presented-token.ts), the old token is voided without an entry in the deny list.
 */
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

/** Revokes an authorization and frees the rights of its unused steps. */
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
    // The deny list informs every agent; the holder answers with a void.
    call.afterCommit(() => call.services.agents.sendCommand({ storeId, agentId }, { command: 'void', nonce }))
  }
  call.services.log.info({ nonce: row.nonce.slice(0, 8), reason }, 'an authorization was revoked')
  return revoked
}

/**
 * Asks the holder to give up an authorization whose right was used without it. The authorization stays unrevoked,
 * because the holder may use it legitimately before the request arrives. A token of a device without agent is revoked
 * at once.
 */
export async function recallLease(call: Revoking, row: ProtectionAuthorizationRow): Promise<void> {
  const { store_id: storeId, agent_id: agentId, nonce } = row
  if (agentId === null) return void (await revokeAuthorization(call, row, 'a unit of it was used by the receipt'))
  if (row.void_asked_ms !== null) return
  await updateAuthorization(call.db, row, { void_asked_ms: call.nowMs })
  call.afterCommit(() => call.services.agents.sendCommand({ storeId, agentId }, { command: 'void', nonce }))
}

/** Frees the rights of steps without a redemption. */
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
