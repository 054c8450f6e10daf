import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { deny } from '../rights/deny-list.ts'
import { EvidenceFacts } from './evidence-facts.ts'
import type { EventScope } from '../records/record-event.ts'
import { settlePurchases } from '../rights/settle-purchase.ts'
import { RedemptionBatch } from '../rights/redemption-batch.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findAuthorization, redemptionsOf, viewAuthorization } from '../leases/authorizations.ts'
import { freeUnusedRights, recallLease } from '../leases/leases.ts'
import type { UnitKey } from '../rights/rights.ts'
import { countException, raiseException } from '../records/exceptions.ts'

/**
 * A report about something of another agent or store, which the sender was not allowed to report. `kind`: kind of
 * evidence, or type of event.
 */
export interface ForeignReport {
  kind: string
  /** Token, redemption or event that the report names. */
  about: string
  detail: string
  deviceId?: string
}

/** Maximum length of an id in the exception text, characters. Agents choose these ids. */
const ABOUT_LIMIT = 128

/**
 * Raises `foreign_evidence` once per agent and kind of report, because a lying agent may send any number of reports.
 * Further reports only increase the count of the exception. The cloud stores all rows of the journal.
 */
export async function raiseForeignEvidence(
  scope: EventScope,
  { agentId, storeId }: { agentId: string | null; storeId: string },
  { kind, about, detail, deviceId }: ForeignReport,
): Promise<void> {
  await countException(scope, {
    storeId,
    kind: 'foreign_evidence',
    subject: `${agentId ?? storeId}/${kind}`,
    detail: `${detail}: ${about.slice(0, ABOUT_LIMIT)}`,
    deviceId,
  })
}

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

/**
 * Recalls the lease of a unit after a claim or a delegation used the unit's right. `by`: nonce of the token or receipt
 * that was used. `exceptOf`: agent that keeps its lease.
 */
export async function endLease(scope: EvidenceScope, key: UnitKey, by: string, exceptOf?: string): Promise<void> {
  const right = await scope.redemptions.right(key)
  if (right?.state !== 'leased' || right.nonce === null || right.nonce === by) return
  const lease = await findAuthorization(scope.db, right.nonce)
  if (!lease || (exceptOf !== undefined && lease.agent_id === exceptOf)) return
  await flushAndReset(scope)
  await recallLease(scope, lease)
}

/** Frees the rights that an authorization still leases. Call it when no agent or device can honour the token. */
export async function freeLeases(scope: EvidenceScope, row: Row<'protection_authorization'>): Promise<void> {
  await flushAndReset(scope)
  await freeUnusedRights(scope, row)
}

/** Writes the batch and clears its cache. Call it before other code changes rights in the database directly. */
async function flushAndReset({ redemptions }: EvidenceScope): Promise<void> {
  await redemptions.flush()
  redemptions.reset()
}

/** Raises each exception that the evidence about an authorization shows. Returns their kinds. */
export async function raiseAuthorizationExceptions(
  scope: EvidenceScope,
  row: Row<'protection_authorization'>,
): Promise<ReadonlySet<string>> {
  await scope.redemptions.flush()
  const redemptions = await redemptionsOf(scope.db, row.nonce)
  const { exceptions } = viewAuthorization(row, redemptions, scope.nowMs)
  for (const kind of exceptions) {
    await raiseException(scope, {
      storeId: row.store_id,
      kind,
      subject: row.nonce,
      detail: EXCEPTION_TEXT[kind],
      deviceId: row.device_id,
      purchaseId: row.purchase_id ?? undefined,
      nonce: row.nonce,
    })
  }
  return exceptions
}

const EXCEPTION_TEXT = {
  double_redeem: 'one step of an authorization was redeemed twice',
  late_redeem: 'an authorization was redeemed after it expired',
  redeemed_after_revocation: 'an authorization was redeemed after it was revoked',
}
