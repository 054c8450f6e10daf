import { z } from 'zod'
import { tenantOf, type Mode } from '../../platform/foundation/caller.ts'
import { notFound, precondition } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { hashOf } from '../../platform/operations/idempotency.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { countStores } from '../../platform/stores/queries.ts'
import { KEY_KINDS, type KeyKind } from '../../platform/accounts/api-keys.ts'
import { addKey } from '../../platform/accounts/keys.ts'
import { findRegistration, updateRegistration } from './registration-queries.ts'

const HandedOut = z.strictObject({
  keyId: z.string(),
  key: z.string().describe('Shown once.'),
  kind: z.enum(KEY_KINDS),
  mode: z.enum(['test', 'live']),
  name: z.string(),
})

export const claimRegistration = operation({
  name: 'claimRegistration',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary:
    'Returns the keys of an approved request: the test keys once, and the first live secret key after the first live store is approved.',
  description:
    'Call it again when the first live store is approved. It fails with 409 `registration_pending` while the ' +
    'request waits for review, `registration_rejected` with the reason in `error`, and `nothing_to_claim` if all ' +
    'present keys were returned before. With the same Idempotency-Key, a repeated call returns the same keys for ' +
    '24 hours.',
  callers: ['anyone'],
  refusals: ['registration_pending', 'registration_rejected', 'nothing_to_claim'],
  changes: true,
  secretResponse: true,
  proofInBody: true,
  request: z.strictObject({ registrationId: Id, claimSecret: z.string().min(1).max(200) }),
  response: z.strictObject({
    ...Success,
    registrationId: z.string(),
    status: z.literal('approved'),
    accountId: z.string(),
    keys: z.array(HandedOut),
  }),
  example: { registrationId: 'reg_01KANX6Y7C3V9Q2M8R5T4W6Z1B', claimSecret: 'claim_…' },
  async run(call, { registrationId, claimSecret }) {
    const row = await findRegistration(call.db, registrationId)
    // The timing of this comparison reveals nothing, because it compares hashes of a 256-bit secret.
    if (!row || row.claim_hash === null || row.claim_hash !== hashOf(claimSecret)) throw notFound('registration')
    if (row.status === 'rejected')
      throw precondition(
        'registration_rejected',
        `the registration was rejected: ${row.reason ?? 'no reason was given'}`,
      )
    if (row.status === 'pending' || row.account_id === null)
      throw precondition('registration_pending', 'the registration still waits for review')
    const accountId = row.account_id
    const keys: z.infer<typeof HandedOut>[] = []
    if (row.test_claimed_ms === null) {
      keys.push(await handOut(call, accountId, 'secret', 'test'), await handOut(call, accountId, 'publishable', 'test'))
      await updateRegistration(call.db, registrationId, { test_claimed_ms: call.nowMs })
    }
    if (row.live_claimed_ms === null && (await countStores(call.db, tenantOf(accountId, 'live'))) > 0) {
      keys.push(await handOut(call, accountId, 'secret', 'live'))
      await updateRegistration(call.db, registrationId, { live_claimed_ms: call.nowMs })
    }
    if (keys.length === 0) {
      const why =
        row.live_claimed_ms === null
          ? 'the live key is handed out when the first live store is approved'
          : 'all keys were handed out'
      throw precondition('nothing_to_claim', `there is nothing to hand out: ${why}`)
    }
    call.changed(registrationId, tenantOf(accountId, keys.some((key) => key.mode === 'live') ? 'live' : 'test'))
    return { success: true as const, registrationId, status: 'approved' as const, accountId, keys }
  },
})

async function handOut(call: Call, accountId: string, kind: KeyKind, mode: Mode): Promise<z.infer<typeof HandedOut>> {
  const name = `first ${mode} ${kind} key`
  const { keyId, key } = await addKey(call.db, { accountId, kind, mode, name }, call.nowMs, call.services.platform)
  return { keyId, key, kind, mode, name }
}
