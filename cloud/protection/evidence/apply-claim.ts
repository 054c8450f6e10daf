import type { Evidence } from '../../../policy/journal.ts'
import type { RightClass } from '../../../policy/vocabulary.ts'
import { findPurchase } from '../../purchases/queries.ts'
import { findAuthorization, unitsOfAuthorization } from '../leases/authorizations.ts'
import { bindItem } from './bind-item.ts'
import { endLease, freeLeases } from './end-lease.ts'
import type { ReceiptPurchase } from './evidence-facts.ts'
import type { EvidenceScope, EvidenceSource } from './evidence-scope.ts'
import { raiseException } from '../records/exceptions.ts'
import { raiseForeignEvidence, type ForeignReport } from './foreign-evidence.ts'
import { raiseAuthorizationExceptions } from './raise-authorization-exceptions.ts'
import { holdItemsOfCancelled, raiseCancelledAfterRelease } from './hold-late-releases.ts'
import type { UnitKey } from '../rights/rights.ts'
import { settleUnit } from './settle-unit.ts'
import { publishUsedRights } from './publish-used-rights.ts'

export type Claim = Extract<Evidence, { kind: 'claim' }>

/**
 * Applies a claim. Returns false if the token or receipt of the claim is unknown. The cloud then stores the row and
 * retries it later.
 */
export async function applyClaim(scope: EvidenceScope, source: EvidenceSource, claim: Claim): Promise<boolean> {
  return claim.source === 'token' ? applyTokenClaim(scope, source, claim) : applyReceiptClaim(scope, source, claim)
}

async function applyTokenClaim(scope: EvidenceScope, source: EvidenceSource, claim: Claim): Promise<boolean> {
  const { db, tenant } = scope
  const row = await findAuthorization(db, claim.nonce)
  if (!row && claim.receipt && scope.services.authority.cloudGeneration > 1)
    return applyClaimOfLostToken(scope, source, claim, claim.receipt)
  if (row?.tenant !== tenant) return false
  if (!(await scope.facts.isOwn(row.agent_id, source)) || claim.ordinals.some((ordinal) => ordinal >= row.count)) {
    await raiseForeignEvidence(scope, source, foreignClaim(claim, `a claim of a token that is not this agent's`))
    return true
  }
  const units = await unitsOfAuthorization(db, claim.nonce)
  const rightClass = row.right_class as RightClass
  const added: number[] = []
  for (const ordinal of claim.ordinals) {
    const unit = units.find((u) => u.ordinal === ordinal)
    const key = unit && { lineId: unit.line_id, unitNo: unit.unit_no }
    if (await addStep(scope, source, claim, ordinal, rightClass, key)) added.push(ordinal)
  }
  const raised = await raiseAuthorizationExceptions(scope, row)
  if (added.length === 0) return true

  const used: UnitKey[] = []
  for (const unit of units.filter((u) => added.includes(u.ordinal))) {
    const key = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: row.purchase_id ?? '' }
    // If an operator overrode the lease, another token may lease this unit now. That token must not release the goods
    // again.
    await endLease(scope, key, row.nonce)
    await settleUnit(scope, source.storeId, key, claim)
    used.push(key)
  }
  const purchase = row.purchase_id === null ? undefined : await findPurchase(db, row.tenant, row.purchase_id)
  const isCancelled = purchase?.status === 'CANCELLED'
  if (row.item_id !== null)
    await bindItem(scope, row.item_id, used[0], isCancelled ? 'cancelled' : await returnedOf(scope, used[0]))
  await holdItemsOfCancelled(scope, purchase, used)
  if (purchase && isCancelled && !raised.has('redeemed_after_revocation'))
    await raiseCancelledAfterRelease(scope, purchase, claim.deviceId)
  await publishUsedRights(scope, source, purchase, used, claim.receipt !== undefined)
  // An agent may use a revoked token until it learns of the revocation. So the unused rights of a token become free
  // only if the token is voided.
  if (row.voided_ms !== null) await freeLeases(scope, row)
  return true
}

/** Applies a claim with a token that the restored cloud lost. The receipt in the claim names the used rights. */
async function applyClaimOfLostToken(
  scope: EvidenceScope,
  source: EvidenceSource,
  claim: Claim,
  receipt: NonNullable<Claim['receipt']>,
): Promise<boolean> {
  const purchase = await scope.facts.purchaseOfReceipt(receipt.cti)
  if (purchase?.tenant !== scope.tenant) return false
  if (purchase.store_id !== source.storeId) {
    await raiseForeignEvidence(scope, source, foreignClaim(claim, 'a claim of a receipt of another store'))
    return true
  }
  return useReceiptUnits(scope, source, claim, purchase, receipt.ordinals)
}

async function applyReceiptClaim(scope: EvidenceScope, source: EvidenceSource, claim: Claim): Promise<boolean> {
  const purchase = await scope.facts.purchaseOfReceipt(claim.nonce)
  if (purchase?.tenant !== scope.tenant) return false
  if (purchase.store_id !== source.storeId) {
    await raiseForeignEvidence(scope, source, foreignClaim(claim, 'a claim of a receipt of another store'))
    return true
  }
  if (purchase.status === 'CANCELLED') {
    await raise(
      scope,
      source,
      'redeemed_after_revocation',
      claim.redemptionId,
      'goods of a cancelled purchase were released',
      claim,
      purchase.purchase_id,
    )
  }
  if (purchase.receipt_exp !== null && source.atMs > purchase.receipt_exp * 1_000) {
    await raise(
      scope,
      source,
      'late_redeem',
      claim.redemptionId,
      'a receipt was used after it expired',
      claim,
      purchase.purchase_id,
    )
  }
  return useReceiptUnits(scope, source, claim, purchase, claim.ordinals)
}

/**
 * Marks rights of receipt units used. `entries` contains the `receipt_index` of the unit for each step of the claim.
 */
async function useReceiptUnits(
  scope: EvidenceScope,
  source: EvidenceSource,
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
    if (!(await addStep(scope, source, claim, ordinal, claim.rightClass, key))) continue
    await endLease(scope, key, claim.nonce)
    await settleUnit(scope, source.storeId, key, claim)
    used.push(key)
  }
  await holdItemsOfCancelled(scope, purchase, used)
  await publishUsedRights(scope, source, purchase, used, true)
  return true
}

function addStep(
  scope: EvidenceScope,
  source: EvidenceSource,
  claim: Claim,
  ordinal: number,
  rightClass: RightClass,
  unit: { lineId: string; unitNo: number } | undefined,
): Promise<boolean> {
  return scope.redemptions.add({
    nonce: claim.nonce,
    step: ordinal + 1,
    redemption_id: claim.redemptionId,
    tenant: scope.tenant,
    source: claim.source,
    agent_id: source.agentId,
    device_id: claim.deviceId,
    at_ms: source.atMs,
    event_id: source.eventId,
    line_id: unit?.lineId ?? null,
    unit_no: unit?.unitNo ?? null,
    right_class: rightClass,
  })
}

async function returnedOf({ redemptions }: EvidenceScope, key: UnitKey | undefined): Promise<'returned' | undefined> {
  const right = key && (await redemptions.right(key))
  return right && right.returned_by !== null ? 'returned' : undefined
}

function foreignClaim({ kind, nonce, deviceId }: Claim, detail: string): ForeignReport {
  return { kind, about: nonce, detail, deviceId }
}

async function raise(
  scope: EvidenceScope,
  source: EvidenceSource,
  kind: string,
  subject: string,
  detail: string,
  claim: Claim,
  purchaseId?: string,
): Promise<void> {
  await raiseException(scope, {
    storeId: source.storeId,
    kind,
    subject,
    detail,
    deviceId: claim.deviceId,
    purchaseId: purchaseId === '' ? undefined : purchaseId,
  })
}
