import { afterFreeTurns } from '../../../policy/free-turns.ts'
import type { Clock } from '../../../policy/platform.ts'
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

  /** Removes and returns the first entry of the holder whose turn it is, of those that `mayStart`. */
  take(mayStart: (holder: string) => boolean = () => true): T | undefined {
    for (const [holder, own] of this.#byHolder) {
      if (!mayStart(holder)) continue
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

/**
 * Starts one task in a turn of the event loop, for tasks that block the process while they run. Holders that wait take
 * turns, and other events run in between.
 */
export function fairTurns(clock: Pick<Clock, 'elapsed'>): <T>(holder: string, task: () => Promise<T>) => Promise<T> {
  const waiting = new FairQueue<() => void>()
  let isTaken = false
  const next = () => {
    const start = waiting.take()
    isTaken = start !== undefined
    if (!start) return
    beginTurn()
    start()
  }
  /** The task runs until the next turn of the event loop begins. */
  const beginTurn = () => {
    const startMs = clock.elapsed()
    setImmediate(() => afterFreeTurns(clock, startMs, next))
  }
  return async (holder, task) => {
    if (isTaken) await new Promise<void>((resolve) => waiting.add(holder, resolve))
    else {
      isTaken = true
      beginTurn()
    }
    return task()
  }
}

/** Time for which a holder counts as active after its last task, ms. */
const ACTIVE_MS = 1_000

interface SlotOptions {
  /** Tasks at the same time. */
  readonly size: number
  /** Most of them of one holder, while others are active. The holder '' has no limit: these are tasks of the cloud. */
  readonly share: number
  readonly clock: Pick<Clock, 'elapsed'>
  /** True if a slot rests after its task (`afterFreeTurns`), because the tasks block the process. */
  readonly rests?: boolean
}

/** Runs a limited number of tasks at the same time. Holders that wait take turns. */
export function fairSlots({
  size,
  share,
  clock,
  rests = false,
}: SlotOptions): <T>(holder: string, task: () => Promise<T>) => Promise<T> {
  const waiting = new FairQueue<() => void>()
  const ownOf = new Map<string, number>()
  let atWork = 0
  /** The two holders that came last. */
  let [last, other] = [
    { holder: '', atMs: 0 },
    { holder: '', atMs: 0 },
  ]
  function note(holder: string): void {
    if (holder === '') return
    if (last.holder !== holder) other = last
    last = { holder, atMs: clock.elapsed() }
  }
  const mayStart = (holder: string) => {
    const rival = last.holder === holder ? other : last
    const isAlone = rival.holder === '' || clock.elapsed() - rival.atMs > ACTIVE_MS
    return holder === '' || isAlone || (ownOf.get(holder) ?? 0) < share
  }
  const take = (holder: string) => void (atWork++, ownOf.set(holder, (ownOf.get(holder) ?? 0) + 1))
  function release(holder: string): void {
    atWork--
    const own = (ownOf.get(holder) ?? 0) - 1
    if (own > 0) ownOf.set(holder, own)
    else ownOf.delete(holder)
    while (atWork < size) {
      const start = waiting.take(mayStart)
      if (!start) return
      start()
    }
  }
  return async (holder, task) => {
    note(holder)
    if (atWork < size && mayStart(holder)) take(holder)
    else await new Promise<void>((resolve) => waiting.add(holder, () => resolve(take(holder))))
    const startMs = clock.elapsed()
    try {
      return await task()
    } finally {
      if (rests) afterFreeTurns(clock, startMs, () => release(holder))
      else release(holder)
    }
  }
}
