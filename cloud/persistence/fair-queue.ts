import { DatabaseBusy } from './database.ts'

/** Maximum number of waiting transactions or reads, in total and of one holder. */
const QUEUE_LIMIT = 10_000
const QUEUE_LIMIT_OF_ONE = 4_000

/**
 * Waiting transactions or reads. The queue takes turns between holders, so that one with many entries delays others by one entry at most.
 * Entries of one holder keep their order.
 */
export class FairQueue<T> {
  /** Entries of each holder that has some. The first holder has the next turn. */
  readonly #byHolder = new Map<string, T[]>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Throws `DatabaseBusy` if too many entries wait, in total or of this holder. */
  add(holder: string, entry: T): void {
    const own = this.#byHolder.get(holder)
    if (this.#size >= QUEUE_LIMIT || (own?.length ?? 0) >= QUEUE_LIMIT_OF_ONE)
      throw new DatabaseBusy('too many requests wait for the database')
    if (own) own.push(entry)
    else this.#byHolder.set(holder, [entry])
    this.#size++
  }

  /** Removes and returns the first entry of the holder whose turn it is. */
  take(): T | undefined {
    return this.takeIf(() => true)?.entry
  }

  /** True if an entry of this holder waits. */
  has(holder: string): boolean {
    return this.#byHolder.has(holder)
  }

  /** Like `take`, but skips holders that may not begin. */
  takeIf(mayBegin: (holder: string) => boolean): { holder: string; entry: T } | undefined {
    for (const [holder, own] of this.#byHolder) {
      if (!mayBegin(holder)) continue
      const entry = own.shift() as T
      this.#byHolder.delete(holder)
      if (own.length > 0) this.#byHolder.set(holder, own)
      this.#size--
      return { holder, entry }
    }
    return undefined
  }

  /** Removes and returns all entries. */
  takeAll(): T[] {
    const all = [...this.#byHolder.values()].flat()
    this.#byHolder.clear()
    this.#size = 0
    return all
  }
}

/**
 * Runs at most `size` tasks at the same time, and at most `ofOne` of one holder, so that others need not wait for its
 * long tasks. Holders that wait take turns.
 */
export function fairSlots(size: number, ofOne = size): <T>(holder: string, task: () => Promise<T>) => Promise<T> {
  const waiting = new FairQueue<() => void>()
  const own = new Map<string, number>()
  let atWork = 0

  function occupy(holder: string, change: 1 | -1): void {
    atWork += change
    const left = (own.get(holder) ?? 0) + change
    if (left > 0) own.set(holder, left)
    else own.delete(holder)
  }
  const mayBegin = (holder: string) => atWork < size && (own.get(holder) ?? 0) < ofOne

  return async (holder, task) => {
    if (mayBegin(holder) && !waiting.has(holder)) occupy(holder, 1)
    else await new Promise<void>((resolve) => waiting.add(holder, resolve))
    try {
      return await task()
    } finally {
      occupy(holder, -1)
      for (;;) {
        const next = waiting.takeIf(mayBegin)
        if (!next) break
        occupy(next.holder, 1)
        next.entry()
      }
    }
  }
}

/**
 * Starts one task in each turn of the event loop, for tasks that block the process while they run. Holders that wait
 * take turns, and other events run in between.
 */
export function fairTurns(): <T>(holder: string, task: () => Promise<T>) => Promise<T> {
  const waiting = new FairQueue<() => void>()
  let isTaken = false
  function next(): void {
    const start = waiting.take()
    if (start) setImmediate(next)
    else isTaken = false
    start?.()
  }
  return async (holder, task) => {
    if (isTaken) await new Promise<void>((resolve) => waiting.add(holder, resolve))
    else {
      isTaken = true
      setImmediate(next)
    }
    return task()
  }
}
