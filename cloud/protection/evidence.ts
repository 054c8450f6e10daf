import type { Evidence } from '../../policy/journal.ts'
import type { Outcome, RightClass } from '../../policy/vocabulary.ts'
import type { Call, Services } from '../operations/operation.ts'
import type { ProtectionAuthorizationRow, RedemptionRow } from '../persistence/tables/protection.ts'
import { findPurchaseOfReceipt } from '../scan-and-go/queries.ts'
import { findAuthorization, redemptionsOf, unitsOfAuthorization, updateAuthorization } from './authorizations.ts'
import { bindItem } from './bind-item.ts'
import { denyRights } from './deny-list.ts'
import { type EventScope } from './events.ts'
import { raiseException } from './exceptions.ts'
import { freeUnused } from './leases.ts'
import { hasAgents } from './receipt-rights.ts'
import { findRight, freeRight, noteOutcome, useRight, type UnitKey } from './rights.ts'
import { settlePurchase } from './settle-purchase.ts'
import { touchSubjects } from './touch.ts'
import { viewAuthorization } from './view.ts'

/**
 * Facts about what was used up, from whoever saw it: an agent's journal or a device's call. Facts are
 * never refused, only added; what should not have been becomes an exception (contracts §4, §5).
 */
export interface EvidenceScope extends EventScope {
  services: Services
  emit: Call['emit']
  afterCommit: Call['afterCommit']
}

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
  if (row?.tenant !== tenant) return false
  if (row.agent_id !== witness.agentId) {
    await raise(scope, witness, 'foreign_evidence', claim.nonce, `a claim of a token that is not this agent's`, claim)
    return true
  }
  const before = await redemptionsOf(db, claim.nonce)
  const steps = claim.ordinals.map((ordinal) => ordinal + 1)
  for (const step of steps) await addRedemption(scope, witness, claim, claim.nonce, step)
  const after = await redemptionsOf(db, claim.nonce)
  const next = await updateAuthorization(db, row, {})
  await raiseNew(scope, row, before, after)

  const units = await unitsOfAuthorization(db, claim.nonce)
  const used: UnitKey[] = []
  for (const unit of units.filter((u) => steps.includes(u.ordinal + 1))) {
    const key = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass: row.right_class as RightClass, purchaseId: row.purchase_id ?? '' }
    await useUnit(scope, witness, key, claim)
    used.push(key)
  }
  if (row.item_id !== null) await bindItem(scope, row.item_id, used[0])
  await touchSubjects(db, used)
  await tellOthers(scope, witness, row.purchase_id, used)
  if (next.revoked_ms !== null) await freeUnused({ db }, next)
  return true
}

/** A right is used up for good; when something else had used it already, somebody got two for one. */
async function useUnit(scope: EvidenceScope, witness: Witness, key: UnitKey, claim: Claim): Promise<void> {
  const right = await findRight(scope.db, key)
  const other = right?.state === 'used' && right.outcome !== 'failed' && right.redemption_id !== claim.redemptionId
  if (other && right.outcome !== 'unknown') {
    await raise(scope, witness, 'double_redeem', `${key.lineId}/${key.unitNo}/${key.rightClass}`, 'one unit was released twice', claim, key.purchaseId)
    return
  }
  await useRight(scope.db, key, { nonce: claim.nonce, deviceId: claim.deviceId, redemptionId: claim.redemptionId }, right?.failures ?? 0)
}

async function applyReceiptClaim(scope: EvidenceScope, witness: Witness, claim: Claim): Promise<boolean> {
  const { db, tenant } = scope
  const purchase = await findPurchaseOfReceipt(db, claim.nonce)
  if (purchase?.tenant !== tenant) return false
  if (purchase.store_id !== witness.storeId) {
    await raise(scope, witness, 'foreign_evidence', claim.nonce, 'a claim of a receipt of another store', claim)
    return true
  }
  if (purchase.status === 'CANCELLED') {
    await raise(scope, witness, 'redeemed_after_revocation', claim.redemptionId, 'goods of a cancelled purchase were released', claim, purchase.purchase_id)
  }
  if (purchase.receipt_exp !== null && witness.atMs > purchase.receipt_exp * 1_000) {
    await raise(scope, witness, 'late_redeem', claim.redemptionId, 'a receipt was honoured after its end', claim, purchase.purchase_id)
  }
  const units = await db.selectFrom('purchase_unit').selectAll().where('purchase_id', '=', purchase.purchase_id).execute()
  const used: UnitKey[] = []
  for (const ordinal of claim.ordinals) {
    const unit = units.find((u) => u.receipt_index === ordinal)
    if (!unit) continue
    await addRedemption(scope, witness, claim, claim.nonce, ordinal + 1)
    const key = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass: claim.rightClass, purchaseId: purchase.purchase_id }
    await useUnit(scope, witness, key, claim)
    used.push(key)
  }
  await touchSubjects(db, used)
  await tellOthers(scope, witness, purchase.purchase_id, used)
  return true
}

async function addRedemption(scope: EvidenceScope, witness: Witness, claim: Claim, nonce: string, step: number): Promise<void> {
  await scope.db
    .insertInto('redemption')
    .values({
      nonce,
      step,
      redemption_id: claim.redemptionId,
      tenant: scope.tenant,
      source: claim.source,
      agent_id: witness.agentId,
      device_id: claim.deviceId,
      at_ms: witness.atMs,
      event_id: witness.eventId,
    })
    .onConflict((c) => c.columns(['nonce', 'step', 'redemption_id']).doNothing())
    .execute()
}

/** Raises the exceptions that this evidence has added to what was known. */
async function raiseNew(
  scope: EvidenceScope,
  row: ProtectionAuthorizationRow,
  before: readonly RedemptionRow[],
  after: readonly RedemptionRow[],
): Promise<void> {
  const known = viewAuthorization(row, before, scope.nowMs).exceptions
  for (const kind of viewAuthorization(row, after, scope.nowMs).exceptions) {
    if (known.has(kind)) continue
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
}

const EXCEPTION_TEXT = {
  double_redeem: 'one step of an authorization was redeemed twice',
  late_redeem: 'an authorization was redeemed after its end',
  redeemed_after_revocation: 'an authorization was redeemed after it was taken back',
}

async function raise(scope: EvidenceScope, witness: Witness, kind: string, subject: string, detail: string, claim: Claim, purchaseId?: string): Promise<void> {
  await raiseException(scope, { storeId: witness.storeId, kind, subject, detail, deviceId: claim.deviceId, purchaseId: purchaseId === '' ? undefined : purchaseId })
}

/** Agents of the store that did not see it themselves honour no receipt for these rights any more. */
async function tellOthers(scope: EvidenceScope, witness: Witness, purchaseId: string | null, used: readonly UnitKey[]): Promise<void> {
  const [first] = used
  if (!first || !purchaseId) return
  const agents = await scope.db.selectFrom('agent').select('agent_id').where('store_id', '=', witness.storeId).execute()
  if (agents.every((agent) => agent.agent_id === witness.agentId) || !(await hasAgents(scope.db, witness.storeId))) return
  const purchase = await scope.db.selectFrom('purchase').selectAll().where('purchase_id', '=', purchaseId).executeTakeFirst()
  if (purchase?.receipt_exp) await denyRights(scope, purchase, first.rightClass, used, purchase.receipt_exp + 60)
}

/** What became of a claim: a confirmed one counts, a failed one frees its units, an unknown one is for staff. */
export async function applyOutcome(scope: EvidenceScope, witness: Witness, redemptionId: string, outcome: Outcome): Promise<boolean> {
  const { db, tenant } = scope
  const rows = await db.selectFrom('redemption').selectAll().where('redemption_id', '=', redemptionId).where('tenant', '=', tenant).execute()
  if (rows.length === 0) return false
  // The first word counts; only nobody knowing can be replaced by somebody who does.
  const open = rows.filter((row) => row.agent_id === witness.agentId && (row.outcome === null || (row.outcome === 'unknown' && outcome !== 'unknown')))
  const keys: UnitKey[] = []
  for (const row of open) {
    await db
      .updateTable('redemption')
      .set({ outcome })
      .where('nonce', '=', row.nonce)
      .where('step', '=', row.step)
      .where('redemption_id', '=', redemptionId)
      .execute()
  }
  const rights = await db.selectFrom('unit_right').selectAll().where('redemption_id', '=', redemptionId).where('state', '=', 'used').execute()
  for (const right of open.length > 0 ? rights : []) {
    const key = { lineId: right.line_id, unitNo: right.unit_no, rightClass: right.right_class as RightClass, purchaseId: right.purchase_id }
    if (outcome === 'failed') await freeRight(db, key, right.failures + 1)
    else await noteOutcome(db, redemptionId, key, outcome)
    keys.push(key)
  }
  await touchSubjects(db, keys)
  const purchases = new Set(keys.map((key) => key.purchaseId).filter((id) => id !== ''))
  for (const nonce of new Set(open.map((row) => row.nonce))) {
    const authorization = await findAuthorization(db, nonce)
    if (authorization) await updateAuthorization(db, authorization, {})
  }
  if (outcome === 'unknown' && open[0]) {
    await raiseException(scope, {
      storeId: witness.storeId,
      kind: 'outcome_unknown',
      subject: redemptionId,
      detail: 'an actuator was commanded and nobody knows whether it moved',
      deviceId: open[0].device_id,
      purchaseId: [...purchases][0],
      nonce: open[0].nonce,
    })
  }
  for (const purchaseId of purchases) await settlePurchase(scope, purchaseId)
  return true
}

/** An agent will never honour this token: the lease ends. */
export async function applyVoid(scope: EvidenceScope, witness: Witness, nonce: string): Promise<boolean> {
  const row = await findAuthorization(scope.db, nonce)
  if (row?.tenant !== scope.tenant) return false
  if (row.agent_id !== witness.agentId || row.voided_ms !== null) return true
  const voided = await updateAuthorization(scope.db, row, { voided_ms: witness.atMs, revoked_ms: row.revoked_ms ?? witness.atMs })
  await freeUnused({ db: scope.db }, voided)
  return true
}

