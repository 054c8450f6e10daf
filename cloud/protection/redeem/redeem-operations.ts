import { z } from 'zod'
import {
  AUTHORIZATION_STATES,
  OUTCOMES,
  type ItemStatus,
  type Outcome,
  type ProtectionAction,
  type RightClass,
  type ScanSource,
} from '../../../policy/vocabulary.ts'
import { knownCaller, maySee, type KnownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { notFound, invalid, precondition } from '../../platform/foundation/failure.ts'
import { Id, Success, Timestamp, lines, scanned, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { findAuthorization, redemptionsOf, unitsOfAuthorization, viewAuthorization } from '../leases/authorizations.ts'
import { isBeingRevoked } from '../leases/token-revocations.ts'
import { coversRecalled } from '../recalls/publish-recalls.ts'
import { revokeAuthorization } from '../leases/leases.ts'
import { newId } from '../../../policy/ids.ts'
import { DEVICE_LEDGER, openAuthorization, denyReasonOf } from '../../../policy/documents/authorization.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { readUnits } from '../../shop/purchases/queries.ts'
import { readRequestContext, type RequestContext } from '../authorize/request-context.ts'
import { applyClaim } from '../evidence/apply-claim.ts'
import { applyOutcome } from '../evidence/apply-outcome.ts'
import { finishEvidence, openEvidence, type EvidenceScope, type EvidenceSource } from '../evidence/evidence-scope.ts'
import { recordEvent } from '../records/record-event.ts'
import { readItem, technologiesOf } from '../items/item-queries.ts'

interface RedeemRequest {
  authorizationToken?: string | undefined
  replayProtectedNonce?: string | undefined
  deviceId: string
  redemptionId: string
  step?: number | undefined
  occurredAt?: string | undefined
  outcome?: Outcome | undefined
}

/**
 * Redeems a step of an authorization for a device without an agent, before the device acts. The device then repeats
 * the call with the outcome. A device that works offline may report its release afterwards. Agents redeem in their own ledgers and report claims and outcomes as evidence
 * (../evidence).
 */
async function redeem(call: Call, request: RedeemRequest) {
  const caller = knownCaller(call.caller)
  const context = await readRequestContext(call, { deviceId: request.deviceId, occurredAt: request.occurredAt })
  if (!context.device) throw notFound('device')
  const row = await findNamed(call, request, caller)
  if (row.device_id !== request.deviceId) throw precondition('token_invalid', 'the authorization is for another device')
  const agentId = caller.kind === 'agent' ? caller.agentId : null
  if (row.agent_id !== agentId)
    throw precondition(
      'claimed_by_agent',
      'the device belongs to an agent: only its ledger may claim this authorization',
    )

  const scope = openEvidence(call, caller.tenant)
  const redemptions = await redemptionsOf(call.db, row.nonce)
  const known = redemptions.find(
    (r) => r.redemption_id === request.redemptionId && (request.step === undefined || r.step === request.step),
  )
  const eventId = known?.event_id ?? newId('evt', call.services.platform)
  // The clock of the device may be fast, but the time of a redemption must not be in the future.
  const atMs = known?.at_ms ?? Math.min(context.occurredMs, call.nowMs)
  const source: EvidenceSource = { agentId, storeId: row.store_id, atMs, eventId }
  if (!known && !isReport(row, request)) {
    await assertUnitIsStillFor(call, row)
    if (await isBeingRevoked(call.db, row, call.nowMs, coversRecalled))
      throw precondition('token_revoked', 'the authorization was revoked')
  }
  if (!known) await claimStep(scope, source, row, redemptions, request, call.nowMs)
  if (request.outcome !== undefined) {
    const isNew = known?.outcome === null || known === undefined
    await applyOutcome(scope, source, request.redemptionId, request.outcome, row.nonce)
    if (isNew)
      await recordOutcome(call, row, request, { ...context, outcome: request.outcome, device: context.device, eventId })
  }
  await finishEvidence(scope)
  call.changed(row.nonce)
  return describe(call, row, request.redemptionId, eventId)
}

async function findNamed(
  call: Call,
  request: RedeemRequest,
  caller: KnownCaller,
): Promise<Row<'protection_authorization'>> {
  const { authorizationToken, replayProtectedNonce, deviceId } = request
  if (authorizationToken === undefined && replayProtectedNonce === undefined) {
    throw invalid(
      'authorizationToken',
      'is missing: name the authorization by its token or its replayProtectedNonce',
      'missing',
    )
  }
  let nonce = replayProtectedNonce
  if (authorizationToken !== undefined) {
    const opened = openAuthorization(authorizationToken, {
      keys: call.services.authority.keysOf(caller.tenant).ring,
      audience: deviceId,
    })
    if (!opened.ok && opened.fault === 'wrong_audience')
      throw precondition('token_invalid', 'the authorization is for another device')
    if (!opened.ok && denyReasonOf(opened.fault) === 'token_revoked')
      throw precondition('token_revoked', 'the key of this token was revoked')
    if (!opened.ok) throw notFound('authorization')
    if (nonce !== undefined && nonce !== opened.authorization.jti)
      throw invalid('replayProtectedNonce', 'is not the nonce of the token')
    nonce = opened.authorization.jti
  }
  const row = await findAuthorization(call.db, nonce ?? '')
  if (!row || !maySee(caller, row)) throw notFound('authorization')
  return row
}

/**
 * Rejects an item-level authorization if its unit is now bound to another item. Otherwise two items would be released
 * for one unit.
 */
async function assertUnitIsStillFor(call: Call, row: Row<'protection_authorization'>): Promise<void> {
  if (row.item_id === null || row.purchase_id === null) return
  const covered = await unitsOfAuthorization(call.db, row.nonce)
  const units = await readUnits(call.db, row.purchase_id)
  const isAnother = units.some(
    (unit) =>
      unit.bound === 1 &&
      unit.item_id !== row.item_id &&
      covered.some(({ line_id, unit_no }) => line_id === unit.line_id && unit_no === unit.unit_no),
  )
  if (isAnother) throw precondition('token_revoked', 'the unit of this authorization was bound to another item')
}

/**
 * True if a device that works offline reports a release. It has claimed the token in its own memory, so the cloud
 * stores the release in any case. If the release was wrong, the cloud raises an exception.
 */
function isReport({ ledger }: Row<'protection_authorization'>, { outcome }: RedeemRequest): boolean {
  return ledger === DEVICE_LEDGER && outcome !== undefined
}

async function claimStep(
  scope: EvidenceScope,
  source: EvidenceSource,
  row: Row<'protection_authorization'>,
  redemptions: readonly Row<'redemption'>[],
  request: RedeemRequest,
  nowMs: number,
): Promise<void> {
  if (!isReport(row, request)) {
    if (row.revoked_ms !== null || row.voided_ms !== null)
      throw precondition('token_revoked', 'the authorization was revoked')
    if (source.atMs >= row.exp * 1_000 || nowMs >= row.exp * 1_000 + 60_000)
      throw precondition('token_expired', 'the authorization has expired')
  }
  const used = new Set(redemptions.map((r) => r.step))
  const step = request.step ?? Array.from({ length: row.count }, (_, i) => i + 1).find((n) => !used.has(n))
  if (step !== undefined && step > row.count)
    throw invalid('step', `is ${step}, but the authorization covers ${row.count}`)
  if (step === undefined || used.has(step))
    throw precondition('already_redeemed', 'this step of the authorization is already redeemed')
  const isApplied = await applyClaim(scope, source, {
    kind: 'claim',
    redemptionId: request.redemptionId,
    nonce: row.nonce,
    source: 'token',
    rightClass: row.right_class as RightClass,
    ordinals: [step - 1],
    deviceId: row.device_id,
  })
  if (!isApplied) throw precondition('already_redeemed', 'this unit has been redeemed too often')
}

/** Line, item and technologies of a redemption; null or absent if unknown. */
async function subjectOf(
  call: Call,
  row: Row<'protection_authorization'>,
  redemptionId: string,
  { device, store }: Pick<RequestContext, 'device' | 'store'>,
) {
  const redemption = (await redemptionsOf(call.db, row.nonce)).find((each) => each.redemption_id === redemptionId)
  const unit = (await unitsOfAuthorization(call.db, row.nonce)).find(
    (each) => each.ordinal === (redemption?.step ?? 0) - 1,
  )
  const itemId =
    row.item_id ??
    (unit &&
      (await readUnits(call.db, row.purchase_id ?? '')).find(
        (each) => each.line_id === unit.line_id && each.unit_no === unit.unit_no,
      )?.item_id)
  const item = itemId ? await readItem(call.db, itemId) : undefined
  return {
    itemLineId: row.purchase_id ? (unit?.line_id ?? null) : null,
    epc: item?.epc ?? null,
    tagUid: item?.tag_uid ?? null,
    tagId: item?.tag_id ?? null,
    ...technologiesOf({
      item,
      device: device?.row,
      store,
      protectionAction: row.action as ProtectionAction,
      epc: item?.epc ?? undefined,
      tagUid: item?.tag_uid ?? undefined,
    }),
    itemStatus: (item?.item_status ?? null) as ItemStatus | null,
  }
}

interface Reported {
  /** Id of the event; each redemption has one event. */
  eventId: string
  outcome: Outcome
  occurredMs: number
  device: NonNullable<RequestContext['device']>
  store: RequestContext['store']
}

async function recordOutcome(
  call: Call,
  row: Row<'protection_authorization'>,
  { redemptionId }: RedeemRequest,
  { eventId, outcome, occurredMs, device, store }: Reported,
): Promise<void> {
  const { tenant } = knownCaller(call.caller)
  const target = await subjectOf(call, row, redemptionId, { device, store })
  await recordEvent(
    { db: call.db, tenant, platform: call.services.platform, nowMs: call.nowMs },
    {
      eventId,
      type: outcome === 'confirmed' ? 'protection.action.completed' : 'protection.action.failed',
      storeId: row.store_id,
      deviceId: row.device_id,
      protectionAction: row.action as ProtectionAction,
      deviceType: device.facts.deviceType,
      workflowType: device.facts.workflowType,
      zoneId: device.row.zone_id,
      laneId: device.row.lane_id,
      gateId: device.row.gate_id,
      firmwareVersion: device.row.firmware_version,
      purchaseId: row.purchase_id || null,
      ...target,
      authorizationState: 'redeemed',
      replayProtectedNonce: row.nonce,
      operatorId: row.operator_id || null,
      scanSource: row.scan_source as ScanSource | null,
      outcome,
      reason: outcome === 'confirmed' ? null : outcome,
      occurredMs,
    },
  )
}

async function describe(call: Call, row: Row<'protection_authorization'>, redemptionId: string, eventId: string) {
  const redemptions = await redemptionsOf(call.db, row.nonce)
  // `remaining` counts only the redemptions up to `redemptionId`, so that a repeated call gets the same number.
  const upTo = redemptions.findLastIndex((r) => r.redemption_id === redemptionId)
  const { state, redeemedAtMs } = viewAuthorization(row, redemptions, call.nowMs)
  return {
    authorizationState: state,
    redeemedAt: redeemedAtMs === null ? null : new Date(redeemedAtMs).toISOString(),
    remaining: row.count - new Set(redemptions.slice(0, upTo + 1).map((r) => r.step)).size,
    eventId,
  }
}

export const redeemProtectionAuthorization = operation({
  name: 'redeemProtectionAuthorization',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Redeems one step of an authorization. Call it before the device acts, and again with the outcome.',
  description:
    'For devices without an agent. The same `redemptionId` returns the same response. A used step returns 409 `already_redeemed`. ' +
    'With `supportsOfflineAuth`, a request with an `outcome` reports a release that has happened. The cloud stores it even if the token has ended since.',
  callers: ['secret', 'agent'],
  refusals: ['already_redeemed', 'token_expired', 'token_revoked', 'token_invalid', 'claimed_by_agent'],
  changes: true,
  request: z.strictObject({
    authorizationToken: scanned(1_024).optional(),
    replayProtectedNonce: text(64).optional(),
    deviceId: Id,
    redemptionId: text(64),
    step: z.int().min(1).optional(),
    occurredAt: Timestamp.optional(),
    outcome: z.enum(OUTCOMES).optional(),
  }),
  response: z.strictObject({
    ...Success,
    authorizationState: z.enum(AUTHORIZATION_STATES),
    redeemedAt: z.string().nullable(),
    remaining: z.int(),
    eventId: z
      .string()
      .describe('Id of the event with the outcome. The cloud records it when the device reports the outcome.'),
  }),
  example: { replayProtectedNonce: 'kJ3x…', deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B', redemptionId: 'red-1' },
  emits: ['protection.action.completed', 'protection.action.failed', 'securityTag.deactivated'],
  async run(call, input) {
    return { success: true as const, ...(await redeem(call, input)) }
  },
})

export const revokeProtectionAuthorization = operation({
  name: 'revokeProtectionAuthorization',
  area: 'protection',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Revokes an authorization. Redeemed steps stay redeemed.',
  changes: true,
  request: z.strictObject({ replayProtectedNonce: text(64), reason: lines(300).optional() }),
  response: z.strictObject({ ...Success, authorizationState: z.enum(AUTHORIZATION_STATES) }),
  example: { replayProtectedNonce: 'kJ3x…', reason: 'customer left' },
  async run(call, { replayProtectedNonce, reason }) {
    const row = await findAuthorization(call.db, replayProtectedNonce)
    if (row?.tenant !== knownCaller(call.caller).tenant) throw notFound('authorization')
    await ownStoreOf(call, row.store_id, 'authorization')
    const redemptions = await redemptionsOf(call.db, row.nonce)
    const before = viewAuthorization(row, redemptions, call.nowMs)
    const current =
      before.state === 'issued' || redemptions.length < row.count
        ? await revokeAuthorization(call, row, reason ?? 'the merchant revoked it')
        : row
    call.changed(row.nonce)
    return { success: true as const, authorizationState: viewAuthorization(current, redemptions, call.nowMs).state }
  },
})
