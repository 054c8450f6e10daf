import type { Call } from '../../platform/operations/operation.ts'
import { raiseDocumentVersion } from '../../platform/stores/queries.ts'

/** Raises the version of the store's signed policy, and announces it after the commit. */
export async function storeDocumentChanged(call: Call, storeId: string): Promise<void> {
  await raiseDocumentVersion(call.db, storeId)
  call.afterCommit(() => call.services.agents.storeChanged(storeId))
}
