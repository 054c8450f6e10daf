import type { DecisionFacts } from '../../../policy/decide.ts'
import { type ProtectionAction, type RightClass, RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import {
  findAuthorization,
  isClaimedByCloud,
  mayReissue,
  redemptionsOf,
  unitsOfAuthorization,
  updateAuthorization,
  moveEndsAt,
} from './authorizations.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'
import { denyNonce, denyRights, hasAgents } from '../rights/deny-list.ts'
import { settleRight, settlePurchases } from '../rights/settle-purchase.ts'
import { RedemptionBatch } from '../rights/redemption-batch.ts'
import {
  type RightView,
  type UnitKey,
  findRight,
  passOf,
  rightName,
  rightsOfUnits,
  storeReturned,
} from '../rights/rights.ts'
import { pause } from '../../../policy/platform.ts'
import type { WaitForRelease } from '../../platform/operations/notifier.ts'
import type { Db } from '../../platform/persistence/database.ts'

/**
 * Maximum wait for the lease holders, ms. The wait is short, because a shopper waits at the requesting device (ADR
 * leases).
 */
const WAIT_MS = 1_000
/** Time between two checks, ms. */
const STEP_MS = 25

/**
 * Recalls these leases and makes the cloud run the call again before it denies the request. Each call waits at most
 * once.
 */
export function requestLeaseRelease(call: Call, held: readonly Row<'protection_authorization'>[]): void {
  if (held.length > 0) call.recallLeaseAndRetry((db) => requestEach(call, db, held))
}

async function requestEach(
  { services, nowMs }: Call,
  db: Db,
  held: readonly Row<'protection_authorization'>[],
): Promise<WaitForRelease> {
  const { agents, platform } = services
  for (const row of held) {
    if (row.void_asked_ms !== null) continue
    await updateAuthorization(db, row, { void_asked_ms: nowMs })
  }
  return async (reads) => {
    for (const { store_id: storeId, agent_id: agentId, nonce } of held)
      if (agentId !== null) agents.sendCommand({ storeId, agentId }, { command: 'void', nonce })
    // An offline agent receives the command only when it reconnects, so the call does not wait for offline agents.
    const reachable = held.filter(({ agent_id: agentId }) => agentId !== null && agents.isConnected(agentId))
    for (let waited = 0; reachable.length > 0 && waited < WAIT_MS; waited += STEP_MS) {
      if (await areSettled(reads, reachable)) return
      await pause(platform.timers, STEP_MS)
    }
  }
}

/** True if each authorization was voided or fully used. */
async function areSettled(reads: Db, rows: readonly Row<'protection_authorization'>[]): Promise<boolean> {
  for (const { nonce } of rows) {
    const row = await findAuthorization(reads, nonce)
    if (row && row.voided_ms === null && (await redemptionsOf(reads, nonce)).length < row.count) return false
  }
  return true
}

/** State of a leasable right for the requesting device. */
export interface LeaseView {
  right: DecisionFacts['right']
  /** Authorization that this device already holds for the same target. */
  own?: Row<'protection_authorization'>
  /** Authorization that the cloud can transfer at once. */
  transferable?: Row<'protection_authorization'>
  /** If the cloud cannot transfer the lease: end of the lease plus clock guard, s since 1970. */
  endsAt?: number
  /** Authorization that the cloud can recall from its lease holder. */
  recallable?: Row<'protection_authorization'>
  /** Authorization that an operator overrides (../authorize/request-context.ts). */
  overridden?: Row<'protection_authorization'>
}

const GUARD_SECONDS = 60

/** True if an agent with a slow clock may still honour the authorization. */
function mayBeHonoured({ exp }: Pick<Row<'protection_authorization'>, 'exp'>, nowMs: number): boolean {
  return (exp + GUARD_SECONDS) * 1_000 > nowMs
}

/**
 * True if a process with a fast clock issued the authorization. The expiry time of such an authorization is wrong, and
 * no device with a correct clock honours the authorization.
 */
function isOfFuture({ iat }: Pick<Row<'protection_authorization'>, 'iat'>, nowMs: number): boolean {
  return (iat - GUARD_SECONDS) * 1_000 > nowMs
}

/**
 * Determines whether a device may lease a right (ADR leases). The lease holder gets its own lease again. Another device
 * gets the right only if the cloud can transfer the lease at once. During a move to another agent, a device gets no
 * lease. `right` is absent for actions without a right. `covers` returns true if a lease is for the requested target.
 */
export async function viewLease(
  call: Call,
  right: RightView | undefined,
  device: Row<'device'>,
  action: ProtectionAction,
  covers: (row: Row<'protection_authorization'>) => boolean,
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
    // The cloud has recalled this lease, so the agent may have voided the token already.
    if (row.void_asked_ms !== null) return { right: 'leased_elsewhere', endsAt, recallable: row }
    if (await mayReissue(call, row, device)) return { right: 'free', own: row }
    if (!isClaimedByCloud(row)) return { right: 'leased_elsewhere', endsAt }
  }
  // A device with a cloud token must redeem the token at the cloud before the device acts, so the cloud can transfer
  // the lease. An agent or an offline device may still act if it does not know of the revocation, or if its clock is
  // slow. Only an agent can be recalled.
  if (isClaimedByCloud(row) || row.voided_ms !== null) return { right: 'free', transferable: row }
  return { right: 'leased_elsewhere', endsAt, ...(row.agent_id !== null && { recallable: row }) }
}

type Revoking = Pick<Call, 'db' | 'services' | 'afterCommit' | 'nowMs'>

/**
 * Uses one step of a token that an agent exchanges (../authorize/presented-token.ts). The token is void then, because
 * the agent has its own; but it can still be revoked, which ends further exchanges.
 */
export async function noteExchange(
  call: Revoking,
  { nonce, voided_ms: voidedMs }: Row<'protection_authorization'>,
): Promise<void> {
  await call.db
    .updateTable('protection_authorization')
    .set((eb) => ({ exchanges: eb('exchanges', '+', 1), voided_ms: voidedMs ?? call.nowMs }))
    .where('nonce', '=', nonce)
    .execute()
}

/**
 * Ends a lease that the cloud can transfer at once. A token for the same device becomes void and is not revoked:
 * its other rights can still be exchanged.
 */
export async function transferLease(
  call: Revoking,
  row: Row<'protection_authorization'>,
  device: Pick<Row<'device'>, 'device_id'>,
): Promise<void> {
  if (row.agent_id !== null || row.device_id !== device.device_id)
    return void (await revokeAuthorization(call, row, 'another device requested its goods'))
  if (row.voided_ms === null) await updateAuthorization(call.db, row, { voided_ms: call.nowMs })
  await freeUnusedRights(call, row)
}

/**
 * Revokes an authorization. If only the cloud can claim the token, frees the rights of its unused steps. If an agent
 * holds the token, denies the nonce, and requests the agent to void the token. A device that works offline may use the
 * token until it has expired.
 */
export async function revokeAuthorization(
  call: Revoking,
  row: Row<'protection_authorization'>,
  reason: string,
): Promise<Row<'protection_authorization'>> {
  if (row.revoked_ms !== null) return row
  const { store_id: storeId, agent_id: agentId, nonce } = row
  const revoked = await updateAuthorization(call.db, row, {
    revoked_ms: call.nowMs,
    ...(agentId !== null && { void_asked_ms: row.void_asked_ms ?? call.nowMs }),
  })
  if (isClaimedByCloud(row)) await freeUnusedRights(call, row)
  if (agentId !== null) {
    await denyNonce(call, row)
    // The deny list informs all agents. The command makes the lease holder void the token.
    call.afterCommit(() => call.services.agents.sendCommand({ storeId, agentId }, { command: 'void', nonce }))
  }
  call.services.log.info({ nonce: row.nonce.slice(0, 8), reason }, 'an authorization was revoked')
  return revoked
}

/**
 * Recalls an authorization after a claim or a delegation used one of its rights. The authorization is not revoked,
 * because the lease holder may use it legitimately before the recall arrives. A token of the cloud's ledger is revoked
 * at once. A device without an agent cannot be recalled.
 */
export async function recallLease(call: Revoking, row: Row<'protection_authorization'>): Promise<void> {
  const { store_id: storeId, agent_id: agentId, nonce } = row
  if (isClaimedByCloud(row))
    return void (await revokeAuthorization(call, row, 'one of its units was released without it'))
  if (agentId === null || row.void_asked_ms !== null) return
  await updateAuthorization(call.db, row, { void_asked_ms: call.nowMs })
  call.afterCommit(() => call.services.agents.sendCommand({ storeId, agentId }, { command: 'void', nonce }))
}

/** Frees the rights of steps without a redemption, and informs the agents. */
export async function freeUnusedRights(call: Revoking, row: Row<'protection_authorization'>): Promise<void> {
  const { db } = call
  const freed: UnitKey[] = []
  const used = new Set((await redemptionsOf(db, row.nonce)).map((r) => r.step))
  const unused = (await unitsOfAuthorization(db, row.nonce)).filter((unit) => !used.has(unit.ordinal + 1))
  const redemptions = new RedemptionBatch(db, row.tenant)
  if (unused.length > 1)
    await redemptions.prepare(
      [],
      unused.map((unit) => unit.line_id),
    )
  for (const unit of unused) {
    const key: UnitKey = {
      lineId: unit.line_id,
      unitNo: unit.unit_no,
      rightClass: row.right_class as RightClass,
      purchaseId: row.purchase_id ?? '',
    }
    const right = await redemptions.right(key)
    if (right?.nonce !== row.nonce || right.state !== 'leased') continue
    await settleRight(redemptions, key, true)
    freed.push(key)
  }
  await redemptions.flush()
  await publishLeaseEnd(call, row, freed)
}

/**
 * Withdraws the entry of `publishLease` (../receipt-home/receipt-rights.ts) for units that the lease did not use. A token of the receipt home has no entry
 * for it, and the entry for other agents ends with the token.
 */
async function publishLeaseEnd(
  call: Revoking,
  row: Row<'protection_authorization'>,
  freed: readonly { lineId: string; unitNo: number }[],
): Promise<void> {
  const { db, nowMs } = call
  const { agent_id: agentId, nonce, purchase_id: purchaseId, store_id: storeId } = row
  const until = row.exp + GUARD_SECONDS
  if (freed.length === 0 || purchaseId === null || until * 1_000 <= nowMs || !(await hasAgents(db, storeId))) return
  const [store, purchase] = [await findStore(db, storeId), await findPurchase(db, row.tenant, purchaseId)]
  if (!store || !purchase || (agentId !== null && agentId === policyOf(store).home)) return
  await denyRights(call, purchase, row.right_class as RightClass, freed, until, { nonce, ended: true })
}

/**
 * True if the item belongs to this unit. If an item was returned and sold again, its former unit still names the item.
 */
export function isItemOf(
  item: Pick<Row<'protected_item'>, 'line_id' | 'unit_no'>,
  unit: Pick<Row<'purchase_unit'>, 'line_id' | 'unit_no'>,
): boolean {
  return item.line_id === unit.line_id && item.unit_no === unit.unit_no
}

/** The receipt itself, as a unit whose right to open a barrier ends. */
export function passUnitOf({ purchase_id: purchaseId }: Pick<Row<'purchase'>, 'purchase_id'>): {
  line_id: string
  unit_no: number
} {
  const { lineId, unitNo } = passOf(purchaseId)
  return { line_id: lineId, unit_no: unitNo }
}

/**
 * Revokes the leases of returned goods and marks their rights used, so that no receipt releases them (ADR sales). `by`:
 * id of the refund or item move.
 */
export async function returnUnits(
  call: Call,
  purchase: Row<'purchase'>,
  units: readonly { line_id: string; unit_no: number }[],
  by: string,
): Promise<void> {
  const { db, nowMs } = call
  const keys = units.map((unit) => ({ lineId: unit.line_id, unitNo: unit.unit_no }))
  const { purchase_id: purchaseId } = purchase
  const rights = RIGHT_CLASSES.flatMap((rightClass) => keys.map((key): UnitKey => ({ ...key, rightClass, purchaseId })))
  const before = await rightsOfUnits(db, purchaseId, keys)
  const leases = rights.flatMap((key) => {
    const row = before.get(rightName(key))
    return row?.state === 'leased' && row.nonce !== null ? [row.nonce] : []
  })
  for (const nonce of new Set(leases)) await revokeLeaseOf(call, nonce, 'its goods were returned')
  const stored = leases.length > 0 ? await rightsOfUnits(db, purchaseId, keys) : before
  const known = rights.map((key) => ({ key, row: stored.get(rightName(key)) }))
  await storeReturned(db, known, by, nowMs)
  for (const rightClass of RIGHT_CLASSES)
    if (purchase.receipt_exp !== null)
      await denyRights(call, purchase, rightClass, keys, purchase.receipt_exp + GUARD_SECONDS)
  await settlePurchases(call, [purchase.purchase_id])
}

/**
 * Revokes the authorization that leases this right. If the authorization leases further rights, devices must request
 * these again.
 */
export async function revokeLease(call: Call, right: UnitKey, reason: string): Promise<void> {
  const row = await findRight(call.db, right)
  if (row?.state === 'leased' && row.nonce !== null) await revokeLeaseOf(call, row.nonce, reason)
}

async function revokeLeaseOf(call: Call, nonce: string, reason: string): Promise<void> {
  const lease = await findAuthorization(call.db, nonce)
  if (lease && mayBeHonoured(lease, call.nowMs)) await revokeAuthorization(call, lease, reason)
}
