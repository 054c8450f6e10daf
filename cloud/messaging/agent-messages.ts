import { newId } from '../../policy/ids.ts'
import { limitedLog, type LimitedLog } from '../../policy/limited-log.ts'
import { agentTopic, parseTopic, storeTopic, type AgentAddress, type StoreTopic } from '../../policy/topics.ts'
import { assertAgent } from '../agents/login/agent-login.ts'
import { commandDocument } from '../agents/documents/commands.ts'
import { denyPage, freshDocument } from '../agents/documents/documents.ts'
import { policyOfStore, signPolicy } from '../protection/store-policy/store-policy.ts'
import { itemPage } from '../agents/documents/item-pages.ts'
import { findAgent } from '../agent-identity/sessions.ts'
import { revokedAmong } from '../agent-identity/agent-queries.ts'
import { noteState } from '../agents/documents/agent-state.ts'
import { logJobFailure } from '../foundation/log.ts'
import type { AgentCaller, Mode, Tenant } from '../foundation/caller.ts'
import { Failure } from '../foundation/failure.ts'
import type { Services } from '../operations/operation.ts'
import { perform } from '../operations/perform.ts'
import type { Database } from '../persistence/database.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'
import { reportProtectionEvents } from '../agents/journal/report-events.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { itemHead } from '../protection/items/item-sequence.ts'
import { recentlyUsed } from '../foundation/recently-used.ts'
import { findStore } from '../stores/queries.ts'
import type { AgentChannel, AgentCommand } from '../foundation/agent-channel.ts'
import type { Broker, BrokerHooks } from './embedded-broker.ts'
import { waitingBatches } from './waiting-batches.ts'

/**
 *   agent ── events ──▶ ingest ──▶ ack ──▶ agent          store changed, or a minute passed ──▶ fresh · policy · keys · deny
 *
 * What passes over the broker, beside what the broker itself does.
 */
export interface AgentMessages {
  readonly hooks: BrokerHooks
  readonly channel: AgentChannel
  /** Publishes the freshness of every store that has an agent connected, and what is newer than was told; `all`: everything anew. */
  refresh(what: 'news' | 'all'): Promise<void>
  /** Cuts the lines of agents that were revoked, by this process or another. */
  cutRevoked(): Promise<void>
  attach(broker: Broker): void
  /** Whether agents can connect to the broker. */
  isBrokerListening(): boolean
  /** Resolves when nothing is under way. */
  settled(): Promise<void>
}

/** Stores of which this process remembers what it published. Any other is published as a whole. */
const STORES_LIMIT = 10_000
/** Of the denials and of the items what is newer than was told goes to the broker, and so many before it, in case a message was lost. */
const TOLD_AGAIN = 8
/** At most so many: who lacks more fetches it. */
const TOLD_AT_ONCE = 100
/** What the broker keeps is signed anew so often, ms: it is valid for 80 hours. */
const TELL_ALL_MS = 3_600_000
/** What was told whole so lately the broker hands to whoever connects, ms: after an outage a store's agents come all at once. */
const STILL_TOLD_MS = 60_000

/** What the broker has of a store; agents miss nothing by it, for the freshness names the newest of each kind. */
interface Told {
  keys: string
  policy: string
  denySeq: number
  itemSeq: number
  allAtMs: number
}

/** Takes what agents publish, in the order in which each sent it. */
export function agentMessages(database: Database, services: () => Services): AgentMessages {
  let broker: Broker | undefined
  const batches = waitingBatches()
  const turns = new Map<string, Promise<void>>()
  const states = new Map<string, string>()
  const dirty = new Map<string, 'news' | 'all'>()
  const told = recentlyUsed<string, Told>(STORES_LIMIT)
  const telling = new Map<string, Promise<void>>()
  const underWay = new Set<Promise<void>>()

  let refusedBatches: LimitedLog | undefined
  const refusals = () =>
    (refusedBatches ??= limitedLog((fields, message) => services().log.warn(fields, message), services().platform))

  function track(work: Promise<void>): Promise<void> {
    const done = work
      .catch((error: unknown) => logJobFailure(services().log, error, 'messages to agents'))
      .finally(() => underWay.delete(done))
    underWay.add(done)
    return done
  }

  async function publishStore(storeId: string, what: 'news' | 'all'): Promise<void> {
    const store = await findStore(database.reads, storeId)
    if (!store || !broker) return
    const { authority, platform } = services()
    if (authority.clock.doubt() !== null) return
    const { keySet } = await authority.ready(store.tenant as Tenant)
    const policy = await policyOfStore(database.reads, store, services())
    const nowMs = platform.clock.elapsed()
    const before = told.get(storeId)
    const known = what === 'news' && before && nowMs - before.allAtMs < TELL_ALL_MS ? before : undefined
    const publish = (name: StoreTopic, payload: string) =>
      broker?.publish({ topic: storeTopic(storeId, name), payload, retain: true })
    const policyNow = `${authority.policySigner.kid} ${policy.hash}`
    if (known?.keys !== keySet.jws) publish('keys', keySet.jws)
    if (known?.policy !== policyNow) publish('policy', signPolicy(policy, services()))
    if (known?.denySeq !== store.deny_seq)
      publish(
        'deny',
        (await denyPage(database.reads, store, toldBehind(known?.denySeq, store.deny_seq), services())).jws,
      )
    const itemSeq = await tellItems(store, known?.itemSeq)
    // Last, so that whoever hears it can have the rest already.
    publish('fresh', await freshDocument(database.reads, store, services(), policy))
    told.set(storeId, {
      keys: keySet.jws,
      policy: policyNow,
      denySeq: store.deny_seq,
      itemSeq,
      allAtMs: known?.allAtMs ?? nowMs,
    })
  }

  /** The broker may have begun anew with nothing. */
  function connected(storeId: string): void {
    const before = told.get(storeId)
    if (!before || services().platform.clock.elapsed() - before.allAtMs >= STILL_TOLD_MS) storeChanged(storeId, 'all')
  }

  /** What is newer of the items than was told; answers how far that goes. */
  async function tellItems(store: StoreRow, before: number | undefined): Promise<number> {
    const { seq } = await itemHead(database.reads, store.store_id)
    if (seq === before) return seq
    const { jws, ver } = await itemPage(database.reads, store, toldBehind(before, seq), services())
    broker?.publish({ topic: storeTopic(store.store_id, 'items'), payload: jws, retain: true })
    return ver
  }

  async function publishItems(storeId: string): Promise<void> {
    const store = broker && (await findStore(database.reads, storeId))
    if (!store || !broker || services().authority.clock.doubt() !== null) return
    await services().authority.ready(store.tenant as Tenant)
    const known = told.get(storeId)
    const itemSeq = await tellItems(store, known?.itemSeq)
    broker.publish({
      topic: storeTopic(storeId, 'fresh'),
      payload: await freshDocument(database.reads, store, services()),
      retain: true,
    })
    if (known) told.set(storeId, { ...known, itemSeq: Math.max(itemSeq, known.itemSeq) })
  }

  /** Whoever asks while others wait to be told is told with them. */
  function itemsChanged(storeId: string): Promise<void> {
    const waiting = telling.get(storeId)
    if (waiting) return waiting
    const told = track(
      Promise.resolve().then(() => {
        telling.delete(storeId)
        return publishItems(storeId)
      }),
    )
    telling.set(storeId, told)
    return told
  }

  /** Changes that come together are told together. */
  function storeChanged(storeId: string, what: 'news' | 'all' = 'news'): void {
    const isUnderWay = dirty.has(storeId)
    if (!isUnderWay || what === 'all') dirty.set(storeId, what)
    if (isUnderWay) return
    void track(
      Promise.resolve().then(() => {
        const wanted = dirty.get(storeId) ?? what
        dirty.delete(storeId)
        return publishStore(storeId, wanted)
      }),
    )
  }

  function tell({ storeId, agentId }: AgentAddress, command: AgentCommand): void {
    if (!broker || services().authority.clock.doubt() !== null) return
    broker.publish({
      topic: agentTopic(storeId, agentId, 'command'),
      payload: commandDocument(agentId, command, services()),
      retain: false,
    })
  }

  async function refresh(what: 'news' | 'all'): Promise<void> {
    const stores = new Set([...(broker?.connected().values() ?? [])].map((agent) => agent.storeId))
    for (const storeId of stores) await publishStore(storeId, what)
  }

  /** One state of an agent is written at a time; of those that came meanwhile the last one counts. */
  function noteLater(agentId: string, payload: string): void {
    const isUnderWay = states.has(agentId)
    states.set(agentId, payload)
    if (isUnderWay) return
    void track(
      (async () => {
        for (let next: string | undefined = payload; next !== undefined; next = states.get(agentId)) {
          const state = next
          await database.write((db) => noteState(db, agentId, state))
          if (states.get(agentId) === state) states.delete(agentId)
        }
      })().finally(() => states.delete(agentId)),
    )
  }

  /**
   * Batches of one agent in the order in which they came. The one writer of SQLite keeps it by itself, and lets those that wait
   * share a commit; on PostgreSQL they would only get into each other's way.
   */
  function inTurn(agentId: string, work: () => Promise<void>): Promise<void> {
    if (database.dialect === 'sqlite') return work()
    const turn = (turns.get(agentId) ?? Promise.resolve()).then(work)
    const end = turn.catch(() => undefined).then(() => void (turns.get(agentId) === end && turns.delete(agentId)))
    turns.set(agentId, end)
    return turn
  }

  async function takeIn(from: AgentAddress, batch: string): Promise<void> {
    const agent = await findAgent(database.reads, from.agentId)
    if (!agent || agent.revoked_ms !== null) return
    const { platform } = services()
    const request = {
      operation: reportProtectionEvents,
      caller: callerOf(agent),
      input: { batch },
      older: false,
      idempotencyKey: undefined,
    }
    try {
      const { body } = await perform({ ...request, requestId: newId('req', platform) }, database, services())
      const { ack } = JSON.parse(body) as { ack: string }
      broker?.publish({ topic: agentTopic(from.storeId, from.agentId, 'ack'), payload: ack, retain: false })
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      refusals().write({ agentId: from.agentId, reason: error.message }, 'a batch was refused', from.agentId)
    }
  }

  return {
    channel: {
      storeChanged: (storeId) => storeChanged(storeId),
      itemsChanged,
      keysChanged: () => void track(refresh('all')),
      agentRevoked(agent) {
        // Should the line end before this is out, its next login tells it.
        tell(agent, { command: 'revoke' })
        broker?.disconnect(agent.agentId)
      },
      tell,
      isConnected: (agentId) => broker?.connected().has(agentId) ?? false,
    },
    isBrokerListening: () => broker?.isListening() ?? false,
    attach(attached) {
      broker = attached
      told.clear()
    },
    refresh,
    async cutRevoked() {
      const connected = [...(broker?.connected().keys() ?? [])]
      if (connected.length === 0) return
      for (const agentId of await revokedAmong(database.reads, connected)) broker?.disconnect(agentId)
    },
    async settled() {
      while (underWay.size > 0) await Promise.all(underWay)
    },
    hooks: {
      async authenticate(agentId, password) {
        const { platform } = services()
        try {
          const agent = await database.write((db) =>
            assertAgent({ db, services: services(), nowMs: platform.clock.wall() }, agentId, password),
          )
          services().lastSeen.note(agent.agent_id, platform.clock.wall())
          return { storeId: agent.store_id, agentId: agent.agent_id }
        } catch (error) {
          if (error instanceof Failure) return undefined
          throw error
        }
      },
      onConnected: (agent) => connected(agent.storeId),
      onActivity: (agentId) => services().lastSeen.note(agentId, services().platform.clock.wall()),
      onMessage(from, topic, payload) {
        const { name } = parseTopic(topic) ?? {}
        if (name === 'state') return noteLater(from.agentId, payload)
        if (name !== 'events') return
        const stored = batches.add(from.agentId)
        if (stored) void track(inTurn(from.agentId, () => takeIn(from, payload)).finally(stored))
      },
    },
  }
}

/** The number behind which the broker is told, when it has what goes up to `before`. */
function toldBehind(before: number | undefined, now: number): number {
  return Math.max(0, now - TOLD_AT_ONCE, Math.min(before ?? 0, now) - TOLD_AGAIN)
}

function callerOf(agent: AgentRow): AgentCaller {
  const [accountId = '', mode = 'test'] = agent.tenant.split('.')
  return {
    kind: 'agent',
    agentId: agent.agent_id,
    storeId: agent.store_id,
    ledgerId: agent.ledger_id,
    generation: agent.generation,
    accountId,
    mode: mode as Mode,
    tenant: agent.tenant as Tenant,
    package: 'PRIME',
  }
}
