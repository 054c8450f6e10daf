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
    for (const [holder, own] of this.#byHolder) {
      const entry = own.shift()
      this.#byHolder.delete(holder)
      if (own.length > 0) this.#byHolder.set(holder, own)
      this.#size--
      return entry
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

/** Runs at most `size` tasks at the same time. Holders that wait take turns. */
export function fairSlots(size: number): <T>(holder: string, task: () => Promise<T>) => Promise<T> {
  const waiting = new FairQueue<() => void>()
  let atWork = 0
  return async (holder, task) => {
    if (atWork < size) atWork++
    else await new Promise<void>((resolve) => waiting.add(holder, resolve))
    try {
      return await task()
    } finally {
      const next = waiting.take()
      if (next) next()
      else atWork--
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
