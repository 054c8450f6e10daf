import { storeTopic, type StoreTopic } from '../../../policy/mqtt-topics.ts'
import { denyPage, freshnessDocument } from '../../protection/agents/documents/freshness-and-denials.ts'
import { itemPage } from '../../protection/agents/documents/item-pages.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import { lruCache } from '../../platform/foundation/shared-slots.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { yieldToEventLoop } from '../../platform/operations/job-steps.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { itemHead } from '../../protection/items/item-sequence.ts'
import { policyDocumentOf, signPolicy } from '../../protection/store-policy/policy-document.ts'
import { findStore } from '../../platform/stores/queries.ts'
import type { AgentBroker } from './embedded-broker.ts'
import type { BackgroundTasks } from './broker-connection.ts'

/**
 * Maximum number of stores whose published versions are in memory. For other stores, each publication contains all
 * documents.
 */
const STORES_LIMIT = 10_000
/**
 * Number of earlier entries (deny list, items) that each message repeats before the new entries, because the previous
 * message may have been lost.
 */
const REPUBLISHED_ENTRIES = 8
/** Maximum number of entries in one message; agents fetch older ones. */
const PAGE_LIMIT = 100
/** Retained documents are signed again after this time, ms. A document is valid for 80 h after signing. */
const REPUBLISH_ALL_MS = 3_600_000
/**
 * When an agent connects, the cloud publishes all documents of the store, unless the cloud published all of them less
 * than this time ago, ms. After an outage all agents of a store connect at once.
 */
const STILL_CURRENT_MS = 60_000

/**
 * Versions that this process published for a store. The freshness document names the newest versions, so that agents
 * detect gaps.
 */
interface PublishedState {
  keys: string
  policy: string
  denySeq: number
  itemSeq: number
  allAtMs: number
}

/** `changed`: changed documents; `all`: all documents. */
export type AnnouncementScope = 'changed' | 'all'

interface AnnouncementParts {
  database: Database
  services: () => Services
  tasks: BackgroundTasks
}

/** Publishes the documents of stores to agents: keys, policy, deny list, items and freshness. */
export class StoreAnnouncements {
  readonly #database: Database
  readonly #services: () => Services
  readonly #tasks: BackgroundTasks
  readonly #published = lruCache<string, PublishedState>(STORES_LIMIT)
  readonly #dirty = new Map<string, AnnouncementScope>()
  readonly #pendingItems = new Map<string, Promise<void>>()
  #isPublishing = false
  #broker: AgentBroker | undefined

  constructor({ database, services, tasks }: AnnouncementParts) {
    this.#database = database
    this.#services = services
    this.#tasks = tasks
  }

  /**
   * Sets a new broker, which may have no retained documents, so all documents are published again. Undefined if this
   * process has no broker.
   */
  attach(broker: AgentBroker | undefined): void {
    this.#broker = broker
    this.#published.clear()
  }

  /**
   * Publishes the documents of a store. One publication covers all calls within one turn of the event loop. One change
   * may concern thousands of stores, so each of them has a turn of its own.
   */
  storeChanged(storeId: string, what: AnnouncementScope = 'changed'): void {
    if (what === 'all' || !this.#dirty.has(storeId)) this.#dirty.set(storeId, what)
    if (this.#isPublishing) return
    this.#isPublishing = true
    void this.#tasks.track(Promise.resolve().then(() => this.#publishDirty()))
  }

  async #publishDirty(): Promise<void> {
    let heard = this.#storesWithAgents()
    for (const [storeId, what] of this.#dirty) {
      this.#dirty.delete(storeId)
      // An agent that connects later receives all documents.
      if (what === 'changed' && !heard.has(storeId)) this.#published.delete(storeId)
      else {
        await this.#tasks.track(this.#publishStore(storeId, what))
        await yieldToEventLoop()
        heard = this.#storesWithAgents()
      }
    }
    this.#isPublishing = false
  }

  #storesWithAgents(): ReadonlySet<string> {
    return new Set([...(this.#broker?.connected().values() ?? [])].map((agent) => agent.storeId))
  }

  /** Publishes changed items of a store. Calls within one turn of the event loop share one message. */
  itemsChanged(storeId: string): Promise<void> {
    const waiting = this.#pendingItems.get(storeId)
    if (waiting) return waiting
    const published = this.#tasks.track(
      Promise.resolve().then(() => {
        this.#pendingItems.delete(storeId)
        return this.#publishItems(storeId)
      }),
    )
    this.#pendingItems.set(storeId, published)
    return published
  }

  /**
   * Publishes all documents of the store after one of its agents connected, because a restarted broker has lost its
   * retained messages.
   */
  connected(storeId: string): void {
    if (!this.#owns(storeId)) return
    const before = this.#published.get(storeId)
    if (!before || this.#services().platform.clock.elapsed() - before.allAtMs >= STILL_CURRENT_MS)
      this.storeChanged(storeId, 'all')
  }

  /** Publishes the documents of every store that this process owns and that has a connected agent. */
  async refresh(what: AnnouncementScope): Promise<void> {
    for (const storeId of this.#storesWithAgents()) {
      if (!this.#owns(storeId)) continue
      await this.#publishStore(storeId, what)
      await yieldToEventLoop()
    }
  }

  #owns(storeId: string): boolean {
    return this.#broker?.owns?.(storeId) ?? true
  }

  async #publishStore(storeId: string, what: AnnouncementScope): Promise<void> {
    const { reads } = this.#database
    const services = this.#services()
    const { authority, platform } = services
    const store = await findStore(reads, storeId)
    if (!store || !this.#broker) return
    if (authority.clock.untrustedReason() !== null) return
    const { keySet } = await authority.ready(store.tenant as Tenant)
    const policy = await policyDocumentOf(reads, store, services)
    const nowMs = platform.clock.elapsed()
    const before = this.#published.get(storeId)
    const known = what === 'changed' && before && nowMs - before.allAtMs < REPUBLISH_ALL_MS ? before : undefined
    const policyNow = `${authority.policySigner.kid} ${policy.hash}`
    if (known?.keys !== keySet.jws) this.#publish(storeId, 'keys', keySet.jws)
    if (known?.policy !== policyNow) this.#publish(storeId, 'policy', signPolicy(policy, services))
    if (known?.denySeq !== store.deny_seq) {
      const { jws } = await denyPage(reads, store, pageStart(known?.denySeq, store.deny_seq), services)
      this.#publish(storeId, 'deny', jws)
    }
    const itemSeq = await this.#publishNewItems(store, known?.itemSeq)
    // The freshness comes last, so that agents already have the documents that it names.
    this.#publish(storeId, 'fresh', await freshnessDocument(reads, store, services, policy))
    this.#published.set(storeId, {
      keys: keySet.jws,
      policy: policyNow,
      denySeq: store.deny_seq,
      itemSeq,
      allAtMs: known?.allAtMs ?? nowMs,
    })
  }

  async #publishItems(storeId: string): Promise<void> {
    const services = this.#services()
    const store = this.#broker && (await findStore(this.#database.reads, storeId))
    if (!store || !this.#broker || services.authority.clock.untrustedReason() !== null) return
    await services.authority.ready(store.tenant as Tenant)
    const known = this.#published.get(storeId)
    const itemSeq = await this.#publishNewItems(store, known?.itemSeq)
    this.#publish(storeId, 'fresh', await freshnessDocument(this.#database.reads, store, services))
    if (known) this.#published.set(storeId, { ...known, itemSeq: Math.max(itemSeq, known.itemSeq) })
  }

  /** Publishes items that are newer than `before`. Resolves to the published version. */
  async #publishNewItems(store: Row<'store'>, before: number | undefined): Promise<number> {
    const { reads } = this.#database
    const { seq } = await itemHead(reads, store.store_id)
    if (seq === before) return seq
    const { jws, ver } = await itemPage(reads, store, pageStart(before, seq), this.#services())
    this.#publish(store.store_id, 'items', jws)
    return ver
  }

  #publish(storeId: string, name: StoreTopic, payload: string): void {
    this.#broker?.publish({ topic: storeTopic(storeId, name), payload, retain: true })
  }
}

/** Version after which a page of entries starts, if entries up to `before` are already published. */
function pageStart(before: number | undefined, now: number): number {
  return Math.max(0, now - PAGE_LIMIT, Math.min(before ?? 0, now) - REPUBLISHED_ENTRIES)
}
