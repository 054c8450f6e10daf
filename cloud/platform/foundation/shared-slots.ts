import type { Caller } from './caller.ts'
import { Failure } from './failure.ts'

/** Maximum numbers of tasks, in total and of one holder. */
export interface SlotLimits {
  readonly atWork: number
  readonly atWorkOfOne: number
  readonly waiting: number
  readonly waitingOfOne: number
}

/** Runs a task in a slot of the holder. Rejects with 503 if too many tasks wait. */
export type SharedSlots = <T>(holder: string, task: () => Promise<T>) => Promise<T>

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
