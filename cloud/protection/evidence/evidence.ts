import type { Evidence } from '../../../policy/journal.ts'
import { joinOutcome } from '../../../policy/unit-uses.ts'
import type { Outcome, RightClass } from '../../../policy/vocabulary.ts'
import type { ProtectionAuthorizationRow, RedemptionRow } from '../../persistence/tables/protection.ts'
import { findPurchase } from '../../scan-and-go/queries.ts'
import {
  findAuthorization,
  redemptionsOf,
  unitsOfAuthorization,
  updateAuthorization,
} from '../leases/authorizations.ts'
import { bindItem } from './bind-item.ts'
import type { EvidenceScope } from './evidence-scope.ts'
import type { ReceiptPurchase } from './evidence-facts.ts'
import { acknowledgeAbout, raiseException, WITHDRAWN } from '../records/exceptions.ts'
import { raiseForeign, type Foreign } from './foreign-evidence.ts'
import { freeUnused, giveUpLease } from '../leases/leases.ts'
import { updateRedemption } from '../rights/redemptions.ts'
import { holdReleased, raiseReleased } from './released-late.ts'
import type { UnitKey } from '../rights/rights.ts'
import { unitOf } from '../rights/settle-right.ts'
import { settleUnit } from './settle-unit.ts'
import { tellOthers } from './tell-others.ts'
import { viewAuthorization } from '../leases/view.ts'

/**
 * Facts about what was used up, from whoever saw it: an agent's journal or a device's call. Facts are
 * never refused, only added; what should not have been becomes an exception (contracts §4, §5).
 */
export interface Witness {
  /** null: a device without agent, over HTTP. */
  agentId: string | null
  storeId: string
  /** Trusted time of what happened, ms. */
  atMs: number
  eventId: string
}

export type Claim = Extract<Evidence, { kind: 'claim' }>

/** Takes a claim into account. Answers false when what it is about is unknown: kept, and tried again after an upgrade. */
export async function applyClaim(scope: EvidenceScope, witness: Witness, claim: Claim): Promise<boolean> {
  return claim.source === 'token' ? applyTokenClaim(scope, witness, claim) : applyReceiptClaim(scope, witness, claim)
}

async function applyTokenClaim(scope: EvidenceScope, witness: Witness, claim: Claim): Promise<boolean> {
  const { db, tenant } = scope
  const row = await findAuthorization(db, claim.nonce)
  if (!row && claim.receipt && scope.services.authority.cloudGeneration > 1)
    return applyForgotten(scope, witness, claim, claim.receipt)
  if (row?.tenant !== tenant) return false
  if (!(await scope.facts.isOwn(row.agent_id, witness)) || claim.ordinals.some((ordinal) => ordinal >= row.count)) {
    await raiseForeign(scope, witness, foreignClaim(claim, `a claim of a token that is not this agent's`))
    return true
  }
  const units = await unitsOfAuthorization(db, claim.nonce)
  const rightClass = row.right_class as RightClass
  const added: number[] = []
  for (const ordinal of claim.ordinals) {
    const unit = units.find((u) => u.ordinal === ordinal)
    const key = unit && { lineId: unit.line_id, unitNo: unit.unit_no }
    if (await add(scope, witness, claim, ordinal, rightClass, key)) added.push(ordinal)
  }
  const raised = await raiseByState(scope, row)
  if (added.length === 0) return true
  const next = await updateAuthorization(db, row, {})

  const used: UnitKey[] = []
  for (const unit of units.filter((u) => added.includes(u.ordinal))) {
    const key = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: row.purchase_id ?? '' }
    // An operator went past this token: the one that was given instead must not release the goods once more.
    await endLease(scope, key, row.nonce)
    await settleUnit(scope, witness.storeId, key, claim)
    used.push(key)
  }
  const purchase = row.purchase_id === null ? undefined : await findPurchase(db, row.tenant, row.purchase_id)
  const isCancelled = purchase?.status === 'CANCELLED'
  if (row.item_id !== null)
    await bindItem(scope, row.item_id, used[0], isCancelled ? 'cancelled' : await returnedOf(scope, used[0]))
  await holdReleased(scope, purchase, used)
  if (purchase && isCancelled && !raised.has('redeemed_after_revocation'))
    await raiseReleased(scope, purchase, claim.deviceId)
  scope.due.subjects.push(...used)
  await tellOthers(scope, witness, purchase, used, claim.receipt !== undefined)
  // One that was only taken back may still be honoured by an agent that has not heard of it.
  if (next.voided_ms !== null) await freeLeases(scope, next)
  return true
}

/** A claim of a token that was lost with the cloud which gave it: what it used up stands in the receipt. */
async function applyForgotten(
  scope: EvidenceScope,
  witness: Witness,
  claim: Claim,
  receipt: NonNullable<Claim['receipt']>,
): Promise<boolean> {
  const purchase = await scope.facts.purchaseOfReceipt(receipt.cti)
  if (purchase?.tenant !== scope.tenant) return false
  if (purchase.store_id !== witness.storeId) {
    await raiseForeign(scope, witness, foreignClaim(claim, 'a claim of a receipt of another store'))
    return true
  }
  return useUnits(scope, witness, claim, purchase, receipt.ordinals)
}

async function applyReceiptClaim(scope: EvidenceScope, witness: Witness, claim: Claim): Promise<boolean> {
  const purchase = await scope.facts.purchaseOfReceipt(claim.nonce)
  if (purchase?.tenant !== scope.tenant) return false
  if (purchase.store_id !== witness.storeId) {
    await raiseForeign(scope, witness, foreignClaim(claim, 'a claim of a receipt of another store'))
    return true
  }
  if (purchase.status === 'CANCELLED') {
    await raise(
      scope,
      witness,
      'redeemed_after_revocation',
      claim.redemptionId,
      'goods of a cancelled purchase were released',
      claim,
      purchase.purchase_id,
    )
  }
  if (purchase.receipt_exp !== null && witness.atMs > purchase.receipt_exp * 1_000) {
    await raise(
      scope,
      witness,
      'late_redeem',
      claim.redemptionId,
      'a receipt was honoured after its end',
      claim,
      purchase.purchase_id,
    )
  }
  return useUnits(scope, witness, claim, purchase, claim.ordinals)
}

/** Uses up the units of a receipt with the numbers `entries`, one for each step of the claim. */
async function useUnits(
  scope: EvidenceScope,
  witness: Witness,
  claim: Claim,
  purchase: ReceiptPurchase,
  entries: readonly number[],
): Promise<boolean> {
  const units = await scope.facts.unitsOf(purchase.purchase_id)
  const used: UnitKey[] = []
  for (const [i, ordinal] of claim.ordinals.entries()) {
    const unit = units.find((u) => u.receipt_index === entries[i])
    if (!unit) continue
    const key = {
      lineId: unit.line_id,
      unitNo: unit.unit_no,
      rightClass: claim.rightClass,
      purchaseId: purchase.purchase_id,
    }
    if (!(await add(scope, witness, claim, ordinal, claim.rightClass, key))) continue
    await endLease(scope, key, claim.nonce)
    await settleUnit(scope, witness.storeId, key, claim)
    used.push(key)
  }
  scope.due.subjects.push(...used)
  await holdReleased(scope, purchase, used)
  await tellOthers(scope, witness, purchase, used, true)
  return true
}

/** A token whose unit was used by other means must not release it once more: it may lie in an answer that got lost. `exceptOf`: an agent that may keep its own. */
export async function endLease(scope: EvidenceScope, key: UnitKey, by: string, exceptOf?: string): Promise<void> {
  const right = await scope.uses.right(key)
  if (right?.state !== 'leased' || right.nonce === null || right.nonce === by) return
  const lease = await findAuthorization(scope.db, right.nonce)
  if (!lease || (exceptOf !== undefined && lease.agent_id === exceptOf)) return
  await handOver(scope)
  await giveUpLease(scope, lease)
}

function add(
  scope: EvidenceScope,
  witness: Witness,
  claim: Claim,
  ordinal: number,
  rightClass: RightClass,
  unit: { lineId: string; unitNo: number } | undefined,
): Promise<boolean> {
  return scope.uses.add({
    nonce: claim.nonce,
    step: ordinal + 1,
    redemption_id: claim.redemptionId,
    tenant: scope.tenant,
    source: claim.source,
    agent_id: witness.agentId,
    device_id: claim.deviceId,
    at_ms: witness.atMs,
    event_id: witness.eventId,
    line_id: unit?.lineId ?? null,
    unit_no: unit?.unitNo ?? null,
    right_class: rightClass,
  })
}

async function returnedOf({ uses }: EvidenceScope, key: UnitKey | undefined): Promise<'returned' | undefined> {
  const right = key && (await uses.right(key))
  return right && right.returned_by !== null ? 'returned' : undefined
}

/** Raises what the whole evidence of an authorization comes to, and answers it; what was raised before is not raised again. */
async function raiseByState(scope: EvidenceScope, row: ProtectionAuthorizationRow): Promise<ReadonlySet<string>> {
  await scope.uses.flush()
  const redemptions = await redemptionsOf(scope.db, row.nonce)
  const { exceptions } = viewAuthorization(row, redemptions, scope.nowMs)
  for (const kind of exceptions) {
    await raiseException(scope, {
      storeId: row.store_id,
      kind,
      subject: row.nonce,
      detail: EXCEPTION_TEXT[kind],
      deviceId: row.device_id,
      purchaseId: row.purchase_id ?? undefined,
      nonce: row.nonce,
    })
  }
  return exceptions
}

const EXCEPTION_TEXT = {
  double_redeem: 'one step of an authorization was redeemed twice',
  late_redeem: 'an authorization was redeemed after its end',
  redeemed_after_revocation: 'an authorization was redeemed after it was taken back',
}

function foreignClaim({ kind, nonce, deviceId }: Claim, detail: string): Foreign {
  return { kind, about: nonce, detail, deviceId }
}

async function raise(
  scope: EvidenceScope,
  witness: Witness,
  kind: string,
  subject: string,
  detail: string,
  claim: Claim,
  purchaseId?: string,
): Promise<void> {
  await raiseException(scope, {
    storeId: witness.storeId,
    kind,
    subject,
    detail,
    deviceId: claim.deviceId,
    purchaseId: purchaseId === '' ? undefined : purchaseId,
  })
}

/**
 * What became of a claim: a confirmed one counts, a failed one frees its units, an unknown one is for staff. `nonce`
 * where it is known: devices without agent choose their redemption ids themselves.
 */
export async function applyOutcome(
  scope: EvidenceScope,
  witness: Witness,
  redemptionId: string,
  outcome: Outcome,
  nonce?: string,
): Promise<boolean> {
  const rows = (await scope.uses.ofId(redemptionId)).filter((row) => nonce === undefined || row.nonce === nonce)
  if (rows.length === 0) return false
  const own: RedemptionRow[] = []
  for (const row of rows) if (await scope.facts.isOwn(row.agent_id, witness)) own.push(row)
  const [first] = own
  if (!first) {
    const detail = `an outcome of a claim that is not this agent's`
    await raiseForeign(scope, witness, { kind: 'outcome', about: redemptionId, detail })
    return true
  }
  const changed: RedemptionRow[] = []
  for (const row of own) {
    const known = row.outcome as Outcome | null
    const joined = joinOutcome(known, outcome)
    if (joined.isConflict) await raiseConflict(scope, witness, row, outcome)
    if (row.resolved_by !== null) await updateRedemption(scope.db, row, { reported: outcome })
    else if (joined.outcome !== known) {
      await scope.uses.setOutcome(row, joined.outcome)
      changed.push(row)
    }
  }
  const purchases = await settleRedemptions(scope, witness, changed)
  if (outcome !== 'unknown' && changed.some((row) => row.outcome === 'unknown'))
    await acknowledgeAbout(scope.db, {
      storeId: witness.storeId,
      kind: 'outcome_unknown',
      subject: redemptionId,
      by: WITHDRAWN,
      atMs: scope.nowMs,
    })
  if (outcome === 'unknown' && changed.length > 0) {
    await raiseException(scope, {
      storeId: witness.storeId,
      kind: 'outcome_unknown',
      subject: redemptionId,
      detail: 'an actuator was commanded and nobody knows whether it moved',
      deviceId: first.device_id,
      purchaseId: purchases[0],
      nonce: first.nonce,
    })
  }
  return true
}

async function raiseConflict(scope: EvidenceScope, witness: Witness, row: RedemptionRow, told: Outcome): Promise<void> {
  const by = row.resolved_by === null ? 'the device said' : 'staff saw'
  await raiseException(scope, {
    storeId: witness.storeId,
    kind: 'outcome_conflict',
    subject: row.redemption_id,
    detail: `${by} ${row.outcome}, and then it was reported as ${told}`,
    deviceId: row.device_id,
    nonce: row.nonce,
  })
}

/** Brings rights, and at the end the purchases, to what these redemptions have become; answers the purchases. */
export async function settleRedemptions(
  scope: EvidenceScope,
  witness: Witness,
  changed: readonly RedemptionRow[],
): Promise<string[]> {
  const { db, due, facts, uses } = scope
  const keys: UnitKey[] = []
  for (const row of changed) {
    const key = await unitOf(uses, row)
    if (!key) continue
    await settleUnit(scope, witness.storeId, key, undefined)
    keys.push(key)
  }
  due.subjects.push(...keys)
  for (const nonce of new Set(changed.map((row) => row.nonce))) {
    const authorization = (await facts.isAuthorization(nonce)) ? await findAuthorization(db, nonce) : undefined
    if (authorization) await updateAuthorization(db, authorization, {})
  }
  const purchases = [...new Set(keys.map((key) => key.purchaseId).filter((id) => id !== ''))]
  for (const purchaseId of purchases) due.purchaseIds.add(purchaseId)
  return purchases
}

/** An agent will never honour this token: the lease ends. */
export async function applyVoid(scope: EvidenceScope, witness: Witness, nonce: string): Promise<boolean> {
  const row = await findAuthorization(scope.db, nonce)
  if (row?.tenant !== scope.tenant) return false
  if (!(await scope.facts.isOwn(row.agent_id, witness))) {
    const detail = `a token was voided that is not this agent's`
    await raiseForeign(scope, witness, { kind: 'void', about: nonce, detail })
    return true
  }
  // The earliest word counts, in whatever order they come.
  const voidedMs = Math.min(row.voided_ms ?? witness.atMs, witness.atMs)
  if (voidedMs === row.voided_ms) return true
  const voided = await updateAuthorization(scope.db, row, {
    voided_ms: voidedMs,
    revoked_ms: Math.min(row.revoked_ms ?? voidedMs, voidedMs),
  })
  await raiseByState(scope, voided)
  await freeLeases(scope, voided)
  return true
}

async function freeLeases(scope: EvidenceScope, row: ProtectionAuthorizationRow): Promise<void> {
  await handOver(scope)
  await freeUnused(scope, row)
}

/** Rights are written by others now. */
async function handOver({ uses }: EvidenceScope): Promise<void> {
  await uses.flush()
  uses.forget()
}
