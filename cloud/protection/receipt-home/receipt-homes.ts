import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'

/** Receipt homes of a store by epoch. The policy names the current one. The table `former_home` names earlier ones. */

const formerHome = prepared((db, p: { storeId: string; epoch: number }) =>
  db.selectFrom('former_home').select('agent_id').where('store_id', '=', p.storeId).where('home_epoch', '=', p.epoch),
)

/** Stores the current receipt home as a former one. Call it before `homeEpoch` of the policy changes. */
export async function storeFormerHome(db: Db, store: Pick<StoreRow, 'store_id' | 'policy'>): Promise<void> {
  const { home, homeEpoch } = policyOf(store)
  await db
    .insertInto('former_home')
    .values({ store_id: store.store_id, home_epoch: homeEpoch, agent_id: home })
    .onConflict((c) => c.doNothing())
    .execute()
}

/** Receipt home of a store in this epoch: an agentId or `cloud`; undefined for an unknown epoch. */
export async function findHomeIn(db: Db, storeId: string, epoch: number): Promise<string | undefined> {
  const store = await findStore(db, storeId)
  const policy = store && policyOf(store)
  if (policy?.homeEpoch === epoch) return policy.home
  const [known] = await formerHome(db, { storeId, epoch })
  return known?.agent_id
}
