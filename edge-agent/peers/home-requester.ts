import { newId } from '../../policy/ids.ts'
import type { Cancel } from '../../policy/platform.ts'
import type { DenyReason, RightClass } from '../../policy/vocabulary.ts'
import type { HomeWord } from '../ledger/home/stored-home-requests.ts'
import type { GrantAnswer } from '../ledger/home/home-grants.ts'
import type { HomeCall, HomeCallAnswer, HomeCalls } from './home-client.ts'
import { openHomeWords, type HomeWords, type Told } from './outcome-reports.ts'
import type { HomeParts } from './home-dependencies.ts'
import { homeOf, storeAgent, type HomeAt } from './store-agents.ts'

export interface HomeWish {
  cti: string
  rightClass: RightClass
  candidates: readonly number[]
  all: boolean
  exp: number
  deviceId: string
}

/** `unreachable`: it did not answer as it should; the question may have arrived, under the id that it was asked by. */
export type HomeSaid =
  | ({ redemptionId: string } & GrantAnswer)
  | { refused: DenyReason }
  | { unreachable: true; redemptionId?: string }

/** What was asked is used within a moment, or not at all, ms. */
const USED_WITHIN_MS = 5_000
/** Timers at once; what is beyond them is looked at with what is told. */
const WATCHED = 1_000

/**
 *   wish ─ redemption id, stored ─▶ home ─ rights ─▶ claimed within 5 s ─▶ settled
 *                                     └ no answer      └ abandoned: the agent reports to the home that the rights are unused
 *
 * The requests of this agent to the receipt home.
 */
export class HomeRequests {
  readonly #parts: HomeParts
  readonly #calls: HomeCalls
  readonly #words: HomeWords
  /** Asked, and nobody has gone on with it yet. */
  readonly #watched = new Map<string, Cancel>()
  #lastAnswerMs = 0

  constructor(parts: HomeParts, calls: HomeCalls) {
    this.#parts = parts
    this.#calls = calls
    this.#words = openHomeWords({
      platform: parts.platform,
      ledger: parts.ledger,
      tell: (word) => this.#tell(word),
      isLedgerSure: parts.isLedgerSure,
      isWatched: (redemptionId) => this.#watched.has(redemptionId),
    })
  }

  get lastAnswerMs(): number {
    return this.#lastAnswerMs
  }

  async ask(wish: HomeWish): Promise<HomeSaid> {
    const at = this.#home()
    // What it still has to hear may be about what it is asked for.
    const told = at && (await this.#words.tellFirst(at.agentId, wish.cti))
    if (!at || told === 'not heard') return { unreachable: true }
    if (told === 'too many' || told === 'no home') return notNow(told)
    const redemptionId = await this.#begin(at, wish)
    const { cti, rightClass, candidates, all, exp: receiptExp } = wish
    const answer = await this.#send(at, {
      redemptionId,
      cti,
      rightClass,
      candidates: [...candidates],
      all,
      receiptExp,
    })
    if (!answer) return { unreachable: true, redemptionId }
    // Nothing was decided: the same question may be asked again.
    if (answer === 'too many' || answer === 'no home') return notNow(answer)
    const { reason, ordinals, remaining } = answer
    if (!reason && ordinals.length > 0 && ordinals.every((ordinal) => candidates.includes(ordinal)))
      return { redemptionId, ordinals, remaining }
    await this.#end(redemptionId)
    return { redemptionId, ordinals: [], remaining: 0, reason: (reason ?? 'token_invalid') as DenyReason }
  }

  settled(): Promise<void> {
    return this.#words.kick()
  }

  start(): void {
    this.#words.start()
  }

  stop(): Promise<void> {
    for (const cancel of this.#watched.values()) cancel()
    this.#watched.clear()
    return this.#words.stop()
  }

  #home(): HomeAt | undefined {
    return homeOf(this.#parts.trust, this.#parts.agentId)
  }

  /** Stores the request and returns its redemption id. */
  #begin(at: HomeAt, { deviceId, cti, rightClass, all, candidates, exp }: HomeWish): Promise<string> {
    const { ledger, platform } = this.#parts
    const subject = [at.agentId, at.epoch, cti, rightClass, deviceId, all, candidates.join(',')].join('|')
    const rights = { home: at.agentId, homeEpoch: at.epoch, cti, rightClass, candidates, exp }
    return ledger.commits.durably(() => {
      const redemptionId = ledger.homeAsks.ask(subject, newId('rdm', platform), rights)
      this.#watch(redemptionId)
      return redemptionId
    })
  }

  /** The home refused: the request is over. */
  async #end(redemptionId: string): Promise<void> {
    const { commits, homeAsks } = this.#parts.ledger
    await commits.durably(() => homeAsks.refused(redemptionId))
    this.#unwatch(redemptionId)
  }

  async #send(at: HomeAt, call: HomeCall): Promise<HomeCallAnswer> {
    const answer = await this.#calls.send(at, call)
    if (typeof answer === 'object' && this.#home()?.agentId === at.agentId) this.#lastAnswerMs = this.#parts.nowMs()
    return answer
  }

  /** Tells whoever gave a right what became of it, also when receipts have another home by now. One that is no more may have been enrolled anew, as the home. */
  async #tell(word: HomeWord): Promise<Told> {
    const { trust, agentId: self } = this.#parts
    const { redemptionId, homeEpoch, cti, rightClass, candidates, exp: receiptExp, outcome } = word
    const { agents, policy } = trust.policy ?? {}
    if (!agents || !policy) return 'not heard'
    const { agentId, url } = storeAgent(trust, word.home) ??
      storeAgent(trust, policy.home) ?? { agentId: self, url: null }
    if (agentId === self) return 'gone'
    if (!url) return 'not heard'
    // The home forwards this report, and the cloud verifies it against what was given: the same epoch and units.
    const answer = await this.#send(
      { agentId, url, epoch: homeEpoch },
      { redemptionId, cti, rightClass, candidates, all: false, receiptExp, outcome },
    )
    return typeof answer === 'object' ? 'heard' : (answer ?? 'not heard')
  }

  /** Whoever asked goes on with the answer at once, or not at all: then the home must not hold the right for used. */
  #watch(redemptionId: string): void {
    this.#unwatch(redemptionId)
    if (this.#watched.size >= WATCHED) return
    const cancel = this.#parts.platform.timers.after(USED_WITHIN_MS, () => {
      this.#watched.delete(redemptionId)
      this.#words.abandon(redemptionId)
    })
    this.#watched.set(redemptionId, cancel)
  }

  #unwatch(redemptionId: string): void {
    this.#watched.get(redemptionId)?.()
    this.#watched.delete(redemptionId)
  }
}

/** What a home that answers, and decides nothing, is taken for: it is not out of reach. */
function notNow(answer: 'too many' | 'no home'): HomeSaid {
  return { refused: answer === 'too many' ? 'limit_exceeded' : 'manual_assistance_required' }
}
