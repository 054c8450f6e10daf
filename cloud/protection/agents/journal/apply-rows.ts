import { sql } from 'kysely'
import { BrokenInvariant } from '../../../../policy/assert.ts'
import { JournalBody, type TillEvidence } from '../../../../policy/journal.ts'
import { Failure } from '../../../platform/foundation/failure.ts'
import { iso, definedFields } from '../../../platform/operations/fields.ts'
import type { Call } from '../../../platform/operations/operation.ts'
import { endsSoon } from '../../../platform/operations/job-steps.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import {
  applyAlarmHandled,
  applyDelegated,
  applyDelegationReturned,
  applyVoid,
} from '../../evidence/apply-delegated.ts'
import { applyClaim } from '../../evidence/apply-claim.ts'
import { applyOutcome } from '../../evidence/apply-outcome.ts'
import {
  finishEvidence,
  openEvidence,
  type EvidenceScope,
  type EvidenceSource,
  raiseForeignEvidence,
} from '../../evidence/evidence-scope.ts'
import { storeEvents, type EventScope } from '../../records/record-event.ts'
import { raiseException, recordReportedException } from '../../records/exceptions.ts'
import type { ProtectionEvent } from '../../../../policy/protection-events.ts'
import type { DeviceType, ItemStatus } from '../../../../policy/vocabulary.ts'
import { returnKeyOf, saleKeyOf } from '../../../../policy/till-sale.ts'
import { raiseForEvent } from '../../../shop/assistance/requests.ts'
import { findAuthorization, unitsOfAuthorization } from '../../leases/authorizations.ts'
import { deviceWorkflow } from '../../store-facts/device-queries.ts'
import { readItem, itemOfEvent, technologiesOf } from '../../items/item-queries.ts'
import { itemAsOf } from '../../rights/past-state.ts'

/** SQL literal, because SQLite would not use the partial index with a parameter. */
export const IS_UNAPPLIED = sql<boolean>`applied = 0`

/** The readable part of a journal row. */
interface ReadRow {
  readonly body: JournalBody
  /** Why the row is invalid. Such a row stays unapplied, and the cloud retries it after an upgrade. */
  readonly fault?: string
}

/**
 * Parses a row. If the row is invalid but its evidence is valid, returns the evidence, so that the cloud does not lease
 * used rights again. The event is dropped until the retry, because the cloud must store an event only once. The cloud
 * may apply the same evidence twice.
 */
export function readRow(body: unknown): ReadRow {
  const whole = JournalBody.safeParse(body)
  if (whole.success) return { body: body as JournalBody }
  const [issue] = whole.error.issues
  const path = [...(issue?.path ?? []), ...(issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 3) : [])].join(
    '.',
  )
  const fault = `${path}: ${issue?.message}`.slice(0, 200).toWellFormed().replaceAll('\0', '')
  const { atMs, evidence } = body as Record<string, unknown>
  const core = evidence === undefined ? undefined : JournalBody.safeParse({ atMs, evidence })
  return { body: core?.success ? core.data : { atMs: 0 }, fault }
}

/**
 * Types of events about the use of a token. Only the agent that may redeem the token may report these events. The set
 * contains no denials, because a denial may name any token that was presented.
 */
const ABOUT_USE: ReadonlySet<string> = new Set(['protection.action.completed', 'protection.action.failed'])

/**
 * Adds facts of the cloud to an agent's event: purchase, line, location of the device, processing time. The caller
 * stores the event. Raises `foreign_evidence` and returns undefined if only another agent or store may report the
 * event.
 */
async function completeAgentEvent(
  scope: EvidenceScope,
  agent: Row<'agent'>,
  reported: ProtectionEvent,
  processedAt: string,
): Promise<ProtectionEvent | undefined> {
  // Discards the agent's purchase id, because only the cloud knows the purchase.
  const { purchaseId: _, ...event } = reported
  const foreign = await foreignIn(scope, agent, event)
  if (foreign !== undefined) {
    const source = { agentId: agent.agent_id, storeId: agent.store_id }
    const detail = `an agent reported an event about ${foreign}`
    await raiseForeignEvidence(scope, source, { kind: event.type, about: event.eventId, detail })
    return undefined
  }
  const device = event.deviceId === undefined ? undefined : await scope.facts.device(event.deviceId)
  const store = await scope.facts.store(agent.store_id)
  const place = device && {
    deviceType: device.device_type as DeviceType,
    workflowType: deviceWorkflow(device, store),
    zoneId: device.zone_id,
    laneId: device.lane_id,
    gateId: device.gate_id,
    firmwareVersion: device.firmware_version,
  }
  const { item: tokenItem, ...about } =
    event.replayProtectedNonce === undefined ? {} : await factsOfNonce(scope, event.replayProtectedNonce)
  const item = tokenItem ?? (await itemOfEvent(scope.db, scope.tenant, event))
  const sale = item && (await saleOf(scope, item, reported))
  const tag = technologiesOf({ item, device, store, ...tagOf(event, item) })
  // On Node 20, an object literal with three spreads takes up to forty times as long as `Object.assign`.
  const completed: ProtectionEvent = Object.assign(
    definedFields(Object.assign({}, place, about, sale && withSale(about, sale))),
    tag,
    event,
    { storeId: agent.store_id, processedAt },
  )
  await recordReportedException(scope, completed, agent.agent_id)
  await raiseForEvent(scope, completed, Date.parse(completed.occurredAt))
  return completed
}

type Sale = Pick<NonceFacts, 'purchaseId' | 'itemLineId' | 'itemStatus'>

/** Status, purchase and line of the item when the event occurred. */
async function saleOf(
  { db }: EvidenceScope,
  item: Row<'protected_item'>,
  { occurredAt }: ProtectionEvent,
): Promise<Sale> {
  const atMs = Date.parse(occurredAt)
  const then = item.updated_ms <= atMs ? item : await itemAsOf(db, item, atMs)
  return {
    purchaseId: then.purchase_id,
    itemLineId: then.line_id,
    itemStatus: then.item_status as ItemStatus,
  }
}

/** Adds what the token or receipt of the event does not name. An item of another purchase has another line. */
function withSale(about: NonceFacts, { purchaseId, itemLineId, itemStatus }: Sale): Sale {
  const isSame = (about.purchaseId ?? purchaseId) === purchaseId
  return {
    itemStatus: about.itemStatus ?? itemStatus ?? null,
    purchaseId: about.purchaseId ?? purchaseId ?? null,
    itemLineId: about.itemLineId ?? (isSame ? (itemLineId ?? null) : null),
  }
}

/** If the event names a device, receipt or token of another store or agent, returns a text that describes it. */
async function foreignIn(
  { db, tenant, facts }: EvidenceScope,
  { agent_id: agentId, store_id: storeId }: Row<'agent'>,
  { type, deviceId, replayProtectedNonce: nonce }: ProtectionEvent,
): Promise<string | undefined> {
  const device = deviceId === undefined ? undefined : await facts.device(deviceId)
  if (device && device.store_id !== storeId) return 'a device of another store'
  if (nonce === undefined) return undefined
  if (!(await facts.isAuthorization(nonce))) {
    const purchase = await facts.purchaseOfReceipt(nonce)
    return purchase?.tenant === tenant && purchase.store_id !== storeId ? 'a receipt of another store' : undefined
  }
  if (!ABOUT_USE.has(type)) return undefined
  const row = await findAuthorization(db, nonce)
  const isOwn = row?.tenant === tenant && (await facts.isOwn(row.agent_id, { agentId, storeId }))
  return isOwn ? undefined : 'a token of another agent'
}

/** Returns the EPC and UID in the event, or those of its item if the event has neither. */
function tagOf({ epc, tagUid, protectionAction }: ProtectionEvent, item: Row<'protected_item'> | undefined) {
  const isNamed = epc !== undefined || tagUid !== undefined
  return {
    epc: epc ?? (isNamed ? undefined : (item?.epc ?? undefined)),
    tagUid: tagUid ?? (isNamed ? undefined : (item?.tag_uid ?? undefined)),
    protectionAction,
  }
}

interface NonceFacts extends Partial<Record<'purchaseId' | 'itemLineId' | 'epc' | 'tagUid' | 'tagId', string | null>> {
  itemStatus?: ItemStatus | null
  item?: Row<'protected_item'> | undefined
}

async function factsOfNonce({ db, tenant, facts }: EvidenceScope, nonce: string): Promise<NonceFacts> {
  if (!(await facts.isAuthorization(nonce))) {
    const purchase = await facts.purchaseOfReceipt(nonce)
    return purchase?.tenant === tenant ? { purchaseId: purchase.purchase_id } : {}
  }
  const row = await findAuthorization(db, nonce)
  // A nonce of another tenant adds no facts.
  if (row?.tenant !== tenant) return {}
  const units = await unitsOfAuthorization(db, nonce)
  const item = row.item_id === null ? undefined : await readItem(db, row.item_id)
  const isOne = row.count === 1 && row.purchase_id !== null
  return {
    purchaseId: row.purchase_id,
    itemLineId: isOne ? (units[0]?.line_id ?? null) : null,
    itemStatus: (item?.item_status as ItemStatus | undefined) ?? null,
    epc: item?.epc ?? null,
    tagUid: item?.tag_uid ?? null,
    tagId: item?.tag_id ?? null,
    item,
  }
}

/**
 * The cloud applies a row completely or not at all, and a failing row does not affect others. The cloud first applies
 * all rows of a batch in one savepoint, so that it reads and writes shared facts only once. If a row fails, the cloud
 * rolls back and applies each row in its own savepoint. Each report of a till has a savepoint of its own.
 */
export type IngestCall = Call

/** Evidence that returns or voids goods, so the rows before it must be complete. */
const TILL_KINDS: ReadonlySet<string | undefined> = new Set<TillEvidence['kind']>([
  'sale',
  'sale_void',
  'sale_return',
  'sale_piece',
])
const isOfTill = ({ evidence }: JournalBody) => TILL_KINDS.has(evidence?.kind)

/**
 * Applies rows in order. Returns for each row whether it was applied, and leaves out rows that need another transaction,
 * because reports of tills took long.
 */
export async function applyRows(
  call: IngestCall,
  agent: Row<'agent'>,
  bodies: readonly JournalBody[],
): Promise<boolean[]> {
  const isOver = endsSoon(call.services.platform.clock)
  const applied: boolean[] = []
  for (let from = 0; from < bodies.length && (from === 0 || !isOver()); from = applied.length) {
    const next = bodies.findIndex((body, n) => n >= from && isOfTill(body))
    const to = next < 0 ? bodies.length : Math.max(next, from + 1)
    applied.push(...(await applyTogether(call, agent, bodies.slice(from, to))))
  }
  return applied
}

async function applyTogether(
  call: IngestCall,
  agent: Row<'agent'>,
  bodies: readonly JournalBody[],
): Promise<boolean[]> {
  const together = await attempt(call, agent, bodies)
  if (!(together instanceof Error)) return together
  if (bodies.length > 1) {
    const applied: boolean[] = []
    for (const body of bodies) applied.push(...(await applyTogether(call, agent, [body])))
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
async function attempt(
  call: IngestCall,
  agent: Row<'agent'>,
  bodies: readonly JournalBody[],
): Promise<boolean[] | Error> {
  const { db } = call
  const deferred: (() => void)[] = []
  const emit: Call['emit'] = (event) => void deferred.push(() => call.emit(event))
  const afterCommit: Call['afterCommit'] = (task) => void deferred.push(() => call.afterCommit(task))
  const scope = openEvidence({ ...call, emit, afterCommit }, agent.tenant)
  await save.execute(db)
  try {
    const applied = await applyAll(call, scope, agent, bodies)
    await release.execute(db)
    for (const run of deferred) run()
    return applied
  } catch (error) {
    if (!isFaultOfRow(error)) throw error
    await undo.execute(db)
    await release.execute(db)
    return error
  }
}

/** Errors that the row causes each time, so that it must not stop the rows behind it: refusals, broken rules, our faults. */
const FAULTS_OF_ROWS = [Failure, BrokenInvariant, TypeError, RangeError]
/**
 * Values that a database refuses: SQLite by name, PostgreSQL by the classes 21 to 23 of SQLSTATE. The latter's unique
 * violation may be a conflict, after which the transaction runs again.
 */
const REFUSED_VALUES = /^(?:SQLITE_(?:CONSTRAINT|MISMATCH|TOOBIG)|2[12][0-9A-Z]{3}$|23(?!505)[0-9A-Z]{3}$)/

function isFaultOfRow(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  const code = 'code' in error ? String(error.code) : ''
  return FAULTS_OF_ROWS.some((kind) => error instanceof kind) || REFUSED_VALUES.test(code)
}

async function applyAll(
  call: IngestCall,
  scope: EvidenceScope,
  agent: Row<'agent'>,
  bodies: readonly JournalBody[],
): Promise<boolean[]> {
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
    const isKnown = body.evidence?.kind === 'alarm_handled' || (await applyEvidence(call, scope, agent, body))
    const event = body.event && (await completeAgentEvent(scope, agent, body.event, processedAt))
    if (event) events.push(event)
    if (!isKnown) await raiseUnapplied(scope, agent, body)
    applied.push(isKnown)
  }
  await finishEvidence(scope)
  await storeEvents(scope, events)
  for (const [i, body] of bodies.entries()) {
    if (body.evidence?.kind !== 'alarm_handled') continue
    const isKnown = await applyEvidence(call, scope, agent, body)
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
  call: IngestCall,
  scope: EvidenceScope,
  agent: Row<'agent'>,
  { atMs, evidence, event }: JournalBody,
): Promise<boolean> {
  if (!evidence) return true
  const source: EvidenceSource & { agentId: string } = {
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
      return applyVoid(scope, source, agent, evidence.nonce)
    case 'delegated':
      return applyDelegated(scope, source, evidence)
    case 'delegation_returned':
      return applyDelegationReturned(scope, source, evidence)
    case 'alarm_handled':
      return applyAlarmHandled(scope, source, evidence)
    case 'sale':
    case 'sale_void':
    case 'sale_return':
    case 'sale_piece':
      return call.services.applyTill(
        { ...call, emit: scope.emit, afterCommit: scope.afterCommit },
        source,
        evidence,
        await storedMsOf(scope, agent, atMs),
      )
  }
}

/**
 * Time at which an agent stored a row, for the order of sales and returns. The clock of its machine may have been ahead:
 * no row is from the future, and none is earlier than a row of the same journal that came before it.
 */
async function storedMsOf({ db, nowMs }: EvidenceScope, agent: Row<'agent'>, atMs: number): Promise<number> {
  if (atMs <= nowMs) return Math.max(atMs, agent.ahead_ms ?? 0)
  if (agent.ahead_ms !== nowMs)
    await db.updateTable('agent').set({ ahead_ms: nowMs }).where('agent_id', '=', agent.agent_id).execute()
  agent.ahead_ms = nowMs
  return nowMs
}

/** Returns the key of this row's `unapplied` exception. */
export function unappliedKey(agent: Row<'agent'>, { evidence }: JournalBody): string {
  if (!evidence) return agent.agent_id
  if (evidence.kind === 'alarm_handled') return evidence.eventId
  if (evidence.kind === 'sale') return saleKeyOf(agent.store_id, evidence.sale)
  if (evidence.kind === 'sale_void') return saleKeyOf(agent.store_id, evidence)
  if (evidence.kind === 'sale_piece') return `${evidence.sale}/${evidence.epc}`
  if (evidence.kind === 'sale_return') return returnKeyOf(agent.store_id, evidence.return)
  return 'redemptionId' in evidence ? evidence.redemptionId : evidence.nonce
}

const UNKNOWN = 'an agent reported a token, receipt, sale or alarm that this cloud does not know'

/** Raises `unapplied` for a row that the cloud stores but cannot apply. */
export async function raiseUnapplied(
  scope: EventScope,
  agent: Row<'agent'>,
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
