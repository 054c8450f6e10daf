import type { Evidence } from '../../../policy/journal.ts'
import type { GivenRightRow } from '../../persistence/tables/protection.ts'
import { endLease } from './end-lease.ts'
import type { EvidenceScope, EvidenceSource } from './evidence-scope.ts'
import { raiseForeignEvidence } from './foreign-evidence.ts'
import { findDelegated, storeDelegated, storeDelegationReturned } from '../rights/delegated-rights.ts'
import { openOutcomeReport, type OutcomeReport } from './outcome-report.ts'
import type { UnitKey } from '../rights/rights.ts'

/** What receipt homes report of the rights that they give to other agents. Nobody else may report that: `foreign_evidence`. */
export type Delegated = Extract<Evidence, { kind: 'given' }>
export type DelegationReturned = Extract<Evidence, { kind: 'given_back' }>

/** After a receipt's end by another machine's clock. */
const GUARD_SECONDS = 60

/** A home has given rights to another agent. Answers false when the receipt is unknown: kept, and tried again after an upgrade. */
export async function applyDelegated(
  scope: EvidenceScope,
  witness: EvidenceSource,
  given: Delegated,
): Promise<boolean> {
  const { redemptionId, nonce, rightClass, ordinals, agentId, homeEpoch } = given
  const { agentId: homeAgentId, storeId } = witness
  const { facts, db } = scope
  if (homeAgentId === null || homeEpoch === undefined || !(await facts.isHomeIn(homeEpoch, witness)))
    return refuse(scope, witness, given, 'rights of a receipt were given by an agent that was not its home')
  if (!(await facts.agentsOf(storeId)).includes(agentId))
    return refuse(scope, witness, given, 'rights of a receipt were given to no agent of the store')
  const purchase = await facts.purchaseOfReceipt(nonce)
  if (purchase?.tenant !== scope.tenant) return false
  if (purchase.store_id !== storeId)
    return refuse(scope, witness, given, 'rights of a receipt of another store were given away')
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

/** The asking agent reported to the home that it did not use the rights, or that the outcome is unknown. */
export async function applyDelegationReturned(
  scope: EvidenceScope,
  witness: EvidenceSource,
  row: DelegationReturned,
): Promise<boolean> {
  const { redemptionId, outcome } = row
  const report = await openOutcomeReport(scope, witness, row)
  if (!report) return refuse(scope, witness, row, 'an outcome of given rights came without the report of their agent')
  const given = await findDelegated(scope.db, redemptionId, witness.storeId)
  const meant: GivenRightRow[] = []
  for (const right of given) if (await isAbout(scope, witness, report, right)) meant.push(right)
  // A home that never gave anything under this id has lost the question, or the memory of it.
  if (given.length > 0 && meant.length === 0)
    return refuse(scope, witness, row, 'an outcome report is about other rights than were given')
  await storeDelegationReturned(scope.db, meant, outcome)
  return true
}

/** Whether this agent gave that right, in the epoch and to the agent of the report, which names its unit. */
async function isAbout(
  { facts }: EvidenceScope,
  witness: EvidenceSource,
  { iss, homeEpoch, cti, rightClass, candidates }: OutcomeReport,
  right: GivenRightRow,
): Promise<boolean> {
  if (right.home_epoch !== homeEpoch || right.right_class !== rightClass) return false
  if (!(await facts.isOwn(right.home_agent_id, witness))) return false
  if (!(await facts.isOwn(right.agent_id, { agentId: iss, storeId: witness.storeId }))) return false
  const purchase = await facts.purchaseOfReceipt(cti)
  if (purchase?.purchase_id !== right.purchase_id) return false
  const units = await facts.unitsOf(right.purchase_id)
  const unit = units.find(({ line_id, unit_no }) => line_id === right.line_id && unit_no === right.unit_no)
  return unit !== undefined && unit.receipt_index !== null && candidates.includes(unit.receipt_index)
}

async function refuse(
  scope: EvidenceScope,
  witness: EvidenceSource,
  { kind, redemptionId }: Delegated | DelegationReturned,
  detail: string,
): Promise<true> {
  await raiseForeignEvidence(scope, witness, { kind, about: redemptionId, detail })
  return true
}
