import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import type { Evidence } from '../../../policy/journal.ts'
import type { ItemStatus, RightClass } from '../../../policy/vocabulary.ts'
import { findPurchase, findUnit } from '../../shop/purchases/queries.ts'
import { findAuthorization, unitsOfAuthorization } from '../leases/authorizations.ts'
import { findItem, readItem, updateItem } from '../items/item-queries.ts'
import { standaloneUnitOf } from '../items/standalone-unit.ts'
import { hasComeBackSince, itemAsOf } from '../rights/past-state.ts'
import {
  endLease,
  freeLeases,
  type EvidenceScope,
  type EvidenceSource,
  raiseForeignEvidence,
  type ForeignReport,
  raiseAuthorizationExceptions,
} from './evidence-scope.ts'
import { STOPPED_STATUSES, type ReceiptPurchase } from './evidence-facts.ts'
import { raiseException } from '../records/exceptions.ts'
import { holdItemsOfCancelled, raiseCancelledAfterRelease, settleUnit } from './apply-outcome.ts'
import type { UnitKey } from '../rights/rights.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { notifyGates } from '../items/item-sequence.ts'
import type { EventScope } from '../records/record-event.ts'

/** Tolerance for the clock of another machine, s. */
const GUARD_SECONDS = 60

/**
 * Puts used receipt rights on the deny list of the store. `isKnown` is true if the reporter knows which rights it used.
 * If so, and if the reporter is the only agent of the store, adds no entry.
 */
async function publishUsedRights(
  { facts, due }: EvidenceScope,
  source: { agentId: string | null; storeId: string },
  purchase: ReceiptPurchase | undefined,
  used: readonly UnitKey[],
  isKnown: boolean,
): Promise<void> {
  const [first] = used
  if (!first || !purchase?.cti || !purchase.receipt_exp) return
  if ((await facts.agentsOf(source.storeId)).every((agentId) => isKnown && agentId === source.agentId)) return
  const ordinals: number[] = []
  for (const key of used) {
    const ordinal = (await facts.unitOf(purchase.purchase_id, key))?.receipt_index ?? null
    if (ordinal !== null) ordinals.push(ordinal)
  }
  if (ordinals.length === 0) return
  const denials = due.denials.get(purchase.store_id) ?? []
  due.denials.set(purchase.store_id, denials)
  denials.push({
    kind: 'right',
    cti: purchase.cti,
    rightClass: first.rightClass,
    ordinals,
    until: purchase.receipt_exp + GUARD_SECONDS,
  })
}

type BindScope = EventScope & { services: Services; afterCommit: Call['afterCommit'] }

/**
 * Binds a sellable item to an unbound unit of its product, at its first release or exit (ADR sales). `reversal`: the
 * unit was cancelled or returned before the claim arrived. The released item is then unpaid and gets the status
 * `exception_hold`.
 */
async function bindItem(
  scope: BindScope,
  itemId: string,
  key: UnitKey | undefined,
  reversal?: 'cancelled' | 'returned',
): Promise<void> {
  if (!key || key.purchaseId === '') return
  const { db, nowMs } = scope
  const unit = await findUnit(db, key.lineId, key.unitNo)
  if (!unit || (unit.bound === 1 && unit.item_id === itemId)) return
  const item = await readItem(db, itemId)
  if (unit.bound === 1 || item.item_status !== 'sellable') {
    await raiseException(scope, {
      storeId: item.store_id,
      kind: 'item_already_paid',
      subject: `${key.purchaseId}/${itemId}`,
      purchaseId: key.purchaseId,
      detail:
        unit.bound === 1
          ? 'an item was released for a unit of this purchase that is bound to another item'
          : `an item was ${item.item_status} when it was released for this purchase`,
    })
    return
  }
  await updateItem(
    db,
    item,
    {
      item_status: reversal ? 'exception_hold' : 'paid',
      purchase_id: key.purchaseId,
      line_id: key.lineId,
      unit_no: key.unitNo,
    },
    nowMs,
  )
  notifyGates(scope, item.store_id)
  await db
    .updateTable('purchase_unit')
    .set({ bound: 1, item_id: itemId, ...(reversal === 'cancelled' && { taken_back: 'exception_hold' }) })
    .where('line_id', '=', key.lineId)
    .where('unit_no', '=', key.unitNo)
    .execute()
}

type Claim = Extract<Evidence, { kind: 'claim' }>

/**
 * Applies a claim. Returns false if the token, receipt or item of the claim is unknown. The cloud then stores the row
 * and retries it later.
 */
export async function applyClaim(scope: EvidenceScope, source: EvidenceSource, claim: Claim): Promise<boolean> {
  if (claim.source === 'item') return applyItemClaim(scope, source, claim)
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
  const rightClass = row.right_class as RightClass
  const covered = new Map((await unitsOfAuthorization(db, claim.nonce)).map((unit) => [unit.ordinal, unit]))
  const steps = claim.ordinals.map((ordinal) => {
    const unit = covered.get(ordinal)
    const key = unit && { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: row.purchase_id ?? '' }
    return { ordinal, key }
  })
  const added = await addSteps(scope, source, claim, steps, rightClass)
  if (!added) return false
  const raised = await raiseAuthorizationExceptions(scope, row)
  if (added.length === 0) return true

  // If an operator overrode the lease, another token may lease a unit now. That token must not release the goods again.
  const used = await useUnits(scope, source, claim, added)
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
  const used = exceptionOf(source, claim, claim.redemptionId)
  const { purchase_id: purchaseId, receipt_exp: expiryS } = purchase
  if (purchase.status === 'CANCELLED') {
    const detail = 'goods of a cancelled purchase were released'
    await raiseException(scope, { ...used, purchaseId, kind: 'redeemed_after_revocation', detail })
  }
  if (expiryS !== null && source.atMs > expiryS * 1_000) {
    const detail = 'a receipt was used after it expired'
    await raiseException(scope, { ...used, purchaseId, kind: 'late_redeem', detail })
  }
  return useReceiptUnits(scope, source, claim, purchase, claim.ordinals)
}

/**
 * Applies the release of a tag that an operator approved offline. The agent knows neither purchase nor unit. Uses the
 * right of the unit that the item was bound to at that time, or its standalone right.
 */
async function applyItemClaim(scope: EvidenceScope, source: EvidenceSource, claim: Claim): Promise<boolean> {
  const { db, tenant } = scope
  const named = normaliseIdentifiers(claim.item ?? {})
  const known = named.ok ? await findItem(db, tenant, named.identifiers) : undefined
  if (!known) return false
  const item = await itemAsOf(db, known, source.atMs)
  if (item.store_id !== source.storeId) {
    await raiseForeignEvidence(scope, source, foreignClaim(claim, 'a claim of an item of another store'))
    return true
  }
  const { item_id: itemId, purchase_id: purchaseId, line_id: lineId, unit_no: unitNo } = item
  const isBound = purchaseId !== null && lineId !== null && unitNo !== null
  // The standalone unit of a former sale cannot be found any more.
  const isOver = !isBound && (!SOLD.has(item.item_status) || (await hasComeBackSince(db, itemId, source.atMs)))
  const unit = isBound ? { lineId, unitNo, purchaseId } : isOver ? undefined : await standaloneUnitOf(db, itemId)
  const key = unit && { ...unit, rightClass: claim.rightClass }
  const steps = claim.ordinals.map((ordinal) => ({ ordinal, key }))
  const added = await addSteps(scope, source, claim, steps, claim.rightClass)
  if (!added) return false
  if (added.length === 0) return true
  if (!key) {
    const detail = 'an item was released after it had come back'
    await raiseException(scope, { ...exceptionOf(source, claim, itemId), kind: 'released_after_refund', detail })
    return true
  }
  const used = await useUnits(scope, source, claim, added)
  const purchase = isBound ? await findPurchase(db, tenant, key.purchaseId) : undefined
  await holdItemsOfCancelled(scope, purchase, used)
  if (purchase?.status === 'CANCELLED') await raiseCancelledAfterRelease(scope, purchase, claim.deviceId)
  await publishUsedRights(scope, source, purchase, used, false)
  return true
}

/** Statuses of an item that was sold and has not come back. */
const SOLD: ReadonlySet<string> = new Set<ItemStatus>(['paid', 'picked_up', ...STOPPED_STATUSES])

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
  const units = new Map(
    (await scope.facts.unitsOf(purchase.purchase_id)).map((unit) => [unit.receipt_index, unit] as const),
  )
  const { rightClass } = claim
  const steps = claim.ordinals.flatMap((ordinal, i) => {
    const unit = units.get(entries[i] ?? null)
    if (!unit || unit.receipt_index === null) return []
    const key = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: purchase.purchase_id }
    return [{ ordinal, key }]
  })
  const added = await addSteps(scope, source, claim, steps, rightClass)
  if (!added) return false
  const used = await useUnits(scope, source, claim, added)
  await holdItemsOfCancelled(scope, purchase, used)
  await publishUsedRights(scope, source, purchase, used, true)
  return true
}

/** One right that a claim used, and its unit, if the cloud knows it. */
interface Step {
  ordinal: number
  key: UnitKey | undefined
}

/**
 * Maximum number of redemptions of one right. Each redemption of a right reads all earlier ones. A right is redeemed
 * once, and again after failed attempts.
 */
const REDEMPTIONS_LIMIT = 50

/**
 * Adds the redemptions of a claim. Returns the steps that are new; undefined if a right has too many redemptions. Then
 * nothing is added, and the row stays unapplied.
 */
async function addSteps(
  scope: EvidenceScope,
  source: EvidenceSource,
  claim: Claim,
  steps: readonly Step[],
  rightClass: RightClass,
): Promise<Step[] | undefined> {
  const { redemptions } = scope
  if (steps.length > 1)
    await redemptions.prepare(
      [claim.redemptionId],
      steps.flatMap(({ key }) => key?.lineId ?? []),
    )
  for (const { key } of steps) if (key && (await redemptions.ofUnit(key)).length >= REDEMPTIONS_LIMIT) return undefined
  const added: Step[] = []
  for (const step of steps) {
    const isNew = await redemptions.add({
      nonce: claim.nonce,
      step: step.ordinal + 1,
      redemption_id: claim.redemptionId,
      tenant: scope.tenant,
      source: claim.source,
      agent_id: source.agentId,
      device_id: claim.deviceId,
      at_ms: source.atMs,
      event_id: source.eventId,
      line_id: step.key?.lineId ?? null,
      unit_no: step.key?.unitNo ?? null,
      right_class: rightClass,
    })
    if (isNew) added.push(step)
  }
  return added
}

/** Ends the leases of the claimed units, and updates their rights. Returns the units. */
async function useUnits(
  scope: EvidenceScope,
  source: EvidenceSource,
  claim: Claim,
  added: readonly Step[],
): Promise<UnitKey[]> {
  const used = added.flatMap(({ key }) => key ?? [])
  for (const key of used) {
    await endLease(scope, key, claim.nonce)
    await settleUnit(scope, source.storeId, key, { deviceId: claim.deviceId, atMs: source.atMs })
  }
  return used
}

async function returnedOf({ redemptions }: EvidenceScope, key: UnitKey | undefined): Promise<'returned' | undefined> {
  const right = key && (await redemptions.right(key))
  return right && right.returned_by !== null ? 'returned' : undefined
}

function foreignClaim({ kind, nonce, deviceId }: Claim, detail: string): ForeignReport {
  return { kind, about: nonce, detail, deviceId }
}

function exceptionOf({ storeId }: EvidenceSource, { deviceId }: Claim, subject: string) {
  return { storeId, subject, deviceId }
}
