import { sql } from 'kysely'
import { newId } from '../../../../policy/ids.ts'
import { yieldToEventLoop } from '../../../platform/operations/job-steps.ts'
import type { Db, Database } from '../../../platform/persistence/database.ts'
import { insertChunks, preparedForMany, preparedRows } from '../../../platform/persistence/prepared.ts'
import { stateOf, type StoredAgentState } from '../../agent-identity/agent-queries.ts'
import type { ReportedDevice } from '../../../../policy/documents/agent-messages.ts'
import { shares } from '../../../platform/foundation/shared-slots.ts'
import { KEY_SET_LIFE } from '../../../platform/authority/key-loader.ts'
import { accountOf, tenantOf, type Mode } from '../../../platform/foundation/caller.ts'
import type { Services } from '../../../platform/operations/operation.ts'
import { acknowledgeOpenException, countException, WATCHED_KINDS, WITHDRAWN } from '../../records/exceptions.ts'

/** Literals, because SQLite would not use the partial index with parameters. */
const IS_WATCHED = sql<boolean>`kind IN (${sql.join(WATCHED_KINDS.map((kind) => sql.lit(kind)))})`
type WatchedKind = (typeof WATCHED_KINDS)[number]

/** An agent as the cloud knows it. Times in ms since 1970. */
interface WatchedAgent {
  readonly agent_id: string
  readonly tenant: string
  readonly store_id: string
  readonly last_seen_ms: number
  /** JSON of the last state that the agent reported. */
  readonly state: string | null
  readonly device_states: string | null
  /** Version of the store's signed policy, which also rises with devices and operators. Agents report the one that they use. */
  readonly document_version: number
}

/** Something that does not work. If the incident lasts, the cloud raises an exception. */
interface Incident {
  readonly tenant: string
  readonly storeId: string
  readonly kind: WatchedKind
  /** Key of the exception: the id of the agent, device or API key, or `cloud`. */
  readonly subject: string
  readonly deviceId?: string
  readonly detail: string
  /**
   * Start of the incident, ms since 1970. Undefined if unknown: `AgentWatch` then uses the time at which it first saw
   * the incident.
   */
  readonly sinceMs: number | undefined
}

/** The next agents in the order of their ids. Agents that never logged in, or were revoked, are left out. */
const readAgentsAfter = preparedRows((db, agentId: string, limit: number) =>
  db
    .selectFrom('agent')
    .innerJoin('store', 'store.store_id', 'agent.store_id')
    .select([
      'agent.agent_id',
      'agent.tenant',
      'agent.store_id',
      'agent.last_seen_ms',
      'agent.state',
      'agent.device_states',
      'store.document_version',
    ])
    .where('agent.agent_id', '>', agentId)
    .where('agent.revoked_ms', 'is', null)
    .where('agent.last_seen_ms', '>', 0)
    .orderBy('agent.agent_id')
    .limit(limit),
)

type ReadAgent = Omit<WatchedAgent, 'state'> & { readonly state: StoredAgentState | undefined }

/** Maximum number of devices of one agent about which exceptions are open, those with the lowest ids. */
const DEVICES_OF_AGENT = 50

function brokenDevices(state: StoredAgentState | undefined): ReportedDevice[] {
  const broken = (state?.devices ?? []).filter((device) => device.state !== 'ready')
  return broken.sort((a, b) => (a.deviceId < b.deviceId ? -1 : 1))
}

/** The agents of devices. */
const readAgentsOf = preparedForMany((db, deviceIds) =>
  db.selectFrom('device').select(['device_id', 'agent_id']).where('device_id', 'in', deviceIds),
)

/**
 * Everything about this agent that does not work now. The state of a silent agent is unknown, so its devices and its
 * policy cause no incident of their own.
 */
function incidentsOf(
  { state, ...agent }: ReadAgent,
  agentOf: ReadonlyMap<string, string | null>,
  silentAfterMs: number,
  nowMs: number,
): Incident[] {
  const about = { tenant: agent.tenant, storeId: agent.store_id }
  const silentMs = nowMs - agent.last_seen_ms
  if (silentMs > silentAfterMs)
    return [
      {
        ...about,
        kind: 'agent_silent',
        subject: agent.agent_id,
        detail: `the agent has not contacted the cloud since ${new Date(agent.last_seen_ms).toISOString()}`,
        sinceMs: agent.last_seen_ms,
      },
    ]
  const incidents: Incident[] = brokenDevices(state)
    .filter((device) => agentOf.get(device.deviceId) === agent.agent_id)
    .slice(0, DEVICES_OF_AGENT)
    .map((device) => ({
      ...about,
      kind: 'device_not_ready',
      subject: device.deviceId,
      deviceId: device.deviceId,
      detail: `the device is ${device.state}${device.detail === undefined ? '' : `: ${device.detail}`}`,
      // Between two checks a device may have worked. If the agent's clock is fast, the time may be in the future.
      sinceMs: device.since === undefined ? undefined : Math.min(Date.parse(device.since), nowMs),
    }))
  const version = state?.policyVersion
  if (version !== undefined && version < agent.document_version)
    incidents.push({
      ...about,
      kind: 'policy_not_arrived',
      subject: agent.agent_id,
      detail: `the agent uses policy ${version}, and the store has policy ${agent.document_version}`,
      sinceMs: undefined,
    })
  return incidents
}

/** Reads the free space of the disk with the data folder. */
export interface DiskSpace {
  freeBytes(): Promise<number>
  /** The cloud raises an exception if less is free. */
  readonly minFreeBytes: number
}

/** Agents warn of their key set at the same time. */
const KEY_SET_WARNING_S = 30 * 86_400
/** A key that ends within this time, ms, and is still used, needs attention. */
const API_KEY_WARNING_MS = 12 * 3_600_000
const USED_WITHIN_MS = 3_600_000
/** Accounts and modes whose stores get exceptions about the cloud's own disk. */
const TENANTS_LIMIT = 1_000
const KEYS_LIMIT = 1_000
const SUBJECT = 'cloud'
const MIB = 1_048_576

/**
 * Everything about the cloud itself that needs attention. Each account gets the exceptions in its oldest store, because
 * an exception belongs to a store.
 */
async function cloudIncidents(db: Db, nowMs: number, disk: DiskSpace | undefined): Promise<Incident[]> {
  const stores = await oldestStores(db)
  const freeBytes = await disk?.freeBytes().catch(() => undefined)
  const isLow = disk !== undefined && freeBytes !== undefined && freeBytes < disk.minFreeBytes
  const shown = `${Math.floor((freeBytes ?? 0) / MIB)} MiB are free on the disk of the cloud`
  const about = (tenant: string) => ({ tenant, storeId: stores.get(tenant) ?? '' })
  return [
    ...(isLow ? [...stores.keys()] : []).map((tenant) => ({
      ...about(tenant),
      kind: 'disk_low' as const,
      subject: SUBJECT,
      detail: shown,
      sinceMs: undefined,
    })),
    ...(await endingKeySets(db, nowMs)).map(({ aud, iat }) => ({
      ...about(aud),
      kind: 'key_set_not_renewed' as const,
      subject: SUBJECT,
      detail: `the key set of the agents ends at ${new Date((iat + KEY_SET_LIFE) * 1_000).toISOString()}`,
      sinceMs: (iat + KEY_SET_LIFE - KEY_SET_WARNING_S) * 1_000,
    })),
    ...(await endingApiKeys(db, nowMs)).map((key) => ({
      ...about(tenantOf(key.account_id, key.mode as Mode)),
      kind: 'api_key_ending' as const,
      subject: key.key_id,
      detail: `a program still uses the key ${key.shown} (${key.name}), which ends at ${new Date(key.expires_ms ?? 0).toISOString()}`,
      sinceMs: (key.expires_ms ?? 0) - API_KEY_WARNING_MS,
    })),
  ].filter((incident) => incident.storeId !== '')
}

async function oldestStores(db: Db): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('store')
    .select(['tenant', (eb) => eb.fn.min('store_id').as('storeId')])
    .groupBy('tenant')
    .limit(TENANTS_LIMIT)
    .execute()
  return new Map(rows.map(({ tenant, storeId }) => [tenant, storeId]))
}

function endingKeySets(db: Db, nowMs: number) {
  return db
    .selectFrom('signed_document')
    .select(['aud', 'iat'])
    .where('kind', '=', 'keys')
    .where('iat', '<', Math.floor(nowMs / 1_000) + KEY_SET_WARNING_S - KEY_SET_LIFE)
    .limit(TENANTS_LIMIT)
    .execute()
}

function endingApiKeys(db: Db, nowMs: number) {
  return db
    .selectFrom('api_key')
    .select(['key_id', 'account_id', 'mode', 'shown', 'name', 'expires_ms'])
    .where('revoked_ms', 'is', null)
    .where('expires_ms', '>', nowMs)
    .where('expires_ms', '<', nowMs + API_KEY_WARNING_MS)
    .where('last_used_ms', '>', nowMs - USED_WITHIN_MS)
    .limit(KEYS_LIMIT)
    .execute()
}

/** Agents that one query reads: their states may be long. */
const PAGE = 20
/** Characters of the states that are parsed before other requests run. */
const TEXT_AT_ONCE = 250_000
/** Maximum number of agents that one check reads. */
const AGENTS_LIMIT = 20_000
/** Maximum number of exceptions that one check raises or withdraws, accounts in turn. The next check continues. */
const CHANGES_LIMIT = 200
/** Maximum number of incidents whose start times this process stores; of one account half. */
const INCIDENTS_LIMIT = 50_000

/** Parses the states of agents. Lets other requests run meanwhile. */
async function parseStates(agents: readonly WatchedAgent[]): Promise<ReadAgent[]> {
  const parsed: ReadAgent[] = []
  let length = 0
  for (const agent of agents) {
    length += agent.device_states?.length ?? 0
    if (length > TEXT_AT_ONCE) {
      await yieldToEventLoop()
      length = 0
    }
    parsed.push({ ...agent, state: stateOf(agent) })
  }
  return parsed
}

/** The same entries: first one of each account, then the second of each, and so on. */
function inTurns<T extends { readonly tenant: string }>(entries: readonly [string, T][]): [string, T][] {
  const counts = new Map<string, number>()
  const turns = entries.map((entry) => {
    const account = accountOf(entry[1].tenant)
    const turn = counts.get(account) ?? 0
    counts.set(account, turn + 1)
    return { turn, entry }
  })
  return turns.sort((a, b) => a.turn - b.turn).map(({ entry }) => entry)
}

/** An unacknowledged exception of a watched kind. */
interface OpenException {
  readonly tenant: string
  readonly store_id: string
  readonly kind: string
  readonly subject: string
}

/**
 * Raises an exception if an agent is silent, a device of a connected agent is not ready, a policy does not arrive, the
 * disk is almost full or a key ends, each for longer than `silentAfterMs`. Withdraws the exception when the incident has
 * ended. The exception's event reaches webhooks and apps like any other event. Stores the outages of silent agents.
 */
export class AgentWatch {
  readonly #database: Database
  readonly #services: Services
  readonly #silentAfterMs: number
  /** Start time of each incident, ms since 1970. If unknown, the time at which this process first saw the incident. */
  #begun = new Map<string, number>()

  readonly #disk: DiskSpace | undefined

  constructor(database: Database, services: Services, silentAfterMs: number, disk?: DiskSpace) {
    this.#disk = disk
    this.#database = database
    this.#services = services
    this.#silentAfterMs = silentAfterMs
  }

  /** Checks all agents, the keys and the disk once. */
  async check(): Promise<void> {
    const nowMs = this.#services.platform.clock.wall()
    const present = await this.#readIncidents(nowMs)
    const begun = new Map<string, number>()
    const take = shares({ ofOne: INCIDENTS_LIMIT / 2, total: INCIDENTS_LIMIT })
    for (const [key, { sinceMs, tenant }] of present)
      if (take(accountOf(tenant))) begun.set(key, sinceMs ?? this.#begun.get(key) ?? nowMs)
    this.#begun = begun
    const open = new Map((await openExceptions(this.#database.reads)).map((row) => [keyOf(row), row]))
    const due = [...present].filter(
      ([key]) => !open.has(key) && nowMs - (begun.get(key) ?? nowMs) > this.#silentAfterMs,
    )
    const ended = [...open].filter(([key]) => !present.has(key))
    for (const [key, incident] of inTurns(due).slice(0, CHANGES_LIMIT))
      await this.#raise(incident, begun.get(key) ?? nowMs)
    for (const [, exception] of inTurns(ended).slice(0, CHANGES_LIMIT)) await this.#withdraw(exception)
    await this.#storeOutages(present, nowMs)
    if (due.length > 0) this.#services.webhooks.wake()
  }

  /** Stores which agents became silent and which returned since the last check, for `fetchOfflineFigures`. */
  async #storeOutages(present: ReadonlyMap<string, Incident>, nowMs: number): Promise<void> {
    const { platform } = this.#services
    const silent = new Map([...present].filter(([, { kind }]) => kind === 'agent_silent'))
    const running = new Map((await runningOutages(this.#database.reads)).map((row) => [silenceOf(row), row.outage_id]))
    const begun = inTurns([...silent].filter(([key]) => !running.has(key))).slice(0, CHANGES_LIMIT)
    const ended = [...running].flatMap(([key, id]) => (silent.has(key) ? [] : [id])).slice(0, CHANGES_LIMIT)
    if (begun.length + ended.length === 0) return
    const rows = begun.map(([, { tenant, storeId, subject, sinceMs = nowMs }]) => ({
      outage_id: newId('otg', platform),
      tenant,
      store_id: storeId,
      agent_id: subject,
      began_ms: sinceMs,
    }))
    await this.#database.write(async (db) => {
      for (const chunk of insertChunks(rows))
        await db
          .insertInto('agent_outage')
          .values(chunk)
          // Another process may have stored it.
          .onConflict((c) => c.doNothing())
          .execute()
      if (ended.length > 0)
        await db.updateTable('agent_outage').set({ ended_ms: nowMs }).where('outage_id', 'in', ended).execute()
    })
  }

  async #readIncidents(nowMs: number): Promise<Map<string, Incident>> {
    const { lastSeen } = this.#services
    const incidents = new Map<string, Incident>()
    for (const incident of await cloudIncidents(this.#database.reads, nowMs, this.#disk))
      incidents.set(keyOf({ ...incident, store_id: incident.storeId }), incident)
    let after = ''
    for (let read = 0; read < AGENTS_LIMIT; read += PAGE) {
      const agents = await readAgentsAfter(this.#database.reads, after, PAGE)
      const parsed = await parseStates(agents)
      const broken = parsed.flatMap(({ state }) => brokenDevices(state).map(({ deviceId }) => deviceId))
      const rows = await readAgentsOf(this.#database.reads, broken)
      const agentOf = new Map(rows.map((row) => [row.device_id, row.agent_id]))
      for (const agent of parsed) {
        const lastSeenMs = Math.max(agent.last_seen_ms, lastSeen.lastSeenMs(agent.agent_id) ?? 0)
        const heard = { ...agent, last_seen_ms: lastSeenMs }
        for (const incident of incidentsOf(heard, agentOf, this.#silentAfterMs, nowMs))
          incidents.set(keyOf({ ...incident, store_id: incident.storeId }), incident)
      }
      const last = agents.at(-1)
      if (!last || agents.length < PAGE) break
      after = last.agent_id
      // Agents of one account must not stop the requests of all.
      await yieldToEventLoop()
    }
    return incidents
  }

  /**
   * Skips an incident if its exception was raised after the start of the incident: staff may have acknowledged that
   * exception, or another process has just raised it.
   */
  #raise(incident: Incident, sinceMs: number): Promise<void> {
    const { platform } = this.#services
    return this.#database.write(async (db) => {
      const nowMs = platform.clock.wall()
      const known = await db
        .selectFrom('protection_exception')
        .select(['raised_ms', 'last_ms'])
        .where('store_id', '=', incident.storeId)
        .where('kind', '=', incident.kind)
        .where('subject', '=', incident.subject)
        .executeTakeFirst()
      if (known && (known.last_ms ?? known.raised_ms) >= sinceMs) return
      await countException({ db, tenant: incident.tenant, platform, nowMs }, incident)
    })
  }

  #withdraw({ store_id: storeId, kind, subject }: OpenException): Promise<void> {
    const atMs = this.#services.platform.clock.wall()
    return this.#database.write((db) => acknowledgeOpenException(db, { storeId, kind, subject, by: WITHDRAWN, atMs }))
  }
}

/** Outages that have not ended. */
function runningOutages(db: Db) {
  return db
    .selectFrom('agent_outage')
    .select(['outage_id', 'agent_id', 'store_id'])
    .where('ended_ms', 'is', null)
    .limit(AGENTS_LIMIT)
    .execute()
}

/** Key of the incident to which an outage belongs. */
function silenceOf({ agent_id: subject, store_id }: { agent_id: string; store_id: string }): string {
  return keyOf({ store_id, kind: 'agent_silent', subject })
}

/** Open exceptions of the watched kinds. */
export function openExceptions(db: Db): Promise<OpenException[]> {
  return db
    .selectFrom('protection_exception')
    .select(['tenant', 'store_id', 'kind', 'subject'])
    .where('acknowledged_ms', 'is', null)
    .where(IS_WATCHED)
    .limit(INCIDENTS_LIMIT)
    .execute()
}

function keyOf({ store_id, kind, subject }: Omit<OpenException, 'tenant'>): string {
  return `${store_id} ${kind} ${subject}`
}
