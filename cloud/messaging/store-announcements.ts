import { storeTopic, type StoreTopic } from '../../policy/topics.ts'
import { denyPage, freshnessDocument } from '../agents/documents/freshness-and-denials.ts'
import { itemPage } from '../agents/documents/item-pages.ts'
import type { Tenant } from '../foundation/caller.ts'
import { lruCache } from '../foundation/lru-cache.ts'
import type { Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { itemHead } from '../protection/items/item-sequence.ts'
import { policyOfStore, signPolicy } from '../protection/store-policy/store-policy.ts'
import { findStore } from '../stores/queries.ts'
import type { Broker } from './embedded-broker.ts'
import type { BackgroundTasks } from './background-tasks.ts'

/** Stores of which this process remembers what it published. Any other is published as a whole. */
const STORES_LIMIT = 10_000
/** Of the denials and of the items what is newer than was told goes to the broker, and so many before it, in case a message was lost. */
const REPUBLISHED_ENTRIES = 8
/** At most so many: who lacks more fetches it. */
const PAGE_LIMIT = 100
/** What the broker keeps is signed anew so often, ms: it is valid for 80 hours. */
const REPUBLISH_ALL_MS = 3_600_000
/** What was told whole so lately the broker hands to whoever connects, ms: after an outage a store's agents come all at once. */
const STILL_CURRENT_MS = 60_000

/** What the broker has of a store; agents miss nothing by it, for the freshness names the newest of each kind. */
interface PublishedState {
  keys: string
  policy: string
  denySeq: number
  itemSeq: number
  allAtMs: number
}

/** `news`: what is newer than was published; `all`: everything anew. */
export type AnnouncementScope = 'news' | 'all'

export interface AnnouncementParts {
  database: Database
  services: () => Services
  tasks: BackgroundTasks
}

/** Publishes the documents of stores that agents need: keys, policy, denials, items and their freshness. */
export class StoreAnnouncements {
  readonly #database: Database
  readonly #services: () => Services
  readonly #underWay: BackgroundTasks
  readonly #told = lruCache<string, PublishedState>(STORES_LIMIT)
  readonly #dirty = new Map<string, AnnouncementScope>()
  readonly #telling = new Map<string, Promise<void>>()
  #broker: Broker | undefined

  constructor({ database, services, tasks }: AnnouncementParts) {
    this.#database = database
    this.#services = services
    this.#underWay = tasks
  }

  /** A broker has nothing yet. */
  attach(broker: Broker): void {
    this.#broker = broker
    this.#told.clear()
  }

  /** Changes that come together are told together. */
  storeChanged(storeId: string, what: AnnouncementScope = 'news'): void {
    const isUnderWay = this.#dirty.has(storeId)
    if (!isUnderWay || what === 'all') this.#dirty.set(storeId, what)
    if (isUnderWay) return
    void this.#underWay.track(
      Promise.resolve().then(() => {
        const wanted = this.#dirty.get(storeId) ?? what
        this.#dirty.delete(storeId)
        return this.#publishStore(storeId, wanted)
      }),
    )
  }

  /** Whoever asks while others wait to be told is told with them. */
  itemsChanged(storeId: string): Promise<void> {
    const waiting = this.#telling.get(storeId)
    if (waiting) return waiting
    const told = this.#underWay.track(
      Promise.resolve().then(() => {
        this.#telling.delete(storeId)
        return this.#publishItems(storeId)
      }),
    )
    this.#telling.set(storeId, told)
    return told
  }

  /** An agent has connected. The broker may have begun anew with nothing. */
  connected(storeId: string): void {
    const before = this.#told.get(storeId)
    if (!before || this.#services().platform.clock.elapsed() - before.allAtMs >= STILL_CURRENT_MS)
      this.storeChanged(storeId, 'all')
  }

  /** Publishes every store that has an agent connected. */
  async refresh(what: AnnouncementScope): Promise<void> {
    const stores = new Set([...(this.#broker?.connected().values() ?? [])].map((agent) => agent.storeId))
    for (const storeId of stores) await this.#publishStore(storeId, what)
  }

  async #publishStore(storeId: string, what: AnnouncementScope): Promise<void> {
    const { reads } = this.#database
    const services = this.#services()
    const { authority, platform } = services
    const store = await findStore(reads, storeId)
    if (!store || !this.#broker) return
    if (authority.clock.untrustedReason() !== null) return
    const { keySet } = await authority.ready(store.tenant as Tenant)
    const policy = await policyOfStore(reads, store, services)
    const nowMs = platform.clock.elapsed()
    const before = this.#told.get(storeId)
    const known = what === 'news' && before && nowMs - before.allAtMs < REPUBLISH_ALL_MS ? before : undefined
    const policyNow = `${authority.policySigner.kid} ${policy.hash}`
    if (known?.keys !== keySet.jws) this.#publish(storeId, 'keys', keySet.jws)
    if (known?.policy !== policyNow) this.#publish(storeId, 'policy', signPolicy(policy, services))
    if (known?.denySeq !== store.deny_seq) {
      const { jws } = await denyPage(reads, store, pageStart(known?.denySeq, store.deny_seq), services)
      this.#publish(storeId, 'deny', jws)
    }
    const itemSeq = await this.#tellItems(store, known?.itemSeq)
    // Last, so that whoever hears it can have the rest already.
    this.#publish(storeId, 'fresh', await freshnessDocument(reads, store, services, policy))
    this.#told.set(storeId, {
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
    const known = this.#told.get(storeId)
    const itemSeq = await this.#tellItems(store, known?.itemSeq)
    this.#publish(storeId, 'fresh', await freshnessDocument(this.#database.reads, store, services))
    if (known) this.#told.set(storeId, { ...known, itemSeq: Math.max(itemSeq, known.itemSeq) })
  }

  /** What is newer of the items than was told; answers how far that goes. */
  async #tellItems(store: StoreRow, before: number | undefined): Promise<number> {
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

/** The number behind which the broker is told, when it has what goes up to `before`. */
function pageStart(before: number | undefined, now: number): number {
  return Math.max(0, now - PAGE_LIMIT, Math.min(before ?? 0, now) - REPUBLISHED_ENTRIES)
}
