import { sql } from 'kysely'
import { BrokenInvariant } from '../../../policy/assert.ts'
import type { JournalBody } from '../../../policy/journal.ts'
import { Failure } from '../../foundation/failure.ts'
import { iso } from '../../operations/fields.ts'
import type { Call } from '../../operations/operation.ts'
import type { AgentRow } from '../../persistence/tables/agents.ts'
import { applyAlarmHandled } from '../../protection/evidence/apply-alarm-handled.ts'
import { applyClaim } from '../../protection/evidence/apply-claim.ts'
import { applyOutcome } from '../../protection/evidence/apply-outcome.ts'
import { applyVoid } from '../../protection/evidence/apply-void.ts'
import { applyDelegated, applyDelegationReturned } from '../../protection/evidence/apply-delegated.ts'
import {
  finishEvidence,
  openEvidence,
  type EvidenceScope,
  type EvidenceSource,
} from '../../protection/evidence/evidence-scope.ts'
import { storeEvents, type EventScope } from '../../protection/records/record-event.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { completeAgentEvent } from './agent-event.ts'

/**
 * The cloud applies a row completely or not at all, and a failing row does not affect others. The cloud first applies
 * all rows of a batch in one savepoint, so that the cloud reads and writes shared facts only once. If a row fails, the
 * cloud rolls back and applies each row in its own savepoint.
 */
export type IngestCall = Pick<Call, 'db' | 'services' | 'nowMs' | 'emit' | 'afterCommit'>

/** Applies rows in order. Returns for each row whether it was applied. */
export async function applyRows(call: IngestCall, agent: AgentRow, bodies: readonly JournalBody[]): Promise<boolean[]> {
  if (bodies.length === 0) return []
  const together = await attempt(call, agent, bodies)
  if (!(together instanceof Error)) return together
  if (bodies.length > 1) {
    const applied: boolean[] = []
    for (const body of bodies) applied.push(...(await applyRows(call, agent, [body])))
    return applied
  }
  call.services.log.error({ agentId: agent.agent_id, err: together }, 'a journal row could not be applied')
  for (const body of bodies)
    await raiseUnapplied(
      { db: call.db, tenant: agent.tenant, platform: call.services.platform, nowMs: call.nowMs },
      agent,
      body,
    )
  return [false]
}

const save = sql`SAVEPOINT journal_rows`
const release = sql`RELEASE SAVEPOINT journal_rows`
const undo = sql`ROLLBACK TO SAVEPOINT journal_rows`

/**
 * If a row throws, rolls all rows back and returns the error. Otherwise returns for each row whether it was applied,
 * emits the events and schedules the tasks.
 */
async function attempt(call: IngestCall, agent: AgentRow, bodies: readonly JournalBody[]): Promise<boolean[] | Error> {
  const { db } = call
  const deferred: (() => void)[] = []
  const emit: Call['emit'] = (event) => void deferred.push(() => call.emit(event))
  const afterCommit: Call['afterCommit'] = (task) => void deferred.push(() => call.afterCommit(task))
  const scope = openEvidence({ ...call, emit, afterCommit }, agent.tenant)
  await save.execute(db)
  try {
    const applied = await applyAll(scope, agent, bodies)
    await release.execute(db)
    for (const run of deferred) run()
    return applied
  } catch (error) {
    if (!(error instanceof Failure) && !(error instanceof BrokenInvariant)) throw error
    await undo.execute(db)
    await release.execute(db)
    return error
  }
}

async function applyAll(scope: EvidenceScope, agent: AgentRow, bodies: readonly JournalBody[]): Promise<boolean[]> {
  const lineIds = await scope.facts.prepare(noncesOf(bodies))
  // Without `prepare`, several rows would read the same redemptions repeatedly. For a single row, `prepare` would not
  // reduce the number of reads.
  if (bodies.length > 1)
    await scope.redemptions.prepare(
      bodies.flatMap(({ evidence }) => (evidence && 'redemptionId' in evidence ? evidence.redemptionId : [])),
      lineIds,
    )
  const applied: boolean[] = []
  const events = []
  const processedAt = iso(scope.nowMs)
  for (const body of bodies) {
    // An alarm may be in the same batch, so the cloud applies these rows when it has stored the events.
    const isKnown = body.evidence?.kind === 'alarm_handled' || (await applyEvidence(scope, agent, body))
    const event = body.event && (await completeAgentEvent(scope, agent, body.event, processedAt))
    if (event) events.push(event)
    if (!isKnown) await raiseUnapplied(scope, agent, body)
    applied.push(isKnown)
  }
  await finishEvidence(scope)
  await storeEvents(scope, events)
  for (const [i, body] of bodies.entries()) {
    if (body.evidence?.kind !== 'alarm_handled') continue
    const isKnown = await applyEvidence(scope, agent, body)
    if (!isKnown) await raiseUnapplied(scope, agent, body)
    applied[i] = isKnown
  }
  return applied
}

function noncesOf(bodies: readonly JournalBody[]): Set<string> {
  const nonces = new Set<string>()
  for (const { evidence, event } of bodies) {
    if (evidence && 'nonce' in evidence) nonces.add(evidence.nonce)
    if (event?.replayProtectedNonce !== undefined) nonces.add(event.replayProtectedNonce)
  }
  return nonces
}

async function applyEvidence(
  scope: EvidenceScope,
  agent: AgentRow,
  { atMs, evidence, event }: JournalBody,
): Promise<boolean> {
  if (!evidence) return true
  const source: EvidenceSource = {
    agentId: agent.agent_id,
    storeId: agent.store_id,
    atMs,
    eventId: event?.eventId ?? '',
  }
  switch (evidence.kind) {
    case 'claim':
      return applyClaim(scope, source, evidence)
    case 'outcome':
      return applyOutcome(scope, source, evidence.redemptionId, evidence.outcome)
    case 'void':
      return applyVoid(scope, source, evidence.nonce)
    case 'delegated':
      return applyDelegated(scope, source, evidence)
    case 'delegation_returned':
      return applyDelegationReturned(scope, source, evidence)
    case 'alarm_handled':
      return applyAlarmHandled(scope, source, evidence)
  }
}

/** Returns the key of this row's `unapplied` exception. */
export function unappliedKey(agent: AgentRow, { evidence }: JournalBody): string {
  if (!evidence) return agent.agent_id
  if (evidence.kind === 'alarm_handled') return evidence.eventId
  return 'redemptionId' in evidence ? evidence.redemptionId : evidence.nonce
}

const UNKNOWN = 'an agent reported a token, receipt or alarm that this cloud does not know'

/** Raises `unapplied` for a row that the cloud stores but cannot apply. */
export async function raiseUnapplied(
  scope: EventScope,
  agent: AgentRow,
  body: JournalBody,
  detail = UNKNOWN,
): Promise<void> {
  await raiseException(scope, {
    storeId: agent.store_id,
    kind: 'unapplied',
    subject: unappliedKey(agent, body),
    detail,
  })
}
