import { z } from 'zod'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { findAgent } from '../agent-identity/sessions.ts'
import { storeDocumentChanged } from '../store-documents/document-changed.ts'
import { beginHomeMove } from './home-move.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'
import { storeFormerHome } from './receipt-homes.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'

export const moveReceiptHome = operation({
  name: 'moveReceiptHome',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('admin'),
  summary: 'Moves a store’s receipt home, which redeems its receipts, to another agent or to the cloud.',
  description:
    'The new receipt home first receives all used rights. Until every agent has reported its redemptions, earlier receipts need staff ' +
    'while the new receipt home is offline. This ends after a day at most, when the receipts expire, or when you revoke the missing agent.',
  changes: true,
  request: z.strictObject({ storeId: Id, home: Id.describe('An agentId of the store, or `cloud`.') }),
  response: z.strictObject({ ...Success, home: z.string(), homeEpoch: z.int() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', home: 'agt_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId, home }) {
    const store = await ownStore(call, storeId)
    if (home !== 'cloud') await assertEnrolled(call, storeId, home)
    const policy = policyOf(store)
    call.changed(storeId)
    if (policy.home === home) return { success: true as const, home, homeEpoch: policy.homeEpoch }
    const moved = { ...policy, home, homeEpoch: policy.homeEpoch + 1 }
    await beginHomeMove(call, store, home)
    await storeFormerHome(call.db, store)
    await call.db
      .updateTable('store')
      .set({ policy: JSON.stringify(moved), policy_version: store.policy_version + 1 })
      .where('store_id', '=', storeId)
      .execute()
    await storeDocumentChanged(call, storeId)
    return { success: true as const, home, homeEpoch: moved.homeEpoch }
  },
})

async function assertEnrolled({ db }: Call, storeId: string, agentId: string): Promise<void> {
  const agent = await findAgent(db, agentId)
  if (agent?.store_id !== storeId || agent.revoked_ms !== null) throw notFound('agent')
}
