import type { Evidence } from '../../../policy/journal.ts'
import type { DelegatedRightRow } from '../../platform/persistence/tables/protection.ts'
import { endLease } from './end-lease.ts'
import type { EvidenceScope, EvidenceSource } from './evidence-scope.ts'
import { raiseForeignEvidence } from './foreign-evidence.ts'
import { findDelegated, storeDelegated, storeDelegationReturned } from '../rights/delegated-rights.ts'
import { openOutcomeReport, type OutcomeReport } from './outcome-report.ts'
import type { UnitKey } from '../rights/rights.ts'

/**
 * Reports of receipt homes about delegated rights. A report from another agent raises `foreign_evidence` (ADR 0012).
 */
export type Delegated = Extract<Evidence, { kind: 'delegated' }>
export type DelegationReturned = Extract<Evidence, { kind: 'delegation_returned' }>

/** Tolerance for the clock of another machine, s. */
const GUARD_SECONDS = 60

/**
 * Applies a delegation by the receipt home. Returns false if the receipt is unknown. The cloud then stores the row and
 * retries it later.
 */
export async function applyDelegated(
  scope: EvidenceScope,
  source: EvidenceSource,
  delegated: Delegated,
): Promise<boolean> {
  const { redemptionId, nonce, rightClass, ordinals, agentId, homeEpoch } = delegated
  const { agentId: homeAgentId, storeId } = source
  const { facts, db } = scope
  if (homeAgentId === null || homeEpoch === undefined || !(await facts.isHomeIn(homeEpoch, source)))
    return refuse(scope, source, delegated, 'an agent that was not the receipt home delegated rights of a receipt')
  if (!(await facts.agentsOf(storeId)).includes(agentId))
    return refuse(scope, source, delegated, 'rights of a receipt were delegated to an agent outside the store')
  const purchase = await facts.purchaseOfReceipt(nonce)
  if (purchase?.tenant !== scope.tenant) return false
  if (purchase.store_id !== storeId)
    return refuse(scope, source, delegated, 'rights of a receipt of another store were delegated')
  const untilS = (purchase.receipt_exp ?? Math.floor(scope.nowMs / 1_000)) + GUARD_SECONDS
  const named = new Set(ordinals)
  for (const unit of await facts.unitsOf(purchase.purchase_id)) {
    if (unit.receipt_index === null || !named.has(unit.receipt_index)) continue
    const key: UnitKey = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: purchase.purchase_id }
    await storeDelegated(db, { ...key, redemptionId, storeId, agentId, untilS, homeAgentId, homeEpoch })
    await endLease(scope, key, nonce, agentId)
  }
  return true
}

/** Applies an outcome report: the release with delegated rights failed, or its outcome is unknown. */
export async function applyDelegationReturned(
  scope: EvidenceScope,
  source: EvidenceSource,
  row: DelegationReturned,
): Promise<boolean> {
  const { redemptionId, outcome } = row
  const report = await openOutcomeReport(scope, source, row)
  if (!report)
    return refuse(scope, source, row, 'an outcome of delegated rights came without the report of their agent')
  const delegated = await findDelegated(scope.db, redemptionId, source.storeId)
  const matching: DelegatedRightRow[] = []
  for (const right of delegated) if (await isAbout(scope, source, report, right)) matching.push(right)
  // If the receipt home has lost its row about the delegation, the cloud knows no rights under this id, and the report
  // has no effect.
  if (delegated.length > 0 && matching.length === 0)
    return refuse(scope, source, row, 'an outcome report names other rights than the delegated ones')
  await storeDelegationReturned(scope.db, matching, outcome)
  return true
}

/** True if the report concerns this delegated right: same receipt home, epoch, agent, receipt and unit. */
async function isAbout(
  { facts }: EvidenceScope,
  source: EvidenceSource,
  { iss, homeEpoch, cti, rightClass, candidates }: OutcomeReport,
  right: DelegatedRightRow,
): Promise<boolean> {
  if (right.home_epoch !== homeEpoch || right.right_class !== rightClass) return false
  if (!(await facts.isOwn(right.home_agent_id, source))) return false
  if (!(await facts.isOwn(right.agent_id, { agentId: iss, storeId: source.storeId }))) return false
  const purchase = await facts.purchaseOfReceipt(cti)
  if (purchase?.purchase_id !== right.purchase_id) return false
  const unit = await facts.unitOf(right.purchase_id, { lineId: right.line_id, unitNo: right.unit_no })
  return unit !== undefined && unit.receipt_index !== null && candidates.includes(unit.receipt_index)
}

async function refuse(
  scope: EvidenceScope,
  source: EvidenceSource,
  { kind, redemptionId }: Delegated | DelegationReturned,
  detail: string,
): Promise<true> {
  await raiseForeignEvidence(scope, source, { kind, about: redemptionId, detail })
  return true
}
