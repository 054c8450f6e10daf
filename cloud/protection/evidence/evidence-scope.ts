import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { deny } from '../rights/deny-list.ts'
import { EvidenceFacts } from './evidence-facts.ts'
import type { EventScope } from '../records/record-event.ts'
import { settlePurchases } from '../rights/settle-purchase.ts'
import { RedemptionBatch } from '../rights/redemption-batch.ts'

/**
 * Evidence reports which rights were used. Evidence comes in rows of an agent's journal, or in the call of a device.
 * The cloud rejects no evidence: it stores each row and raises an exception for a forbidden use.
 *
 * Call `openEvidence`, then `applyClaim`, `applyOutcome` and others for any number of rows, then `finishEvidence`.
 * `finishEvidence` updates purchases and deny lists once per transaction, because both depend only on the final state.
 */
export interface EvidenceScope extends EventScope {
  services: Services
  emit: Call['emit']
  afterCommit: Call['afterCommit']
  facts: EvidenceFacts
  redemptions: RedemptionBatch
  /** Changes that `finishEvidence` will write. */
  due: Due
}

/** Agent or device that sent evidence, with store and time. */
export interface EvidenceSource {
  /** null for a device without an agent, which reports over HTTP. */
  agentId: string | null
  storeId: string
  /** Trusted time of the event, ms. */
  atMs: number
  eventId: string
}

interface Due {
  /** Purchases with new outcomes. */
  purchaseIds: Set<string>
  /** New deny list entries by store. */
  denials: Map<string, DenyEntry[]>
}

/** Opens a scope for evidence of one tenant. Call `finishEvidence` in the same transaction. */
export function openEvidence(
  { db, services, nowMs, emit, afterCommit }: Pick<Call, 'db' | 'services' | 'nowMs' | 'emit' | 'afterCommit'>,
  tenant: string,
): EvidenceScope {
  const due = { purchaseIds: new Set<string>(), denials: new Map<string, DenyEntry[]>() }
  return {
    db,
    tenant,
    platform: services.platform,
    nowMs,
    services,
    emit,
    afterCommit,
    facts: new EvidenceFacts(db, tenant),
    redemptions: new RedemptionBatch(db, tenant),
    due,
  }
}

/** Writes redemptions and rights, updates purchases and adds deny list entries. */
export async function finishEvidence(scope: EvidenceScope): Promise<void> {
  const { purchaseIds, denials } = scope.due
  await scope.redemptions.flush()
  await settlePurchases(scope, [...purchaseIds])
  purchaseIds.clear()
  for (const [storeId, entries] of denials) await deny(scope, storeId, entries)
  denials.clear()
}
