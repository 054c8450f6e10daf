import type { Call } from '../../operations/operation.ts'
import { raiseDocumentVersion } from '../../stores/queries.ts'

/** Raises the version of the store's signed policy and tells the store's agents, once this is committed, to fetch it. */
export async function storeDocumentChanged(call: Call, storeId: string): Promise<void> {
  await raiseDocumentVersion(call.db, storeId)
  call.afterCommit(() => call.services.agents.storeChanged(storeId))
}
