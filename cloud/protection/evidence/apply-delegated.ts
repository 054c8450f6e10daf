import type { Evidence, AlarmHandled } from '../../../policy/journal.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import {
  endLease,
  freeLeases,
  type EvidenceScope,
  type EvidenceSource,
  raiseForeignEvidence,
  raiseAuthorizationExceptions,
} from './evidence-scope.ts'
import { findDelegated, storeDelegated, storeDelegationReturned } from '../rights/delegated-rights.ts'
import type { UnitKey } from '../rights/rights.ts'
import { decodeUnverifiedClaims, openDocument } from '../../../policy/documents/signed-document.ts'
import { HomeRequest } from '../../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { currentAndFormerKeys } from '../agent-identity/agent-keys.ts'
import { findAgent } from '../agent-identity/sessions.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { acknowledgeAlarm, findAlarm, writeDisposition } from '../records/alarm-queries.ts'
import { findAuthorization, ledgerName, updateAuthorization } from '../leases/authorizations.ts'

type LedgerState = Pick<Row<'agent'>, 'ledger_id' | 'generation' | 'fork_ms'>

/**
 * Applies a void: the agent will never honour this token, so the lease ends. Without effect if another copy of the ledger
 * may have used the token: the ledger is forked, or the token is for an earlier generation. The lease then ends with the
 * token.
 */
export async function applyVoid(
  scope: EvidenceScope,
  source: EvidenceSource,
  agent: LedgerState,
  nonce: string,
): Promise<boolean> {
  const row = await findAuthorization(scope.db, nonce)
  if (row?.tenant !== scope.tenant) return false
  if (!(await scope.facts.isOwn(row.agent_id, source))) {
    const detail = `a token was voided that is not this agent's`
    await raiseForeignEvidence(scope, source, { kind: 'void', about: nonce, detail })
    return true
  }
  if (agent.fork_ms !== null || row.ledger !== ledgerName(agent)) return true
  // Stores the earliest void, because voids may arrive in any order.
  const voidedMs = Math.min(row.voided_ms ?? source.atMs, source.atMs)
  if (voidedMs === row.voided_ms) return true
  const voided = await updateAuthorization(scope.db, row, {
    voided_ms: voidedMs,
    revoked_ms: Math.min(row.revoked_ms ?? voidedMs, voidedMs),
  })
  await raiseAuthorizationExceptions(scope, voided)
  await freeLeases(scope, voided)
  return true
}

/**
 * Applies what an operator did about an alarm at a gate's display. Only the agent of the gate may report it. Returns
 * false if the cloud does not know the alarm (yet).
 *
 * Its time is the trusted time of the agent, but at most now: an agent must not outlast later dispositions.
 */
export async function applyAlarmHandled(
  scope: EvidenceScope,
  source: EvidenceSource,
  { eventId, step, operatorId, recoveredCent }: AlarmHandled,
): Promise<boolean> {
  const { db, tenant, facts, nowMs } = scope
  const alarm = await findAlarm(db, tenant, eventId)
  if (!alarm) return false
  const { deviceId } = JSON.parse(alarm.body) as ProtectionEvent
  const gate = deviceId === undefined ? undefined : await facts.device(deviceId)
  if (!gate || alarm.store_id !== source.storeId || !(await facts.isOwn(gate.agent_id, source))) {
    const detail = 'an agent handled an alarm of a gate that is not its own'
    await raiseForeignEvidence(scope, source, { kind: 'alarm_handled', about: eventId, detail })
    return true
  }
  const atMs = Math.min(source.atMs, nowMs)
  const storeId = alarm.store_id
  if (step === 'acknowledged') {
    await acknowledgeAlarm(db, { storeId, eventId, by: operatorId, atMs })
    return true
  }
  await writeDisposition(db, {
    earlier: null,
    event_id: eventId,
    tenant,
    store_id: storeId,
    disposition: step,
    operator_id: operatorId,
    recovered_cent: step === 'real' ? (recoveredCent ?? null) : null,
    disposed_ms: atMs,
  })
  return true
}

/** Signed outcome report to a receipt home about delegated rights: a home request (`ask+jwt`) with an outcome. */
type OutcomeReport = HomeRequest

/** Receipt home that forwards the report. */
interface Forwarder {
  agentId: string | null
  storeId: string
}

/**
 * Verifies an outcome report. The report must match the row, and name this receipt home and one of its epochs. An agent
 * of the store must have signed the report with a current or former key. Returns undefined if the report is invalid, or
 * if it comes from a revoked agent without a successor.
 */
async function openOutcomeReport(
  { db, facts, tenant, nowMs }: EvidenceScope,
  home: Forwarder,
  { redemptionId, outcome, report }: { redemptionId: string; outcome: string; report?: string | undefined },
): Promise<OutcomeReport | undefined> {
  if (report === undefined) return undefined
  const { iss, aud } = decodeUnverifiedClaims(report)
  if (typeof iss !== 'string' || typeof aud !== 'string') return undefined
  const agent = await findAgent(db, iss)
  if (agent?.tenant !== tenant || agent.store_id !== home.storeId) return undefined
  if (agent.revoked_ms !== null && agent.replaced_by === null) return undefined
  // A re-enrolled receipt home forwards reports that its predecessor received.
  if (!(await facts.isOwn(aud, home))) return undefined
  // Does not check times, because the receipt home may forward a report long after it was signed.
  const opened = openDocument<HomeRequest>(report, DOCUMENT_KINDS.homeRequest, {
    keys: await currentAndFormerKeys(db, agent, nowMs),
    audience: aud,
  })
  const claims = opened.ok ? HomeRequest.safeParse(opened.claims).data : undefined
  if (claims?.redemptionId !== redemptionId || claims.outcome !== outcome) return undefined
  return (await facts.isHomeIn(claims.homeEpoch, home)) ? claims : undefined
}

/**
 * Reports of receipt homes about delegated rights. A report from another agent raises `foreign_evidence` (ADR leases).
 */
type Delegated = Extract<Evidence, { kind: 'delegated' }>
type DelegationReturned = Extract<Evidence, { kind: 'delegation_returned' }>

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
  const matching: Row<'delegated_right'>[] = []
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
  right: Row<'delegated_right'>,
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
