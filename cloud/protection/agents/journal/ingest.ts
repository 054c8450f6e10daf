import {
  CLOUD_AUDIENCE,
  UNAPPLIED_LIMIT,
  UncheckedBatchClaims,
  type AckClaims,
} from '../../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import type { VerificationKey } from '../../../../policy/documents/keys.ts'
import { openDocument, signDocument } from '../../../../policy/documents/signed-document.ts'
import { validationFindings, findingMessage } from '../../../../policy/validation-findings.ts'
import { rowHash, type JournalBody, type UncheckedRow } from '../../../../policy/journal.ts'
import { type AgentCaller, knownCaller } from '../../../platform/foundation/caller.ts'
import { Failure, invalid, precondition } from '../../../platform/foundation/failure.ts'
import { type Call, operation } from '../../../platform/operations/operation.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { insertChunks, prepared, preparedInsert } from '../../../platform/persistence/prepared.ts'
import { raiseException, recordReportedException } from '../../records/exceptions.ts'
import { endMoves } from '../../devices/move-device.ts'
import { applyRows, IS_UNAPPLIED, raiseUnapplied, readRow } from './apply-rows.ts'
import { ADJUSTMENT_EVENTS, EARNING_EVENTS } from '../../../shop/loyalty/ledger.ts'
import { itemsHead } from '../documents/item-pages.ts'
import { agentKeys, promoteNextKey } from '../../agent-identity/agent-keys.ts'
import { forkKey, markForked } from '../../agent-identity/agent-queries.ts'
import { findAgent } from '../../agent-identity/sessions.ts'
import { z } from 'zod'
import { ProtectionEvent } from '../../../../policy/protection-events.ts'
import { normaliseIdentifiers } from '../../../../policy/item-identifiers.ts'
import { raiseForEvent } from '../../../shop/assistance/requests.ts'
import { iso, Success } from '../../../platform/operations/fields.ts'
import { storeEvent } from '../../records/record-event.ts'
import { ownStore } from '../../../platform/stores/own-store.ts'

/**
 * Receives a batch of journal rows: verifies signature, ledger and hash chain, applies and stores the new rows, and
 * signs an acknowledgement of the rows that it stored: of a batch with much work, the first ones.
 *
 * The cloud stores every correctly signed row once. A row that cannot be applied does not block later rows (promise
 * P3).
 */
async function ingestBatch(
  call: Call,
  caller: AgentCaller,
  batch: string,
): Promise<{ accepted: number; duplicates: number; ack: string }> {
  const agent = await findAgent(call.db, caller.agentId)
  if (!agent || agent.revoked_ms !== null) throw new Failure('unauthenticated', 'this agent is no longer enrolled')
  const { claims, key } = openBatch(agent, batch)
  await promoteNextKey(call.db, agent, key, call.nowMs)
  if (claims.seqFrom > agent.last_seq + 1 && !(await isGapFinal(call, agent, claims)))
    return { accepted: 0, duplicates: 0, ack: await acknowledge(call, agent) }
  const texts = await checkChain(call, agent, claims)

  const isNew = ({ seq }: UncheckedRow) => seq > agent.last_seq
  const unknown = claims.events.flatMap((row, i) =>
    isNew(row) ? [{ row, text: texts[i] as string, ...readRow(row.body) }] : [],
  )
  const applied = await applyRows(
    call,
    agent,
    unknown.map(({ body }) => body),
  )
  // The agent sends rows again that are not acknowledged.
  const fresh = unknown.slice(0, applied.length)
  const scope = { db: call.db, tenant: agent.tenant, platform: call.services.platform, nowMs: call.nowMs }
  for (const { row, body, fault } of fresh) {
    if (fault !== undefined)
      await raiseUnapplied(scope, agent, body, `row ${row.seq} of an agent cannot be read: ${fault}`)
  }
  const rows = fresh.map(({ row, body, text, fault }, i) => ({
    ledger_id: agent.ledger_id,
    generation: agent.generation,
    seq: row.seq,
    agent_id: agent.agent_id,
    hash: row.hash,
    body: text,
    applied: applied[i] && fault === undefined ? 1 : 0,
    received_ms: call.nowMs,
    about: aboutOf(body),
  }))
  for (const chunk of insertChunks(rows)) await insertRows(call.db, chunk)
  // A device may move to another agent once its last token is voided.
  if (fresh.some(({ body }) => body.evidence?.kind === 'void')) await endMoves(call, agent.store_id)
  const last = fresh.at(-1)?.row
  const head = last
    ? { last_seq: last.seq, head_hash: last.hash }
    : { last_seq: agent.last_seq, head_hash: agent.head_hash }
  await writeHead(call.db, { agentId: agent.agent_id, seq: head.last_seq, hash: head.head_hash })
  return {
    accepted: fresh.length,
    duplicates: claims.events.length - unknown.length,
    ack: await acknowledge(call, { ...agent, ...head }),
  }
}

/**
 * If the missing rows are lost, returns true and raises `ledger_gap`. The agent deleted these rows after an
 * acknowledgement. Either the cloud has since lost the acknowledged rows, or a stolen key signed the acknowledgement.
 * Only a batch that starts with the agent's oldest row proves a gap; a batch out of order does not.
 */
async function isGapFinal(
  call: Call,
  agent: Row<'agent'>,
  { seqFrom, resync }: UncheckedBatchClaims,
): Promise<boolean> {
  const { authority, platform } = call.services
  if (resync?.cloudGeneration !== authority.cloudGeneration || resync.oldest !== seqFrom) return false
  const scope = { db: call.db, tenant: agent.tenant, platform, nowMs: call.nowMs }
  const why =
    agent.resync === null ? 'were acknowledged, but not by this cloud,' : 'were lost with the cloud that was restored'
  const detail = `rows ${agent.last_seq + 1} to ${seqFrom - 1} ${why}, and the agent has deleted them`
  await raiseException(scope, {
    storeId: agent.store_id,
    kind: 'ledger_gap',
    subject: `${agent.agent_id}/${agent.generation}/${seqFrom}`,
    detail,
  })
  return true
}

/** Identity of the receipt, or nonce of the token, that a row is about. */
function aboutOf({ evidence }: JournalBody): string | null {
  if (evidence === undefined) return null
  if (evidence.kind === 'claim') return evidence.receipt?.cti ?? evidence.nonce
  // The identity of a sale is that of its receipt.
  if (evidence.kind === 'sale_piece') return evidence.sale
  return 'nonce' in evidence ? evidence.nonce : null
}

const insertRows = preparedInsert((db, rows: readonly Row<'journal_row'>[]) =>
  db.insertInto('journal_row').values(rows),
)
const writeHead = prepared((db, p: { agentId: string; seq: number; hash: string }) =>
  db.updateTable('agent').set({ last_seq: p.seq, head_hash: p.hash }).where('agent_id', '=', p.agentId),
)

function openBatch(agent: Row<'agent'>, batch: string): { claims: UncheckedBatchClaims; key: VerificationKey } {
  const keys = agentKeys(agent)
  // Does not check the time of the batch: an agent's clock may be wrong after a long time offline.
  const opened = openDocument<UncheckedBatchClaims>(batch, DOCUMENT_KINDS.events, { keys, audience: CLOUD_AUDIENCE })
  if (!opened.ok) throw invalid('batch', `is refused: ${opened.fault} (${opened.detail})`, opened.fault)
  const claims = UncheckedBatchClaims.safeParse(opened.claims)
  if (!claims.success)
    throw invalid(
      'batch',
      `has a wrong claim: ${validationFindings(claims.error.issues, opened.claims).slice(0, 1).map(findingMessage).join('')}`,
      'claims_invalid',
    )
  // Uses the signed claims: parsing may reorder fields, and the hashes depend on their order.
  const data = opened.claims as UncheckedBatchClaims
  if (data.iss !== agent.agent_id || data.ledger !== agent.ledger_id)
    throw invalid('batch', 'belongs to another ledger', 'wrong_ledger')
  if (data.generation !== agent.generation)
    throw precondition('ledger_generation', `the ledger is at generation ${agent.generation}`)
  const numbered =
    data.events.every((row, i) => row.seq === data.seqFrom + i) && data.seqTo === data.seqFrom + data.events.length - 1
  if (!numbered) throw invalid('batch', 'has gaps in its row numbers', 'gap')
  return { claims: data, key: opened.key }
}

/**
 * Checks that the rows continue the stored hash chain. A different hash for a stored row proves a second copy of the
 * ledger. Returns the hashed text of each row.
 */
async function checkChain(call: Call, agent: Row<'agent'>, claims: UncheckedBatchClaims): Promise<string[]> {
  const texts: string[] = []
  let previous = claims.after
  for (const { seq, hash, body } of claims.events) {
    const text = JSON.stringify(body)
    texts.push(text)
    if (rowHash(previous, seq, text) !== hash)
      throw invalid('batch', `row ${seq} does not continue the chain`, 'broken_chain')
    previous = hash
  }
  // The chain is valid, so one comparison with the last stored row proves all earlier rows.
  const last = claims.events.findLast((row) => row.seq <= agent.last_seq) ?? {
    seq: claims.seqFrom - 1,
    hash: claims.after,
  }
  const known = await knownHash(call, agent, last.seq)
  if (known !== undefined && known !== last.hash) {
    const { tenant, store_id: storeId, agent_id: agentId } = agent
    const { platform, agents } = call.services
    throw precondition(
      'ledger_fork',
      'the ledger contradicts earlier rows, so it exists twice: decide with resolveAgentFork',
      {
        afterRefusal: async (db) => {
          const fork = await markForked(db, agent, call.nowMs)
          if (!fork) return undefined
          const detail =
            'two copies of one ledger report: each claim needs the cloud until you decide with resolveAgentFork'
          await raiseException(
            { db, tenant, platform, nowMs: call.nowMs },
            { storeId, kind: 'agent_fork', subject: forkKey(agentId, fork.forkMs), detail },
          )
          // The other copy, if it is connected, sends its rows. Only once, because they are refused, too.
          return fork.isNew ? () => agents.sendCommand({ storeId, agentId }, { command: 'sync' }) : undefined
        },
      },
    )
  }
  return texts
}

/** Hash of a stored row of the agent's current generation. */
export async function knownHash(
  { db }: Pick<Call, 'db'>,
  agent: Row<'agent'>,
  seq: number,
): Promise<string | undefined> {
  if (seq === agent.last_seq) return agent.head_hash
  const row = await db
    .selectFrom('journal_row')
    .select('hash')
    .where('ledger_id', '=', agent.ledger_id)
    .where('generation', '=', agent.generation)
    .where('seq', '=', seq)
    .executeTakeFirst()
  return row?.hash
}

/** How long a report of a till whose row cannot be applied stays in force at its agent, ms: as at the other agents. */
const REPORT_LIFE_MS = 80 * 3_600_000

const newestUnapplied = prepared((db, p: { agentId: string; generation: number; sinceMs: number }) =>
  db
    .selectFrom('journal_row')
    .select('seq')
    .where('agent_id', '=', p.agentId)
    .where('generation', '=', p.generation)
    .where(IS_UNAPPLIED)
    .where('received_ms', '>=', p.sinceMs)
    .orderBy('seq', 'desc')
    .limit(UNAPPLIED_LIMIT),
)

/**
 * Signs an acknowledgement that all rows up to the head are durable. The cloud sends the acknowledgement after the
 * commit.
 */
async function acknowledge({ db, services, nowMs }: Call, agent: Row<'agent'>): Promise<string> {
  const { authority } = services
  const { epoch, ver } = await itemsHead(db, agent.store_id, services)
  const unapplied = await newestUnapplied(db, {
    agentId: agent.agent_id,
    generation: agent.generation,
    sinceMs: nowMs - REPORT_LIFE_MS,
  })
  const iat = Math.floor(authority.clock.nowMs() / 1_000)
  const claims: AckClaims = {
    aud: agent.agent_id,
    iat,
    exp: iat + 3_600,
    ledger: agent.ledger_id,
    generation: agent.generation,
    seq: agent.last_seq,
    head: agent.head_hash,
    ...(authority.cloudGeneration > 1 && { cloudGeneration: authority.cloudGeneration }),
    items: [epoch, ver],
    ...(unapplied.length > 0 && { unapplied: unapplied.map(({ seq }) => Number(seq)) }),
  }
  return signDocument(DOCUMENT_KINDS.ack, claims, authority.freshnessSigner)
}

const EVENTS_LIMIT = 500
const BULK_BODY_LIMIT = 2 * 1024 * 1024

export const reportProtectionEvents = operation({
  name: 'reportProtectionEvents',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Stores protection events of a merchant’s own devices, or a signed batch of an agent’s journal.',
  description:
    '`eventId` identifies an event within the account; a repeated event changes nothing. The response to a batch contains a signed `ack` for all rows that are durable.',
  callers: ['secret', 'agent'],
  refusals: ['ledger_generation', 'ledger_fork'],
  changes: true,
  bodyLimit: BULK_BODY_LIMIT,
  request: z.strictObject({
    events: z
      .array(ProtectionEvent.omit({ processedAt: true }))
      .max(EVENTS_LIMIT)
      .optional(),
    batch: z.string().max(262_144).optional().describe('pevt+jwt'),
  }),
  response: z.strictObject({
    ...Success,
    accepted: z.int(),
    duplicates: z.int(),
    errors: z.array(z.strictObject({ index: z.int(), code: z.string(), message: z.string() })),
    ack: z.string().optional(),
  }),
  example: {
    events: [
      {
        type: 'protection.action.completed',
        eventId: 'evt-4711',
        occurredAt: '2026-11-20T09:00:00Z',
        storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
        protectionAction: 'detach_hard_tag',
      },
    ],
  },
  // Agents also report sales of tills (cloud/sales/tills).
  emits: ['securityTag.deactivated', 'checkout.completed', 'payment.refunded', ...EARNING_EVENTS, ...ADJUSTMENT_EVENTS],
  async run(call, { events, batch }) {
    if ((events === undefined) === (batch === undefined))
      throw invalid('events', 'send either events[] or a batch', 'missing')
    if (batch !== undefined) {
      if (call.caller.kind !== 'agent')
        throw new Failure('permission-denied', 'batches come from agents only', { reason: 'agents_only' })
      return { success: true as const, ...(await ingestBatch(call, call.caller, batch)), errors: [] }
    }
    // Agents must sign their reports, so they may send only signed batches.
    if (call.caller.kind === 'agent')
      throw new Failure('permission-denied', 'agents report in signed batches', { reason: 'batches_only' })
    return { success: true as const, ...(await reportEvents(call, events ?? [])) }
  },
})

type ReportedEvent = Omit<ProtectionEvent, 'processedAt'>

async function reportEvents(call: Call, events: readonly ReportedEvent[]) {
  const { tenant } = knownCaller(call.caller)
  const errors: { index: number; code: string; message: string }[] = []
  let accepted = 0
  let duplicates = 0
  for (const [index, event] of events.entries()) {
    try {
      await ownStore(call, event.storeId)
      const normal = normaliseIdentifiers({ epc: event.epc, tagUid: event.tagUid, tagId: event.tagId })
      if (!normal.ok) throw invalid(normal.field, normal.message)
      const named = call.db.selectFrom('protection_event').select('store_id').where('event_id', '=', event.eventId)
      const known = await named.where('tenant', '=', tenant).executeTakeFirst()
      if (known) {
        // Rejects the event if another store has used its id. Without this check, the cloud would drop the event as a
        // repetition, even if the event is an alarm.
        if (known.store_id !== event.storeId)
          throw new Failure('already-exists', 'an event of another store has this eventId: use another one')
        duplicates++
        continue
      }
      const completed = { ...event, ...normal.identifiers, processedAt: iso(call.nowMs) }
      const scope = { db: call.db, tenant, platform: call.services.platform, nowMs: call.nowMs }
      await storeEvent(scope, completed)
      await recordReportedException(scope, completed)
      await raiseForEvent(scope, completed, Date.parse(completed.occurredAt))
      accepted++
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      errors.push({ index, code: error.code, message: error.message })
    }
  }
  return { accepted, duplicates, errors }
}
