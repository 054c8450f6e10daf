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

/** An amount that holders share. Each of them gets at most `ofOne`, so that it cannot refuse the others. */
export function shares(limits: { readonly ofOne: number; readonly total: number }): Shares {
  const taken = new Map<string, number>()
  let total = 0
  return (holder, amount = 1) => {
    const own = taken.get(holder) ?? 0
    if (own + amount > limits.ofOne || total + amount > limits.total) return undefined
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
  const waiting: { readonly holder: string; readonly start: () => void }[] = []
  let total = 0
  const workOf = (holder: string) => atWork.get(holder) ?? 0
  const isFree = (holder: string) => total < limits.atWork && workOf(holder) < limits.atWorkOfOne

  function occupy(holder: string, change: 1 | -1): void {
    total += change
    const left = workOf(holder) + change
    if (left > 0) atWork.set(holder, left)
    else atWork.delete(holder)
  }

  function startNext(): void {
    const free = waiting.filter(({ holder }) => isFree(holder))
    const [first, ...others] = free
    if (!first) return
    const next = others.reduce((best, each) => (workOf(each.holder) < workOf(best.holder) ? each : best), first)
    waiting.splice(waiting.indexOf(next), 1)
    occupy(next.holder, 1)
    next.start()
  }

  return async (holder, task) => {
    if (isFree(holder)) occupy(holder, 1)
    else {
      const own = waiting.filter((each) => each.holder === holder).length
      if (waiting.length >= limits.waiting || own >= limits.waitingOfOne)
        throw new Failure('unavailable', busy.text, { retryAfter: busy.retryAfter })
      await new Promise<void>((resolve) => waiting.push({ holder, start: resolve }))
    }
    try {
      return await task()
    } finally {
      occupy(holder, -1)
      startNext()
    }
  }
}
