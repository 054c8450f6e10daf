import { z } from 'zod'
import {
  AUTHORIZATION_STATES,
  type AuthorizationState,
  type Outcome,
  type ProtectionAction,
} from '../../../policy/vocabulary.ts'
import { actorOf, knownCaller, maySee, staffOf, rolesFrom } from '../../platform/foundation/caller.ts'
import { notFound, precondition } from '../../platform/foundation/failure.ts'
import { Success, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findPurchaseOfReceipt } from '../../shop/purchases/queries.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { findAuthorization, redemptionsOf, viewAuthorization } from '../leases/authorizations.ts'
import { denyRights, hasAgents } from '../rights/deny-list.ts'
import { recordEvent } from '../records/record-event.ts'
import { settleRedemptions } from '../evidence/apply-outcome.ts'
import { finishEvidence, openEvidence, type EvidenceScope } from '../evidence/evidence-scope.ts'
import { acknowledgeOpenException } from '../records/exceptions.ts'
import { itemsOfLine, technologiesOf } from '../items/item-queries.ts'
import { findRedemptions, updateRedemption } from '../rights/redemptions.ts'
import { unitOf } from '../rights/settle-purchase.ts'

/** Time after the claim in which only the device may report the outcome, ms. */
const REPORT_WITHIN_MS = 300_000
/** Time after the expiry of a receipt in which an agent with a slow clock may still accept the receipt, s. */
const GUARD_SECONDS = 60

export const resolveRedemption = operation({
  name: 'resolveRedemption',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Resolves an unknown or failed outcome with what staff saw.',
  description:
    '`confirmed`: the tag is off, and the right stays used. `failed`: the tag is still on, and the right is free again. ' +
    'Later reports of the device change nothing. If one contradicts staff, it raises the exception `outcome_conflict`.',
  refusals: ['outcome_known', 'outcome_pending', 'redemption_ambiguous'],
  changes: true,
  request: z.strictObject({
    redemptionId: text(64),
    outcome: z.enum(['confirmed', 'failed']),
    operatorId: text(128)
      .optional()
      .describe('Stored as sent; the cloud does not verify it. A signed-in user may omit it and is then recorded.'),
    replayProtectedNonce: text(64)
      .optional()
      .describe('Required if a device used one redemptionId for several authorizations.'),
  }),
  response: z.strictObject({ ...Success, authorizationState: z.enum(AUTHORIZATION_STATES) }),
  example: { redemptionId: 'red-1', outcome: 'confirmed', operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  emits: ['protection.action.completed', 'protection.action.failed', 'securityTag.deactivated'],
  async run(call, { redemptionId, outcome, replayProtectedNonce, ...input }) {
    const operatorId = staffOf(call.caller, input.operatorId)
    const { tenant } = knownCaller(call.caller)
    const rows = (await findRedemptions(call.db, tenant, redemptionId)).filter(
      (row) => replayProtectedNonce === undefined || row.nonce === replayProtectedNonce,
    )
    const { nonce, about } = await ownSubject(call, rows)
    await ownStoreOf(call, about.storeId, 'redemption')
    call.changed(redemptionId)
    const open = rows.filter((row) => row.nonce === nonce && isOpen(call, row, outcome))
    if (open.length > 0) await resolve(call, open, about, outcome, operatorId)
    return { success: true as const, authorizationState: await stateOf(call, nonce) }
  },
})

/**
 * Finds the authorization or receipt of these redemptions. Devices choose the redemption ids, so another store may use
 * the same id. Ignores redemptions in stores that the caller cannot see.
 */
async function ownSubject(
  call: Call,
  rows: readonly Row<'redemption'>[],
): Promise<{ nonce: string; about: RedemptionSubject }> {
  const caller = knownCaller(call.caller)
  let own: { nonce: string; about: RedemptionSubject } | undefined
  for (const nonce of new Set(rows.map((row) => row.nonce))) {
    const about = await subjectOf(call, nonce)
    if (!about || !maySee(caller, { store_id: about.storeId, tenant: caller.tenant })) continue
    if (own)
      throw precondition(
        'redemption_ambiguous',
        'several authorizations have a redemption with this id: send the replayProtectedNonce',
      )
    own = { nonce, about }
  }
  if (!own) throw notFound('redemption')
  return own
}

/**
 * True if staff may resolve the outcome. Throws if a different outcome is already known, or if staff resolve the
 * outcome too early.
 */
function isOpen(
  { nowMs }: Call,
  { outcome: known, resolved_by, at_ms }: Row<'redemption'>,
  reported: Outcome,
): boolean {
  if (known === 'confirmed' || resolved_by !== null) {
    if (known !== reported) throw precondition('outcome_known', `the outcome is already known: ${known}`)
    return false
  }
  if (known === null && nowMs < at_ms + REPORT_WITHIN_MS)
    throw precondition(
      'outcome_pending',
      'the device may still report the outcome: staff can resolve it five minutes after the claim',
    )
  return true
}

interface RedemptionSubject {
  storeId: string
  action: ProtectionAction | null
  purchaseId: string | null
}

async function subjectOf({ db }: Call, nonce: string): Promise<RedemptionSubject | undefined> {
  const row = await findAuthorization(db, nonce)
  if (row) return { storeId: row.store_id, action: row.action as ProtectionAction, purchaseId: row.purchase_id }
  const purchase = await findPurchaseOfReceipt(db, nonce)
  return purchase && { storeId: purchase.store_id, action: null, purchaseId: purchase.purchase_id }
}

async function stateOf({ db, nowMs }: Call, nonce: string): Promise<AuthorizationState> {
  const row = await findAuthorization(db, nonce)
  // If the nonce is the id of a receipt, there is no authorization row, and the claimed right is redeemed.
  return row ? viewAuthorization(row, await redemptionsOf(db, nonce), nowMs).state : 'redeemed'
}

async function resolve(
  call: Call,
  rows: readonly Row<'redemption'>[],
  about: RedemptionSubject,
  outcome: 'confirmed' | 'failed',
  operatorId: string,
): Promise<void> {
  const { db, nowMs } = call
  const { tenant } = knownCaller(call.caller)
  const [first] = rows
  if (!first) return
  const scope = openEvidence(call, tenant)
  for (const row of rows) await updateRedemption(db, row, { outcome, resolved_by: operatorId, reported: row.outcome })
  await settleRedemptions(scope, { agentId: first.agent_id, storeId: about.storeId, atMs: nowMs, eventId: '' }, rows)
  await finishEvidence(scope)
  if (outcome === 'confirmed') await denyConfirmed(scope, about, rows)
  await acknowledgeOpenException(db, {
    storeId: about.storeId,
    kind: 'outcome_unknown',
    subject: first.redemption_id,
    by: actorOf(call.caller),
    atMs: nowMs,
  })
  const device = await scope.facts.device(first.device_id)
  const item = await itemOf(db, first)
  const technologies = technologiesOf({
    item,
    device,
    store: await scope.facts.store(about.storeId),
    protectionAction: about.action ?? undefined,
    epc: item?.epc ?? undefined,
    tagUid: item?.tag_uid ?? undefined,
  })
  await recordEvent(scope, {
    ...technologies,
    type: outcome === 'confirmed' ? 'protection.action.completed' : 'protection.action.failed',
    storeId: about.storeId,
    deviceId: first.device_id,
    protectionAction: about.action,
    purchaseId: about.purchaseId || null,
    itemLineId: about.purchaseId ? first.line_id : null,
    epc: item?.epc ?? null,
    tagUid: item?.tag_uid ?? null,
    tagId: item?.tag_id ?? null,
    replayProtectedNonce: first.nonce,
    authorizationState: await stateOf(call, first.nonce),
    operatorId,
    outcome,
    reason: outcome === 'failed' ? 'failed' : null,
    detail: `resolved by staff; the device had reported ${first.outcome ?? 'nothing'}`,
  })
}

/** Item that the redeemed unit is bound to, if any. */
async function itemOf(db: Db, { line_id: lineId, unit_no: unitNo }: Row<'redemption'>) {
  if (lineId === null || unitNo === null) return undefined
  return (await itemsOfLine(db, lineId)).find((item) => item.unit_no === unitNo)
}

/**
 * Puts confirmed rights on the deny list, because the agent may have freed them after its device reported a failure.
 */
async function denyConfirmed(
  scope: EvidenceScope,
  { storeId, purchaseId }: RedemptionSubject,
  rows: readonly Row<'redemption'>[],
): Promise<void> {
  const { db } = scope
  if (!purchaseId || !(await hasAgents(db, storeId))) return
  const purchase = await db.selectFrom('purchase').selectAll().where('purchase_id', '=', purchaseId).executeTakeFirst()
  if (!purchase?.receipt_exp) return
  for (const row of rows) {
    const key = await unitOf(scope.redemptions, row)
    if (key) await denyRights(scope, purchase, key.rightClass, [key], purchase.receipt_exp + GUARD_SECONDS)
  }
}
