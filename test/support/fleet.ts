import { stateColumns, type StoredAgentState } from '../../cloud/protection/agent-identity/agent-queries.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import type { Row } from '../../cloud/platform/persistence/schema.ts'

/** What a test says about an agent of a fleet. Default: connected, with the current policy of its store. */
export interface FleetAgent {
  readonly agentId: string
  readonly storeId: string
  readonly name?: string
  /** Time since the last contact, ms. */
  readonly silentMs?: number
  /** Policies that it is behind the store. */
  readonly behind?: number
  readonly release?: string
  readonly devices?: StoredAgentState['devices']
  readonly columns?: Partial<Row<'agent'>>
}

/** Inserts agents as if they had reported a moment ago. */
export async function insertFleet(db: Db, nowMs: number, agents: readonly FleetAgent[]): Promise<void> {
  const stores = new Map(
    (await db.selectFrom('store').select(['store_id', 'tenant', 'document_version']).execute()).map((row) => [
      row.store_id,
      row,
    ]),
  )
  const rows = agents.map((agent) => {
    const { agentId, storeId, name = agentId, silentMs = 0, behind = 0, release = '0.1.0', devices, columns } = agent
    const store = stores.get(storeId)
    const observedAt = new Date(nowMs - silentMs).toISOString()
    return {
      agent_id: agentId,
      tenant: store?.tenant ?? '',
      store_id: storeId,
      name,
      x: agentId,
      ledger_id: agentId,
      generation: 1,
      last_seq: 0,
      head_hash: '',
      deny_seq: 0,
      item_seq: 0,
      enrolled_ms: nowMs - 86_400_000,
      last_seen_ms: nowMs - silentMs,
      online: 1,
      ...stateColumns({
        observedAt,
        release,
        queueDepth: 0,
        policyVersion: (store?.document_version ?? 0) - behind,
        ...(devices && { devices, devicesAt: observedAt }),
      }),
      ...columns,
    }
  })
  for (let i = 0; i < rows.length; i += 200)
    await db
      .insertInto('agent')
      .values(rows.slice(i, i + 200))
      .execute()
}
