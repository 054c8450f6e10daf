import { createHash } from 'node:crypto'
import type { Clock } from '../../policy/platform.ts'

/** Interval at which each cloud process announces itself, ms. */
export const ANNOUNCE_MS = 5_000
/** A process that was silent for this time counts as ended, ms. */
const SILENCE_MS = 3 * ANNOUNCE_MS
/** Maximum number of other processes. */
const MEMBERS_LIMIT = 256

/**
 * The cloud processes at one outside broker. Each store has one owner among these processes, and every process computes
 * the same owner. While processes know different members, a store may have no owner or two owners. A missing or second
 * owner only delays or repeats work: agents send an unacknowledged batch again over HTTP, and the cloud applies each
 * row once.
 */
export class CloudMembers {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #own: string
  readonly #seenMs = new Map<string, number>()

  constructor(own: string, clock: Pick<Clock, 'elapsed'>) {
    this.#own = own
    this.#clock = clock
  }

  /** Notes an announcement. Returns true if the process was unknown. */
  add(member: string): boolean {
    if (member === this.#own) return false
    const isNew = !this.#seenMs.has(member)
    if (isNew && this.#seenMs.size >= MEMBERS_LIMIT) return false
    this.#seenMs.set(member, this.#clock.elapsed())
    return isNew
  }

  /** Removes a process that stops. */
  remove(member: string): void {
    this.#seenMs.delete(member)
  }

  /** True if this process owns the store: it has the highest hash of process and store. */
  owns(storeId: string): boolean {
    this.#dropSilent()
    const own = weight(this.#own, storeId)
    for (const member of this.#seenMs.keys()) if (weight(member, storeId) > own) return false
    return true
  }

  #dropSilent(): void {
    const sinceMs = this.#clock.elapsed() - SILENCE_MS
    for (const [member, seenMs] of this.#seenMs) if (seenMs < sinceMs) this.#seenMs.delete(member)
  }
}

function weight(member: string, storeId: string): string {
  return createHash('sha256').update(`${member}/${storeId}`).digest('hex')
}
