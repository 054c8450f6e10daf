import { z } from 'zod'
import {
  ALARM_STATES_LIMIT,
  AlarmStateReport,
  ReportedDevice,
  REPORTED_DEVICES_LIMIT,
} from '../../../../policy/documents/agent-messages.ts'
import { EARLIER_KEY_SETS_LIMIT, KeySetClaims } from '../../../../policy/documents/store-documents.ts'
import { PictureHash, PICTURES_AT_ONCE } from '../../../../policy/documents/item-documents.ts'
import { VersionNumber } from '../../../../policy/version.ts'
import { picturesByHash } from '../../../shop/catalogue/product-operations.ts'
import { notFound } from '../../../platform/foundation/failure.ts'
import { Success } from '../../../platform/operations/fields.ts'
import { operation, type Call, type Services } from '../../../platform/operations/operation.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { prepared } from '../../../platform/persistence/prepared.ts'
import { handledAlarms } from '../../records/alarm-operations.ts'
import { markResynced } from '../../leases/authorizations.ts'
import { ownStore } from '../../../platform/stores/own-store.ts'
import { endWaitForAgent } from '../../receipt-home/home-move.ts'
import { endMoves } from '../../devices/move-device.ts'
import { pendingCommands, denyPage, freshnessDocument } from './freshness-and-denials.ts'
import { policyDocumentOf, signPolicy } from '../../store-policy/policy-document.ts'
import { itemPage, itemsEpoch, itemsHead } from './item-pages.ts'
import { storeFetchReport, type FetchReport } from './agent-state.ts'
import { findAgent } from '../../agent-identity/sessions.ts'
import { raiseDocumentVersion } from '../../../platform/stores/queries.ts'
import { brokerVersion, type BrokerAccess, type BrokerClaims } from '../../../../policy/documents/broker-document.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { signDocument, openDocument } from '../../../../policy/documents/signed-document.ts'
import { keyId, keyRing } from '../../../../policy/documents/keys.ts'
import { resumeTimeEpoch } from '../../../platform/authority/key-counters.ts'
import { ROTATED_USES } from '../../../platform/authority/rotate-key.ts'
import type { Tenant } from '../../../platform/foundation/caller.ts'

/**
 * Repeats key revocations that a restored cloud lost. Otherwise the cloud would sign with keys that agents reject.
 * Agents send the key sets with these revocations. The root key signed the key sets, so the cloud need not trust an
 * agent.
 */
async function repeatRevocations(
  call: Pick<Call, 'db' | 'services' | 'afterCommit'>,
  tenant: Tenant,
  keySets: readonly string[],
): Promise<void> {
  const { authority, agents, log } = call.services
  const root = keyRing([
    { kid: keyId(authority.rootX), alg: 'EdDSA', x: authority.rootX, use: 'root', iss: 'root', state: 'active' },
  ])
  const claimsList = keySets.flatMap((jws) => {
    const opened = openDocument<KeySetClaims>(jws, DOCUMENT_KINDS.keys, { keys: root, audience: tenant })
    const claims = opened.ok ? KeySetClaims.safeParse(opened.claims).data : undefined
    return claims ?? []
  })
  const revoked = claimsList.flatMap(({ keys }) =>
    keys.filter(({ state }) => state === 'revoked').map(({ kid }) => kid),
  )
  // If this cloud lacks the revoked key, the time epoch may be the only trace of the revocation.
  const isResumed = await resumeTimeEpoch(call.db, Math.max(0, ...claimsList.map(({ timeEpoch }) => timeEpoch ?? 0)))
  if (isResumed) call.afterCommit(() => agents.keysChanged())
  if (revoked.length === 0) return
  const forgottenKeys = await call.db
    .selectFrom('signing_key')
    .select(['kid', 'iss', 'key_use'])
    .where('kid', 'in', [...new Set(revoked)])
    .where('state', '!=', 'revoked')
    .execute()
  for (const { kid, iss, key_use } of forgottenKeys) {
    const use = ROTATED_USES.find((known) => known === key_use)
    if (!use) continue
    await authority.rotate(call.db, { iss, use, revoke: kid })
    call.afterCommit(() => log.warn({ kid, use }, 'repeated a key revocation that the restored cloud had lost'))
  }
  if (forgottenKeys.length > 0) call.afterCommit(() => agents.keysChanged())
}

type Parts = Pick<Services, 'authority' | 'config'>

const LIFE = 3_600

/** Address and credentials with which this agent logs in to the broker. */
function brokerAccess(agentId: string, { authority, config }: Parts): BrokerAccess {
  const { mqttUrl: url, outsideBroker } = config
  return {
    url,
    username: agentId,
    ...(outsideBroker && { password: authority.brokerPassword(agentId) }),
    ...(outsideBroker?.ca !== undefined && { ca: outsideBroker.ca }),
  }
}

/**
 * Signs the broker document of this agent, unless the agent already has the current version. `have`: the version that
 * the agent has.
 */
function brokerDocument(agentId: string, have: string, services: Parts): string | undefined {
  const access = brokerAccess(agentId, services)
  if (brokerVersion(access) === have) return undefined
  const iat = Math.floor(services.authority.clock.nowMs() / 1_000)
  const claims: BrokerClaims = { aud: agentId, iat, exp: iat + LIFE, ...access }
  return signDocument(DOCUMENT_KINDS.broker, claims, services.authority.freshnessSigner)
}

/** Stores the agent's address for other agents and publishes it in the signed policy. */
async function storeAddress({ db, services, afterCommit }: Call, agentId: string, address: string): Promise<void> {
  const moved = await db
    .updateTable('agent')
    .set({ home_url: address })
    .where('agent_id', '=', agentId)
    .where((eb) => eb.or([eb('home_url', 'is', null), eb('home_url', '!=', address)]))
    .returning('store_id')
    .executeTakeFirst()
  if (!moved) return
  await raiseDocumentVersion(db, moved.store_id)
  afterCommit(() => services.agents.storeChanged(moved.store_id))
}

/**
 * An agent sends its document versions, its address and the number of its last ledger row. The cloud stores these facts
 * and completes device moves. The response contains newer documents: key set, policy, deny list pages and item pages.
 * The response always contains the freshness document and the pending commands.
 *
 * The cloud builds the documents from database rows at every request. These rows also contain the document versions.
 */

/** Maximum length of a signed key set: 500 keys of 150 characters each, in base64. */
const MAX_KEY_SET = 128_000

const Version = z.tuple([z.int().min(0), z.int().min(0)])

export const fetchSignedDocuments = operation({
  name: 'fetchSignedDocuments',
  area: 'agents',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Returns the signed documents that an agent does not have yet, and always the freshness document.',
  callers: ['agent'],
  changes: true,
  audited: false,
  refreshesPages: false,
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
    broker: z
      .string()
      .max(16)
      .optional()
      .describe('Version of its broker document, empty without one. The response has a newer document, if any.'),
    address: z
      .string()
      .max(200)
      .regex(/^https?:\/\/[A-Za-z0-9.:[\]-]+$/)
      .optional()
      .describe('Address at which other agents of the store reach this one.'),
    resynced: z
      .int()
      .min(1)
      .optional()
      .describe('After a restore: the generation of the cloud that has received all rows of this agent again.'),
    cursor: z
      .string()
      .regex(/^\d{1,15}(\.\d{1,15})?$/)
      .optional(),
    revocations: z
      .array(z.string().max(MAX_KEY_SET))
      .max(EARLIER_KEY_SETS_LIMIT)
      .optional()
      .describe(
        'keys+jwt: earlier key sets with revocations or a time epoch that the current one lacks. A restored cloud applies them again.',
      ),
    pictures: z
      .array(PictureHash)
      .max(PICTURES_AT_ONCE)
      .optional()
      .describe('Small pictures of products that the agent lacks: their SHA-256 from the item pages.'),
    alarms: z
      .array(z.string().max(128))
      .max(ALARM_STATES_LIMIT)
      .optional()
      .describe('Alarms of its gates. The response says what people did about them.'),
    release: VersionNumber.optional().describe('Release that the agent runs; fetchAgents returns it.'),
    devices: z
      .strictObject({
        observedAt: z.iso.datetime().describe('Time of the agent’s clock.'),
        states: z.array(ReportedDevice).max(REPORTED_DEVICES_LIMIT),
      })
      .optional()
      .describe('Health of its devices, sent after each change. fetchDevices returns it.'),
    ledgerSeq: z
      .int()
      .min(0)
      .optional()
      .describe(
        'Last row of its ledger, read after `have`. It shows when a former receipt home has reported everything.',
      ),
  }),
  response: z.strictObject({
    ...Success,
    documents: z.array(z.string()),
    broker: z.string().optional().describe('broker+jwt: address and credentials of the MQTT broker for this agent.'),
    nextCursor: z.string().optional(),
    pictures: z
      .array(z.string())
      .optional()
      .describe('Requested small pictures: WebP, at most 4 KiB, base64url. Unknown ones are left out.'),
    alarms: z
      .array(AlarmStateReport)
      .optional()
      .describe('Requested alarms of its store that a person acknowledged or disposed of.'),
    commands: z.array(z.string()).optional().describe('cmd+jwt: commands that the agent has not answered yet.'),
    forked: z
      .literal(true)
      .optional()
      .describe('Its ledger exists twice: each claim needs the cloud until resolveAgentFork.'),
  }),
  example: { have: { keys: [0, 1], policy: [0, 3], deny: [0, 0], items: [0, 0] } },
  async run(
    call,
    { have, broker, cursor, address, ledgerSeq, release, resynced, revocations, pictures, devices, alarms },
  ) {
    if (call.caller.kind !== 'agent') throw notFound('agent')
    const { caller } = call
    const agent = await findAgent(call.db, caller.agentId)
    if (address !== undefined && address !== agent?.home_url) await storeAddress(call, caller.agentId, address)
    if (revocations) await repeatRevocations(call, caller.tenant, revocations)
    if (resynced !== undefined) await markResynced(call, caller.agentId, resynced)
    const hasCurrentEpoch = have?.policy?.[0] === call.services.authority.documentEpoch
    // If the ledger is forked, the move of the receipt home still waits: the other copy may have unreported rows.
    if (agent && agent.fork_ms === null && hasCurrentEpoch && ledgerSeq !== undefined && ledgerSeq <= agent.last_seq)
      await endWaitForAgent(call, caller.agentId, have?.policy?.[1] ?? 0)
    // A request for a later page repeats the report of the first request, so the cloud does not store it again.
    if (agent && cursor === undefined)
      await noteReport(call, agent, { policyVersion: have?.policy?.[1], ledgerSeq, release, devices })
    await endMoves(call, caller.storeId)
    const store = await ownStore(call, caller.storeId)
    const { keySet } = call.services.authority.keysOf(caller.tenant)
    const documents: string[] = []
    if (!isCurrent(have?.keys, keySet)) documents.push(keySet.jws)
    const policy = await policyDocumentOf(call.db, store, call.services)
    if (!isOfEpoch(have?.policy, { epoch: call.services.authority.documentEpoch, ver: store.document_version }))
      documents.push(signPolicy(policy, call.services))
    const from = cursorOf(cursor, have, itemsEpoch(call.services))
    const page = from.deny < store.deny_seq ? await denyPage(call.db, store, from.deny, call.services) : undefined
    if (page) documents.push(page.jws)
    const items = from.items === undefined ? undefined : await itemPages(call, store, from.items)
    if (items) documents.push(...items.pages)
    documents.push(await freshnessDocument(call.db, store, call.services, policy))
    // Ignores a version beyond the head, because a stolen key signed the document with this version.
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
    const commands = await pendingCommands(call, caller.agentId)
    const newBroker = broker === undefined ? undefined : brokerDocument(caller.agentId, broker, call.services)
    const found = await picturesByHash(call.db, pictures ?? [])
    const handled = await handledAlarms(call.db, store, alarms ?? [])
    return {
      success: true as const,
      documents,
      ...(found.length > 0 && { pictures: found }),
      ...(handled.length > 0 && { alarms: handled }),
      ...(newBroker !== undefined && { broker: newBroker }),
      ...(more && { nextCursor: items ? `${reached}.${items.reached}` : String(reached) }),
      ...(commands.length > 0 && { commands }),
      ...(agent && agent.fork_ms !== null && { forked: true as const }),
    }
  },
})

/** Stores the report of the request, and refreshes open pages if the policy or the health of a device changed. */
async function noteReport(call: Call, agent: Row<'agent'>, report: FetchReport): Promise<void> {
  if (!(await storeFetchReport(call.db, agent, report, call.nowMs))) return
  call.afterCommit(() => call.services.changes.publish(call.caller, { area: 'agents', storeIds: [], events: [] }))
}

interface From {
  deny: number
  /** Undefined if the agent stores no items. */
  items: number | undefined
}

/**
 * Versions after which the next pages start. If the request has a cursor (text `<deny>.<items>`), the versions come
 * from the cursor, else from the agent's `have`.
 */
function cursorOf(
  cursor: string | undefined,
  have: { deny?: readonly [number, number] | undefined; items?: readonly [number, number] | undefined } | undefined,
  epoch: number,
): From {
  const [deny, items] = (cursor ?? '').split('.')
  const itemsVersion = have?.items && (have.items[0] === epoch ? have.items[1] : 0)
  return { deny: deny ? Number(deny) : (have?.deny?.[1] ?? 0), items: items ? Number(items) : itemsVersion }
}

/** Maximum number of item pages per response. */
const ITEM_PAGES_AT_ONCE = 4

async function itemPages(
  { db, services }: Call,
  store: Row<'store'>,
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

/**
 * True if the agent has this version, or a newer one of the same epoch. If the epoch of the agent's policy is higher, a
 * stolen key signed that policy. The agent then needs the cloud's policy. The agent accepts the cloud's policy once the
 * agent knows that the key was revoked.
 */
function isOfEpoch(have: readonly [number, number] | undefined, current: { epoch: number; ver: number }): boolean {
  return have !== undefined && have[0] === current.epoch && have[1] >= current.ver
}

/** Stores the agent's item version. The check of stale gates compares it with the version of the paid items. */
const noteItemSeq = prepared((db, p: { agentId: string; seq: number }) =>
  db.updateTable('agent').set({ item_seq: p.seq }).where('agent_id', '=', p.agentId).where('item_seq', '<', p.seq),
)
/** Stores the agent's deny list version. A refund waits until all agents have the version that contains its denial. */
const noteDenySeq = prepared((db, p: { agentId: string; seq: number }) =>
  db.updateTable('agent').set({ deny_seq: p.seq }).where('agent_id', '=', p.agentId).where('deny_seq', '<', p.seq),
)
