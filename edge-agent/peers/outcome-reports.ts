import { retryDelays, type Cancel, type Platform } from '../../policy/platform.ts'
import type { HomeWord } from '../ledger/home/stored-home-requests.ts'
import type { Ledger } from '../ledger/ledger.ts'

/**
 *   nothing came of what the home gave ─ written down ─▶ told ─ heard? ─▶ forgotten        not heard ─ pause with jitter, at most 30 s ─▶ told
 *
 * What the home of receipts must still hear from this agent: until then it holds rights for used that nobody has used, and refuses
 * what the cloud grants.
 */
export interface HomeWords {
  /** Tells this home what is to be said about this receipt, and how that went; one that does not hear may have answered all the same. */
  tellFirst(home: string, cti: string): Promise<Told>
  /** Tells everything once, now; what is not heard is told again. Never throws. */
  kick(): Promise<void>
  /** Nobody goes on with what was asked. */
  abandon(redemptionId: string): void
  /** Begins with what was left from before. */
  start(): void
  stop(): Promise<void>
}

/**
 * `gone`: there is nobody any more who would have to hear it. `not heard`: nobody answered. `too many`, `no home`: somebody did, who was
 * asked too often, or knows us or itself by another state of things.
 */
export type Told = 'heard' | 'gone' | 'not heard' | 'too many' | 'no home'

export interface HomeWordsParts {
  platform: Platform
  ledger: Pick<Ledger, 'commits' | 'homeAsks'>
  tell(word: HomeWord): Promise<Told>
  /** Somebody may still go on with what was asked under this id. */
  isWatched(redemptionId: string): boolean
  /** The cloud is in reach, and doubts nothing of this ledger. */
  isLedgerSure(): boolean
}

const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 30_000

const isDone = (told: Told) => told === 'heard' || told === 'gone'

/** Tells for as long as the agent runs. */
export function openHomeWords({ platform, ledger, tell, isWatched, isLedgerSure }: HomeWordsParts): HomeWords {
  const { commits, homeAsks } = ledger
  let delays = newDelays()
  let again: Cancel | undefined
  let running = Promise.resolve()
  /** A round that has not begun: it will tell all there is by then. */
  let next: Promise<void> | undefined
  let isStopped = false

  function newDelays() {
    return retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }

  async function tellOne(word: HomeWord): Promise<Told> {
    const told = await tell(word)
    if (isDone(told)) await commits.durably(() => homeAsks.heard(word.redemptionId))
    return told
  }

  /** Asked by a process that has ended: nobody waits for an answer. */
  const left = () => homeAsks.open().filter((redemptionId) => !isWatched(redemptionId))

  async function tellAll(): Promise<void> {
    // An old copy of a ledger may have forgotten that it went on; whether it is one, only the cloud says.
    const over = isLedgerSure() ? left() : []
    if (over.length > 0) await commits.durably(() => over.forEach(homeAsks.abandon))
    const away = new Set<string>()
    for (const word of homeAsks.words()) {
      if (isStopped) return
      if (!away.has(word.home) && !isDone(await tellOne(word))) away.add(word.home)
    }
  }

  async function round(): Promise<void> {
    next = undefined
    again?.()
    again = undefined
    if (isStopped) return
    // A disk that is full just now: what is to be told stays written down, and is told again.
    await tellAll().catch(() => undefined)
    if (isStopped) return
    if (homeAsks.isWaiting || left().length > 0) again = platform.timers.after(delays.next().value, () => void kick())
    else delays = newDelays()
  }

  function kick(): Promise<void> {
    next ??= running = running.then(round)
    return next
  }

  return {
    async tellFirst(home, cti) {
      for (const word of homeAsks.words()) {
        const told = word.home === home && word.cti === cti ? await tellOne(word) : 'heard'
        if (!isDone(told)) return told
      }
      return 'heard'
    },
    kick,
    abandon(redemptionId) {
      if (isStopped || !homeAsks.isOpen(redemptionId)) return
      commits.durably(() => homeAsks.abandon(redemptionId)).then(kick, kick)
    },
    start: () => void kick(),
    stop() {
      isStopped = true
      again?.()
      return running
    },
  }
}
