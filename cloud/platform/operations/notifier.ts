import type { Db } from '../persistence/database.ts'
import { accountOf, type Caller } from '../foundation/caller.ts'
import type { SiblingChange, Siblings } from '../foundation/ports.ts'
import type { Platform } from '../../../policy/platform.ts'
import { shares } from '../foundation/shared-slots.ts'

/** Time between two messages to the other workers, ms. */
const SHARE_MS = 50
/** Maximum number of different changes in one message to the other workers. The others are dropped. */
const SHARED_LIMIT = 2_000
/** Maximum number of listeners of an account, and of a process: one for each open page of the console with live data. */
export const LISTENERS = { ofOne: 500, total: 2_000 }

/** Changes that a listener wants to know of. */
export interface ChangeFilter {
  readonly tenant: string
  readonly topics: ReadonlySet<string>
  /** Stores that the page shows; null: all stores. */
  readonly storeIds: ReadonlySet<string> | null
}

/** A committed change of an operation. */
interface CommittedChange {
  /** Area of the operation; undefined if the change refreshes no page of the area. */
  readonly area: string | undefined
  /** Stores that the operation read with the caller's rights. */
  readonly storeIds: Iterable<string>
  readonly events: readonly { readonly type: string; readonly storeId: string | null }[]
}

/**
 *   commit ─▶ publish ─▶ listeners of this process
 *                   └──▶ siblings ─▶ listeners of the other workers
 *
 * Tells open pages that data changed after a commit. A message carries no data: the page reads again with the rights of
 * its user. A message may be lost, so pages also read regularly.
 */
export class ChangeFeed {
  readonly #platform: Pick<Platform, 'timers'>
  readonly #siblings: Siblings | undefined
  readonly #listeners = new Map<string, Set<{ filter: ChangeFilter; notify: () => void }>>()
  readonly #take = shares(LISTENERS)
  /** Number of the last change of each tenant with listeners. */
  readonly #versions = new Map<string, number>()
  #changes = 0
  #shared = new Map<string, SiblingChange>()

  constructor(platform: Pick<Platform, 'timers'>, siblings: Siblings | undefined) {
    this.#platform = platform
    this.#siblings = siblings
    siblings?.subscribe((message) => {
      if (message.kind === 'changed') for (const change of message.changes) this.#notify(change)
    })
  }

  /**
   * Calls `notify` after each matching change. Returns a function that ends this, or undefined if the account or the
   * process has too many listeners.
   */
  subscribe(filter: ChangeFilter, notify: () => void): (() => void) | undefined {
    const release = this.#take(accountOf(filter.tenant))
    if (!release) return undefined
    const listener = { filter, notify }
    const own = this.#listeners.get(filter.tenant) ?? new Set()
    this.#listeners.set(filter.tenant, own.add(listener))
    return () => {
      if (!own.delete(listener)) return
      release()
      if (own.size > 0 || this.#listeners.get(filter.tenant) !== own) return
      this.#listeners.delete(filter.tenant)
      this.#versions.delete(filter.tenant)
    }
  }

  /** A number that differs after each change of a tenant with listeners. 0: no change since the first of them came. */
  versionOf(tenant: string): number {
    return this.#versions.get(tenant) ?? 0
  }

  /**
   * Publishes a committed change. Its area changed in the stores that the operation read and in those of its events,
   * else in all stores of the caller. A change that names no store reaches the pages of all stores.
   */
  publish(caller: Caller, { area, storeIds, events }: CommittedChange): void {
    if (caller.kind === 'anyone' || (this.#listeners.size === 0 && !this.#siblings)) return
    const { tenant } = caller
    const named = new Set<string | null>([...storeIds, ...events.flatMap(({ storeId }) => storeId ?? [])])
    const stores = named.size > 0 ? named : caller.kind === 'agent' ? [caller.storeId] : (caller.storeIds ?? [null])
    if (area !== undefined) for (const storeId of stores) this.#publish({ tenant, topic: area, storeId })
    for (const event of events) this.#publish({ tenant, topic: event.type, storeId: event.storeId })
  }

  #publish(change: SiblingChange): void {
    this.#notify(change)
    if (!this.#siblings || this.#shared.size >= SHARED_LIMIT) return
    if (this.#shared.size === 0) this.#platform.timers.after(SHARE_MS, () => this.#share())
    this.#shared.set(`${change.tenant} ${change.topic} ${change.storeId}`, change)
  }

  #share(): void {
    const changes = [...this.#shared.values()]
    this.#shared = new Map()
    this.#siblings?.send({ kind: 'changed', changes })
  }

  #notify({ tenant, topic, storeId }: SiblingChange): void {
    if (this.#listeners.has(tenant)) this.#versions.set(tenant, ++this.#changes)
    for (const { filter, notify } of this.#listeners.get(tenant) ?? [])
      if (filter.topics.has(topic) && (storeId === null || (filter.storeIds?.has(storeId) ?? true))) notify()
  }
}

/** Waits a limited time until the lease holders give up their tokens. Reads committed data. Never rejects. */
export type WaitForRelease = (reads: Db) => Promise<void>

/**
 * Thrown to roll the transaction back. `perform` then stores the recall in its own transaction, waits, and runs the
 * operation again.
 */
export class LeaseRecallNeeded extends Error {
  override name = 'LeaseRecallNeeded'
  readonly recall: (db: Db) => Promise<WaitForRelease>
  constructor(recall: (db: Db) => Promise<WaitForRelease>) {
    super('a lease must be recalled before the operation can run')
    this.recall = recall
  }
}

/** Notifies jobs of this process of new work. A lost notification only delays work, because jobs also poll. */
export interface Notifier {
  notify(): void
  /** Runs `task` at each notification. Call the returned function to unsubscribe. */
  subscribe(task: () => void): () => void
}

/** Makes a notifier without subscribers. */
export function notifier(): Notifier {
  const tasks = new Set<() => void>()
  return {
    notify: () => {
      for (const task of tasks) task()
    },
    subscribe(task) {
      tasks.add(task)
      return () => void tasks.delete(task)
    },
  }
}
