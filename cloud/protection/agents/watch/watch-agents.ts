import type { Services } from '../../../platform/operations/operation.ts'
import type { Database, Db } from '../../../platform/persistence/database.ts'
import { acknowledgeOpenException, countException, WITHDRAWN } from '../../records/exceptions.ts'
import { cloudIncidents, type DiskSpace } from './cloud-incidents.ts'
import { incidentsOf, readAgentsAfter, WATCHED_KINDS, type Incident } from './incidents.ts'

/** Agents that one query reads. */
const PAGE = 500
/** Maximum number of agents that one check reads. */
const AGENTS_LIMIT = 20_000
/** Maximum number of exceptions that one check raises or withdraws. The next check continues. */
const CHANGES_LIMIT = 200
/** Maximum number of incidents whose start times this process stores. */
const INCIDENTS_LIMIT = 50_000

/** An unacknowledged exception of a watched kind. */
interface OpenException {
  readonly store_id: string
  readonly kind: string
  readonly subject: string
}

/**
 * Raises an exception if an agent is silent, a device of a connected agent is not ready, a policy does not arrive, the
 * disk is almost full or a key ends, each for longer than `silentAfterMs`. Withdraws the exception when the incident has ended. The exception's event
 * reaches webhooks and apps like any other event.
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
    for (const [key, { sinceMs }] of present)
      if (begun.size < INCIDENTS_LIMIT) begun.set(key, sinceMs ?? this.#begun.get(key) ?? nowMs)
    this.#begun = begun
    const open = new Map((await openExceptions(this.#database.reads)).map((row) => [keyOf(row), row]))
    const due = [...present].filter(
      ([key]) => !open.has(key) && nowMs - (begun.get(key) ?? nowMs) > this.#silentAfterMs,
    )
    const ended = [...open].filter(([key]) => !present.has(key))
    for (const [key, incident] of due.slice(0, CHANGES_LIMIT)) await this.#raise(incident, begun.get(key) ?? nowMs)
    for (const [, exception] of ended.slice(0, CHANGES_LIMIT)) await this.#withdraw(exception)
    if (due.length > 0) this.#services.webhooks.wake()
  }

  async #readIncidents(nowMs: number): Promise<Map<string, Incident>> {
    const { lastSeen } = this.#services
    const incidents = new Map<string, Incident>()
    for (const incident of await cloudIncidents(this.#database.reads, nowMs, this.#disk))
      incidents.set(keyOf({ ...incident, store_id: incident.storeId }), incident)
    let after = ''
    for (let read = 0; read < AGENTS_LIMIT; read += PAGE) {
      const agents = await readAgentsAfter(this.#database.reads, after, PAGE)
      for (const agent of agents) {
        const lastSeenMs = Math.max(agent.last_seen_ms, lastSeen.lastSeenMs(agent.agent_id) ?? 0)
        for (const incident of incidentsOf({ ...agent, last_seen_ms: lastSeenMs }, this.#silentAfterMs, nowMs))
          incidents.set(keyOf({ ...incident, store_id: incident.storeId }), incident)
      }
      const last = agents.at(-1)
      if (!last || agents.length < PAGE) break
      after = last.agent_id
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

function openExceptions(db: Db): Promise<OpenException[]> {
  return db
    .selectFrom('protection_exception')
    .select(['store_id', 'kind', 'subject'])
    .where('acknowledged_ms', 'is', null)
    .where('kind', 'in', WATCHED_KINDS)
    .limit(INCIDENTS_LIMIT)
    .execute()
}

function keyOf({ store_id, kind, subject }: OpenException): string {
  return `${store_id} ${kind} ${subject}`
}
