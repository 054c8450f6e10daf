import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import type { Call, Services } from '../../operations/operation.ts'
import { deny } from '../rights/deny-list.ts'
import { EvidenceFacts } from './evidence-facts.ts'
import type { EventScope } from '../records/record-event.ts'
import { settlePurchases } from '../rights/settle-purchase.ts'
import { RedemptionBatch } from '../rights/redemption-batch.ts'

/**
 *   openEvidence ─ applyClaim · applyOutcome · applyVoid … of one row or a hundred ─ finishEvidence
 *
 * Evidence reports which rights were used: rows of an agent's journal, or a device's call. The cloud refuses no evidence. It adds each
 * row, and raises an exception for a use that should not have happened. What follows for purchases and other agents depends on the state at the
 * end alone, so it is written once for all rows of a transaction.
 */
export interface EvidenceScope extends EventScope {
  services: Services
  emit: Call['emit']
  afterCommit: Call['afterCommit']
  facts: EvidenceFacts
  redemptions: RedemptionBatch
  /** What `finishEvidence` writes. */
  due: Due
}

/** The agent or device that reports evidence, with store and time. */
export interface EvidenceSource {
  /** null: a device without agent, over HTTP. */
  agentId: string | null
  storeId: string
  /** Trusted time of what happened, ms. */
  atMs: number
  eventId: string
}

interface Due {
  /** Purchases with outcomes that are new. */
  purchaseIds: Set<string>
  /** What agents of a store must no longer honour, by store. */
  denials: Map<string, DenyEntry[]>
}

/** Begins to take evidence of this tenant in; end with `finishEvidence` in the same transaction. */
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

/** Writes what follows from all that was applied. */
export async function finishEvidence(scope: EvidenceScope): Promise<void> {
  const { purchaseIds, denials } = scope.due
  await scope.redemptions.flush()
  await settlePurchases(scope, [...purchaseIds])
  purchaseIds.clear()
  for (const [storeId, entries] of denials) await deny(scope, storeId, entries)
  denials.clear()
}
