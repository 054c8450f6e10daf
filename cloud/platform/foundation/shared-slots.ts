import assert from 'node:assert/strict'
import type { Caller } from './caller.ts'
import { Failure } from './failure.ts'

/** A cache that drops the least recently used entry. */
interface LruCache<K, V> {
  get(key: K): V | undefined
  set(key: K, value: V): void
  delete(key: K): void
  clear(): void
  readonly size: number
}

/** Makes a cache of at most `limit` entries. */
export function lruCache<K, V>(limit: number): LruCache<K, V> {
  /** The most recently used entry is last. */
  const entries = new Map<K, V>()

  function put(key: K, value: V): void {
    entries.delete(key)
    entries.set(key, value)
  }

  return {
    get(key) {
      const value = entries.get(key)
      if (value !== undefined) put(key, value)
      return value
    },
    set(key, value) {
      put(key, value)
      const [oldest] = entries.keys()
      if (entries.size > limit && oldest !== undefined) entries.delete(oldest)
    },
    delete: (key) => void entries.delete(key),
    clear: () => entries.clear(),
    get size() {
      return entries.size
    },
  }
}

/** Takes a part of a shared amount for a holder. Returns a function that gives it back; undefined if it does not fit. */
export type Shares = (holder: string, amount?: number) => (() => void) | undefined

interface ShareLimits {
  readonly ofOne: number
  readonly total: number
}

/**
 * How much a holder that has `own` may have in all, if `free` is left. Never more than stays free afterwards for the
 * others, so that many holders together leave room, too (dynamic thresholds: Choudhury and Hahne, 1998).
 */
export function mayHave({ ofOne, total }: ShareLimits, own: number, free: number): number {
  assert(free <= total, 'more is free than there is')
  return Math.min(ofOne, own + free, Math.floor((own + free + 1) / 2))
}

/** An amount that holders share, so that none of them can refuse the others. Each gets at most `ofOne`. */
export function shares(limits: ShareLimits): Shares {
  const taken = new Map<string, number>()
  let total = 0
  return (holder, amount = 1) => {
    const own = taken.get(holder) ?? 0
    if (own + amount > mayHave(limits, own, limits.total - total)) return undefined
    taken.set(holder, own + amount)
    total += amount
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      total -= amount
      const left = (taken.get(holder) ?? 0) - amount
      if (left > 0) taken.set(holder, left)
      else taken.delete(holder)
    }
  }
}

/** Maximum numbers of tasks, in total and of one holder. */
export interface SlotLimits {
  readonly atWork: number
  readonly atWorkOfOne: number
  readonly waiting: number
  readonly waitingOfOne: number
}

/** Runs a task in a slot of the holder. Rejects with 503 if too many tasks wait. */
type SharedSlots = <T>(holder: string, task: () => Promise<T>) => Promise<T>

/** The holder for a caller: its account, or the network of an anonymous caller. */
export function holderOf(caller: Caller): string {
  return caller.kind === 'anyone' ? caller.address : caller.accountId
}

/**
 * Slots for expensive tasks, shared by all accounts of this process. One holder can take only a share of the slots and
 * of the places in the queue. A free slot goes to the holder with the fewest tasks at work, and first to the task that
 * waits for longest. So one account delays others by one task at most.
 */
export function sharedSlots(limits: SlotLimits, busy: { text: string; retryAfter: number }): SharedSlots {
  const atWork = new Map<string, number>()
  const takeSlot = shares({ ofOne: limits.atWorkOfOne, total: limits.atWork })
  const takePlace = shares({ ofOne: limits.waitingOfOne, total: limits.waiting })
  const waiting = new Set<{ readonly holder: string; readonly start: (release: () => void) => void }>()
  const workOf = (holder: string) => atWork.get(holder) ?? 0

  /** Takes a slot. Returns a function that gives it to the next task. */
  function occupy(holder: string): (() => void) | undefined {
    const release = takeSlot(holder)
    if (!release) return undefined
    atWork.set(holder, workOf(holder) + 1)
    return () => {
      release()
      const left = workOf(holder) - 1
      if (left > 0) atWork.set(holder, left)
      else atWork.delete(holder)
      startNext()
    }
  }

  function startNext(): void {
    for (const next of [...waiting].sort((a, b) => workOf(a.holder) - workOf(b.holder))) {
      const release = occupy(next.holder)
      if (!release) continue
      waiting.delete(next)
      next.start(release)
    }
  }

  /** Waits for a slot. */
  async function wait(holder: string): Promise<() => void> {
    const leave = takePlace(holder)
    if (!leave) throw new Failure('unavailable', busy.text, { retryAfter: busy.retryAfter })
    return new Promise<() => void>((start) => waiting.add({ holder, start })).finally(leave)
  }

  return async (holder, task) => {
    const release = occupy(holder) ?? (await wait(holder))
    try {
      return await task()
    } finally {
      release()
    }
  }
}
