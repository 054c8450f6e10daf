import { z } from 'zod'
import { AssertionClaims, CLOUD_AUDIENCE } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { publicJwk } from '../../../policy/documents/keys.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { REMINDERS_LIMIT } from '../../../policy/documents/store-documents.ts'
import { Release } from '../../../policy/release.ts'
import type { Tenant } from '../../foundation/caller.ts'
import { Failure, notFound } from '../../foundation/failure.ts'
import { Id, iso, Success, text } from '../../operations/fields.ts'
import { operation, type Call } from '../../operations/operation.ts'
import type { AgentRow } from '../../persistence/tables/agents.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { prepared } from '../../persistence/prepared.ts'
import { remindRevocations } from '../../restore/remind-revocations.ts'
import { noteResynced } from '../../protection/leases/resync.ts'
import { ownStore } from '../../stores/own-store.ts'
import { findStore } from '../../stores/queries.ts'
import { noteAddress } from '../documents/agent-address.ts'
import { noteHasTold } from '../../protection/receipt-home/home-move.ts'
import { endMoves } from '../../protection/devices/move-device.ts'
import { ensureStoreKey, storeKeyParts } from '../../protection/operators/store-keys.ts'
import { agentKeys, noteKeyUse } from '../../agent-identity/agent-keys.ts'
import { commandDocument, openCommands } from '../documents/commands.ts'
import { denyPage, freshDocument, policyOfStore, signPolicy } from '../documents/documents.ts'
import { itemPage, itemsEpoch, itemsHead } from '../documents/item-pages.ts'
import { createCode, enrol } from '../enrolment/enrolment.ts'
import { greetLedger } from './greet-ledger.ts'
import { writeLastSeen } from '../../agent-identity/last-seen.ts'
import { noteLook } from '../documents/agent-state.ts'
import { succeed } from '../enrolment/succession.ts'
import { findAgent, openChallenge, openLogin, useChallenge, type ChallengeFor } from '../../agent-identity/sessions.ts'

export const createEnrolmentCode = operation({
  name: 'createEnrolmentCode',
  area: 'agents',
  minimumPackage: 'GROW',
  summary: 'Makes a code with which one edge agent enrols in a store.',
  description: 'Good for 15 minutes and one agent. It carries the root’s thumbprint, which the agent checks.',
  changes: true,
  secretAnswer: true,
  request: z.strictObject({ storeId: Id, name: text(120).optional() }),
  response: z.strictObject({ ...Success, code: z.string(), expiresAt: z.string() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', name: 'Kasse 1' },
  async run(call, { storeId, name }) {
    const store = await ownStore(call, storeId)
    const { code, expiresMs } = await createCode(call, store, name ?? 'edge agent')
    call.changed(storeId)
    return { success: true as const, code, expiresAt: iso(expiresMs) }
  },
})

const Mqtt = z.strictObject({
  url: z.string(),
  clientId: z.string(),
  username: z.string(),
  password: z.string().optional(),
})

export const enrolEdgeAgent = operation({
  name: 'enrolEdgeAgent',
  area: 'agents',
  minimumPackage: 'GROW',
  summary: 'Enrols an edge agent with a code and its own key. No key of the API is needed.',
  description: 'The same code with the same key again gets the same answer.',
  callers: ['anyone'],
  refusals: ['code_used', 'code_blocked', 'key_taken', 'ledger_taken'],
  changes: true,
  request: z.strictObject({
    code: text(60),
    publicJwk: z.strictObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string().max(64) }),
    proof: z.string().max(1_024).describe('enrol+jwt: {aud: base URL, codeHash, ledger}.'),
    name: text(120).optional(),
    replaces: z
      .strictObject({
        agentId: Id,
        proof: z.string().max(1_024).describe('enrol+jwt of the former’s key, with the same claims.'),
      })
      .optional()
      .describe(
        'The agent whose ledger it goes on with: when it first logs in, devices, home and what was left to tell are its own, and the former is revoked.',
      ),
  }),
  response: z.strictObject({
    ...Success,
    agentId: z.string(),
    storeId: z.string(),
    root: z.strictObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() }),
    documents: z.array(z.string()),
    mqtt: Mqtt,
  }),
  example: {
    code: 'K7QX-4M2P-9TRW-0000-0000-0000-0000',
    publicJwk: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    proof: 'eyJ…',
  },
  async run(call, input) {
    const agent = await enrol(call, input)
    const store = await findStore(call.db, agent.store_id)
    if (!store) throw notFound('store')
    call.changed(agent.agent_id)
    const { root, documents } = await firstDocuments(call, store)
    const mqtt = { url: call.services.config.mqttUrl, clientId: agent.agent_id, username: agent.agent_id }
    return { success: true as const, agentId: agent.agent_id, storeId: agent.store_id, root, documents, mqtt }
  },
})

async function firstDocuments(call: Call, store: StoreRow) {
  const { authority } = call.services
  const { keySet } = await authority.readyWithin(call.db, store.tenant as Tenant)
  const policy = await policyOfStore(call.db, store, call.services)
  return {
    root: publicJwk(authority.rootX),
    documents: [
      keySet.jws,
      signPolicy(policy, call.services),
      await freshDocument(call.db, store, call.services, policy),
    ],
  }
}

export const agentLogin = operation({
  name: 'agentLogin',
  area: 'agents',
  minimumPackage: 'GROW',
  summary: 'Logs an agent in: first for a challenge, then with the signed answer.',
  callers: ['anyone'],
  changes: true,
  audited: false,
  request: z.strictObject({
    agentId: Id,
    assertion: z
      .string()
      .max(1_024)
      .optional()
      .describe('assert+jwt: {iss: agentId, aud: "cloud", challenge, ledger, generation, seq, head}.'),
  }),
  response: z.strictObject({
    ...Success,
    challenge: z.string().optional(),
    accessToken: z.string().optional(),
    expiresAt: z.string().optional(),
    mqttChallenge: z.string().optional(),
    revoked: z
      .string()
      .optional()
      .describe(
        'In place of a login: cmd+jwt that tells the agent that it was revoked. It releases nothing from then on, also without a network.',
      ),
    storeKey: z
      .string()
      .optional()
      .describe(
        'Key of the operators’ verifiers in the policy that names it (`storeKey`). A new one follows each revoked agent.',
      ),
    ledger: z
      .strictObject({
        generation: z.int(),
        denySeq: z.int(),
        onlineOnlyUntil: z.string().optional(),
        forked: z.literal(true).optional(),
      })
      .optional()
      .describe(
        'The generation that the ledger goes on with; a higher one than its own says that it was put back and begins anew, and decides nothing alone before it has taken the deny list up to `denySeq`. `forked`: it exists twice.',
      ),
  }),
  example: { agentId: 'agt_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { agentId, assertion }) {
    const { random } = call.services.platform
    // Who does not exist gets a challenge too: the answer tells nobody which agents there are.
    if (assertion === undefined)
      return { success: true as const, challenge: await openChallenge(call.db, agentId, 'http', random, call.nowMs) }
    const { agent, claims, openedMs } = await openAssertion(call, agentId, 'http', assertion)
    // It could go on with receipts for as long as it hears nothing: this it may believe, for it is signed.
    if (agent.revoked_ms !== null)
      return { success: true as const, revoked: commandDocument(agentId, { command: 'revoke' }, call.services) }
    await succeed(call, agent)
    const ledger = await greetLedger(call, agent, claims, openedMs)
    await writeLastSeen(call.db, agentId, call.nowMs)
    call.afterCommit(() => call.services.lastSeen.note(agentId, call.nowMs))
    const { accessToken, expiresMs } = await openLogin(call.db, agentId, random, call.nowMs)
    const mqttChallenge = await openChallenge(call.db, agentId, 'broker', random, call.nowMs)
    const storeKey = await ensureStoreKey(call.db, agent.store_id, storeKeyParts(call.services))
    return {
      success: true as const,
      accessToken,
      expiresAt: iso(expiresMs),
      mqttChallenge,
      ledger,
      storeKey,
    }
  },
})

const REFUSED = () => new Failure('unauthenticated', 'the assertion is not valid')

type Asserting = Pick<Call, 'db' | 'services' | 'nowMs'>

/** The agent that signed this assertion as its password at the broker; 401 otherwise. */
export async function assertAgent(call: Asserting, agentId: string, assertion: string): Promise<AgentRow> {
  const { agent } = await openAssertion(call, agentId, 'broker', assertion)
  if (agent.revoked_ms !== null) throw REFUSED()
  return agent
}

async function openAssertion(
  call: Asserting,
  agentId: string,
  where: ChallengeFor,
  assertion: string,
): Promise<{ agent: AgentRow; claims: AssertionClaims; openedMs: number }> {
  const agent = await findAgent(call.db, agentId)
  if (!agent) throw REFUSED()
  const keys = agentKeys(agent)
  // The challenge makes it fresh; the agent's clock need not be right.
  const opened = openDocument<AssertionClaims>(assertion, DOCUMENT_KINDS.assertion, { keys, audience: CLOUD_AUDIENCE })
  const claims = opened.ok ? AssertionClaims.safeParse(opened.claims) : undefined
  if (!claims?.success || claims.data.iss !== agentId) throw REFUSED()
  if (claims.data.ledger !== agent.ledger_id) throw REFUSED()
  const used = await useChallenge(call.db, agentId, where, claims.data.challenge, call.nowMs)
  if (!used) throw REFUSED()
  if (opened.ok) await noteKeyUse(call.db, agent, opened.key, call.nowMs)
  return { agent, claims: claims.data, openedMs: used.openedMs }
}

/** 500 keys at most, of 150 characters each, in base64. */
const MAX_KEY_SET = 128_000

const Version = z.tuple([z.int().min(0), z.int().min(0)])

export const fetchSignedDocuments = operation({
  name: 'fetchSignedDocuments',
  area: 'agents',
  minimumPackage: 'GROW',
  summary: 'Answers the signed documents that an agent does not have yet, and always the freshness document.',
  callers: ['agent'],
  changes: true,
  audited: false,
  request: z.strictObject({
    have: z
      .strictObject({
        keys: Version.optional(),
        policy: Version.optional(),
        deny: Version.optional(),
        items: Version.optional(),
      })
      .optional()
      .describe('[epoch, version] of each kind.'),
    address: z
      .string()
      .max(200)
      .regex(/^https?:\/\/[A-Za-z0-9.:[\]-]+$/)
      .optional()
      .describe('Where other agents of the store reach this one.'),
    resynced: z
      .int()
      .min(1)
      .optional()
      .describe(
        'The generation of the cloud that has all rows again which this agent had told the one before (after a restore).',
      ),
    cursor: z
      .string()
      .regex(/^\d{1,15}(\.\d{1,15})?$/)
      .optional(),
    revocations: z
      .array(z.string().max(MAX_KEY_SET))
      .max(REMINDERS_LIMIT)
      .optional()
      .describe(
        'keys+jwt: key sets of before that revoke what the present one does not, or count time in a later epoch; a cloud that was put back has forgotten it, and does it again.',
      ),
    release: Release.optional().describe('What the agent runs; fetchAgents shows it.'),
    ledgerSeq: z
      .int()
      .min(0)
      .optional()
      .describe('The end of its ledger, read after `have`: shows when a former home has told all.'),
  }),
  response: z.strictObject({
    ...Success,
    documents: z.array(z.string()),
    nextCursor: z.string().optional(),
    commands: z.array(z.string()).optional().describe('cmd+jwt: what it was asked for and has not answered.'),
    forked: z
      .literal(true)
      .optional()
      .describe('Its ledger exists twice: each claim needs the cloud’s yes until resolveAgentFork.'),
  }),
  example: { have: { keys: [0, 1], policy: [0, 3], deny: [0, 0], items: [0, 0] } },
  async run(call, { have, cursor, address, ledgerSeq, release, resynced, revocations }) {
    if (call.caller.kind !== 'agent') throw notFound('agent')
    const { caller } = call
    const agent = await findAgent(call.db, caller.agentId)
    if (address !== undefined && address !== agent?.home_url) await noteAddress(call, caller.agentId, address)
    if (revocations) await remindRevocations(call, caller.tenant, revocations)
    if (resynced !== undefined) await noteResynced(call, caller.agentId, resynced)
    const isOfNow = have?.policy?.[0] === call.services.authority.documentEpoch
    // Of one that exists twice the other copy may not have told.
    if (agent && agent.fork_ms === null && isOfNow && ledgerSeq !== undefined && ledgerSeq <= agent.last_seq)
      await noteHasTold(call, caller.agentId, have?.policy?.[1] ?? 0)
    // The pages that follow are of the same look.
    if (agent && cursor === undefined)
      await noteLook(call.db, agent, { policyVersion: have?.policy?.[1], ledgerSeq, release }, call.nowMs)
    await endMoves(call, caller.storeId)
    const store = await ownStore(call, caller.storeId)
    const { keySet } = call.services.authority.keysOf(caller.tenant)
    const documents: string[] = []
    if (!isCurrent(have?.keys, keySet)) documents.push(keySet.jws)
    const policy = await policyOfStore(call.db, store, call.services)
    if (!isOfEpoch(have?.policy, { epoch: call.services.authority.documentEpoch, ver: store.document_version }))
      documents.push(signPolicy(policy, call.services))
    const from = cursorOf(cursor, have, itemsEpoch(call.services))
    const page = from.deny < store.deny_seq ? await denyPage(call.db, store, from.deny, call.services) : undefined
    if (page) documents.push(page.jws)
    const items = from.items === undefined ? undefined : await itemPages(call, store, from.items)
    if (items) documents.push(...items.pages)
    documents.push(await freshDocument(call.db, store, call.services, policy))
    // A number that was never given is of whoever stole a key, and confirms nothing.
    if (have?.deny && have.deny[1] > (agent?.deny_seq ?? 0) && have.deny[1] <= store.deny_seq)
      await noteDenySeq(call.db, { agentId: caller.agentId, seq: have.deny[1] })
    if (
      have?.items &&
      items &&
      have.items[0] === itemsEpoch(call.services) &&
      have.items[1] > (agent?.item_seq ?? 0) &&
      have.items[1] <= items.head
    )
      await noteItemSeq(call.db, { agentId: caller.agentId, seq: have.items[1] })
    const more = (page && page.ver < store.deny_seq) || items?.more
    const reached = page?.ver ?? from.deny
    const commands = await openCommands(call, caller.agentId)
    return {
      success: true as const,
      documents,
      ...(more && { nextCursor: items ? `${reached}.${items.reached}` : String(reached) }),
      ...(commands.length > 0 && { commands }),
      ...(agent && agent.fork_ms !== null && { forked: true as const }),
    }
  },
})

interface From {
  deny: number
  /** Undefined: the agent keeps no items. */
  items: number | undefined
}

/** Where the pages go on: behind the cursor `deny.items`, else behind what the agent has. */
function cursorOf(
  cursor: string | undefined,
  have: { deny?: readonly [number, number] | undefined; items?: readonly [number, number] | undefined } | undefined,
  epoch: number,
): From {
  const [deny, items] = (cursor ?? '').split('.')
  const held = have?.items && (have.items[0] === epoch ? have.items[1] : 0)
  return { deny: deny ? Number(deny) : (have?.deny?.[1] ?? 0), items: items ? Number(items) : held }
}

/** Pages of items in one answer. */
const ITEM_PAGES_AT_ONCE = 4

async function itemPages(
  { db, services }: Call,
  store: StoreRow,
  after: number,
): Promise<{ pages: string[]; reached: number; head: number; more: boolean }> {
  const { ver: head } = await itemsHead(db, store.store_id, services)
  const pages: string[] = []
  let reached = after
  while (reached < head && pages.length < ITEM_PAGES_AT_ONCE) {
    const { jws, ver } = await itemPage(db, store, reached, services)
    pages.push(jws)
    reached = ver
  }
  return { pages, reached, head, more: reached < head }
}

function isCurrent(have: readonly [number, number] | undefined, current: { epoch: number; ver: number }): boolean {
  return have !== undefined && (have[0] > current.epoch || isOfEpoch(have, current))
}

/** A policy of a higher epoch is of whoever stole a key: the agent refuses ours, and says so, until it hears that the key was revoked. */
function isOfEpoch(have: readonly [number, number] | undefined, current: { epoch: number; ver: number }): boolean {
  return have !== undefined && have[0] === current.epoch && have[1] >= current.ver
}

/** How far the agent has taken the items: what a shopper who has paid is told rests on it. */
const noteItemSeq = prepared((db, p: { agentId: string; seq: number }) =>
  db.updateTable('agent').set({ item_seq: p.seq }).where('agent_id', '=', p.agentId).where('item_seq', '<', p.seq),
)
/** How far the agent has taken the deny list: refunds wait for it. */
const noteDenySeq = prepared((db, p: { agentId: string; seq: number }) =>
  db.updateTable('agent').set({ deny_seq: p.seq }).where('agent_id', '=', p.agentId).where('deny_seq', '<', p.seq),
)
