import { z } from 'zod'
import { AUTHORIZATION_STATES, OUTCOMES } from '../../../policy/vocabulary.ts'
import { knownCaller } from '../../foundation/caller.ts'
import { notFound } from '../../foundation/failure.ts'
import { Id, Success, Timestamp, lines, scanned, text } from '../../operations/fields.ts'
import { operation } from '../../operations/operation.ts'
import { ownStoreOf } from '../../stores/own-store.ts'
import { findAuthorization, redemptionsOf } from '../leases/authorizations.ts'
import { revokeAuthorization } from '../leases/leases.ts'
import { viewAuthorization } from '../leases/view-authorization.ts'
import { redeem } from './redeem.ts'
import { rolesFrom } from '../../foundation/roles.ts'

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
