import { z } from 'zod'
import { worstCaseLoss } from '../../../policy/isolated-agent.ts'
import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { invalid, precondition } from '../../foundation/failure.ts'
import { Id, Success } from '../../operations/fields.ts'
import { operation, type Call } from '../../operations/operation.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { ownStore } from '../../stores/own-store.ts'
import { findStore } from '../../stores/queries.ts'
import { deviceFacts } from '../store-documents/device-queries.ts'
import { storeDocumentChanged } from '../store-documents/document-changed.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'
import { assertPolicyFits } from '../store-policy/policy-size.ts'
import { rolesFrom } from '../../foundation/roles.ts'
import { warningsOfNames } from './unknown-names.ts'

const PolicyAnswer = z.strictObject({
  ...Success,
  policy: ProtectionPolicy,
  version: z.int(),
  worstCaseLoss: z
    .number()
    .nullable()
    .describe(
      'Maximum loss in EUR while every agent is isolated, without what staff approve (`operatorOverridesPerHour` limits that). 0 if isolated agents release nothing without staff; null if there is no limit.',
    ),
})

async function describePolicy({ db }: Call, store: StoreRow): Promise<z.infer<typeof PolicyAnswer>> {
  const policy = policyOf(store)
  const rows = await db
    .selectFrom('device')
    .selectAll()
    .where('store_id', '=', store.store_id)
    .where('revoked_ms', 'is', null)
    .execute()
  const devices = rows.map((row) => deviceFacts(row, store))
  return {
    success: true,
    policy,
    version: store.policy_version,
    worstCaseLoss: worstCaseLoss(policy, devices),
  }
}

/**
 * Operations on the protection policy of a store. A new version must be valid and fit into one signed document for the
 * store's agents. `simulateProtectionPolicy` shows which past decisions another policy would change.
 */

export const fetchProtectionPolicy = operation({
  name: 'fetchProtectionPolicy',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Returns the protection policy of a store and the maximum loss while it is offline.',
  changes: false,
  request: z.strictObject({ storeId: Id }),
  response: PolicyAnswer,
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    return describePolicy(call, await ownStore(call, storeId))
  },
})

export const updateProtectionPolicy = operation({
  name: 'updateProtectionPolicy',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('admin'),
  summary: 'Replaces the protection policy of a store.',
  description:
    'Send the whole policy as fetchProtectionPolicy returns it; missing fields get their defaults. `home` and `homeEpoch` stay unchanged (see moveReceiptHome). ' +
    'Two categories or two brands that differ only in case, blanks or Unicode form are refused. `warnings` names categories and brands that no product of the store has.',
  refusals: ['version_moved', 'policy_too_large'],
  changes: true,
  request: z.strictObject({
    storeId: Id,
    policy: ProtectionPolicy.partial({ home: true, homeEpoch: true }),
    expectedVersion: z.int().optional().describe('Returns 409 if the policy has another version.'),
  }),
  response: PolicyAnswer.extend({ warnings: z.array(z.string()).optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', policy: { requiresManualOverrideAboveValue: 150 } },
  // Reads the products of the store, which takes too long for a transaction.
  async prepare(call, { storeId, policy }) {
    await ownStore(call, storeId)
    return warningsOfNames(call.db, storeId, policy)
  },
  async run(call, { storeId, policy, expectedVersion }, warnings) {
    const store = await ownStore(call, storeId)
    if (expectedVersion !== undefined && expectedVersion !== store.policy_version) {
      throw precondition(
        'version_moved',
        `the policy has version ${store.policy_version}, not ${expectedVersion}: read it again`,
      )
    }
    const { home, homeEpoch } = policyOf(store)
    const sent = policy as ProtectionPolicy
    if (sent.home !== undefined && sent.home !== 'cloud' && sent.home !== home)
      throw invalid('policy.home', 'cannot be changed here: use moveReceiptHome')
    const next = JSON.stringify({ ...sent, home, homeEpoch })
    await call.db
      .updateTable('store')
      .set({ policy: next, policy_version: store.policy_version + 1 })
      .where('store_id', '=', storeId)
      .execute()
    // Accepts a shorter policy without this check, so that a store above the limit can shorten its policy.
    if (Buffer.byteLength(next) > Buffer.byteLength(store.policy)) await assertPolicyFits(call, storeId)
    await storeDocumentChanged(call, storeId)
    call.changed(storeId)
    const changed = await findStore(call.db, storeId)
    return { ...(await describePolicy(call, changed ?? store)), ...(warnings.length > 0 && { warnings }) }
  },
})
