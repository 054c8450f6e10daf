import { newId } from '../../policy/ids.ts'
import type { Cancel } from '../../policy/platform.ts'
import type { DenyReason, RightClass } from '../../policy/vocabulary.ts'
import type { OutcomeReport } from '../ledger/home/stored-home-requests.ts'
import type { GrantAnswer } from '../ledger/home/home-grants.ts'
import type { HomeMessage, HomeClientAnswer, HomeClient } from './home-client.ts'
import { openOutcomeReporter, type OutcomeReporter, type DeliveryResult } from './outcome-reports.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { homeOf, storeAgent, type HomeAddress } from './store-agents.ts'

export interface RightsRequest {
  cti: string
  rightClass: RightClass
  candidates: readonly number[]
  all: boolean
  exp: number
  deviceId: string
}

/** `unreachable`: no valid answer. The receipt home may still have granted the request with this `redemptionId`. */
export type HomeResult =
  | ({ redemptionId: string } & GrantAnswer)
  | { refused: DenyReason }
  | { unreachable: true; redemptionId?: string }

/** The agent abandons a request that no claim uses within this time, ms. */
const USED_WITHIN_MS = 5_000
/** Maximum timers. The next round of reports abandons a request without a timer. */
const TIMERS_LIMIT = 1_000

/**
 * The requests of this agent to the receipt home. The agent stores each request before it sends the request. If no
 * claim uses a request within 5 s, the agent reports to the receipt home that the rights are unused.
 */
export class HomeRequester {
  readonly #parts: HomeDependencies
  readonly #client: HomeClient
  readonly #reporter: OutcomeReporter
  /** Timers of requests without a claim, by redemption id. */
  readonly #watched = new Map<string, Cancel>()
  #lastAnswerMs = 0

  constructor(parts: HomeDependencies, client: HomeClient) {
    this.#parts = parts
    this.#client = client
    this.#reporter = openOutcomeReporter({
      platform: parts.platform,
      ledger: parts.ledger,
      send: (report) => this.#report(report),
      isLedgerTrusted: parts.isLedgerTrusted,
      isWatched: (redemptionId) => this.#watched.has(redemptionId),
    })
  }

  get lastAnswerMs(): number {
    return this.#lastAnswerMs
  }

  async request(request: RightsRequest): Promise<HomeResult> {
    const at = this.#home()
    // A due report may free the same rights, so the receipt home must receive the report first.
    const delivery = at && (await this.#reporter.reportFirst(at.agentId, request.cti))
    if (!at || delivery === 'undelivered') return { unreachable: true }
    if (delivery === 'too many' || delivery === 'no home') return refusedFor(delivery)
    const redemptionId = await this.#begin(at, request)
    const { cti, rightClass, candidates, all, exp: receiptExp } = request
    const answer = await this.#send(at, {
      redemptionId,
      cti,
      rightClass,
      candidates: [...candidates],
      all,
      receiptExp,
    })
    if (!answer) return { unreachable: true, redemptionId }
    // The receipt home did not decide, so the request stays stored and can be repeated.
    if (answer === 'too many' || answer === 'no home') return refusedFor(answer)
    const { reason, ordinals, remaining } = answer
    if (!reason && ordinals.length > 0 && ordinals.every((ordinal) => candidates.includes(ordinal)))
      return { redemptionId, ordinals, remaining }
    await this.#end(redemptionId)
    return { redemptionId, ordinals: [], remaining: 0, reason: (reason ?? 'token_invalid') as DenyReason }
  }

  reportOutcomes(): Promise<void> {
    return this.#reporter.kick()
  }

  start(): void {
    this.#reporter.start()
  }

  stop(): Promise<void> {
    for (const cancel of this.#watched.values()) cancel()
    this.#watched.clear()
    return this.#reporter.stop()
  }

  #home(): HomeAddress | undefined {
    return homeOf(this.#parts.trust, this.#parts.agentId)
  }

  /** Stores the request and returns its redemption id. */
  #begin(at: HomeAddress, { deviceId, cti, rightClass, all, candidates, exp }: RightsRequest): Promise<string> {
    const { ledger, platform } = this.#parts
    const subject = [at.agentId, at.epoch, cti, rightClass, deviceId, all, candidates.join(',')].join('|')
    const rights = { home: at.agentId, homeEpoch: at.epoch, cti, rightClass, candidates, exp }
    return ledger.commits.durably(() => {
      const redemptionId = ledger.homeRequests.begin(subject, newId('rdm', platform), rights)
      this.#watch(redemptionId)
      return redemptionId
    })
  }

  /** Deletes a request that the receipt home refused. */
  async #end(redemptionId: string): Promise<void> {
    const { commits, homeRequests } = this.#parts.ledger
    await commits.durably(() => homeRequests.remove(redemptionId))
    this.#unwatch(redemptionId)
  }

  async #send(at: HomeAddress, call: HomeMessage): Promise<HomeClientAnswer> {
    const answer = await this.#client.send(at, call)
    if (typeof answer === 'object' && this.#home()?.agentId === at.agentId) this.#lastAnswerMs = this.#parts.nowMs()
    return answer
  }

  /**
   * Sends the outcome report to the agent that granted the right, even if the receipt home has moved. If the policy no
   * longer lists that agent, the report goes to the current receipt home, which may be the successor of that agent.
   */
  async #report(report: OutcomeReport): Promise<DeliveryResult> {
    const { trust, agentId: self } = this.#parts
    const { redemptionId, homeEpoch, cti, rightClass, candidates, exp: receiptExp, outcome } = report
    const { agents, policy } = trust.policy ?? {}
    if (!agents || !policy) return 'undelivered'
    const { agentId, url } = storeAgent(trust, report.home) ??
      storeAgent(trust, policy.home) ?? { agentId: self, url: null }
    if (agentId === self) return 'obsolete'
    if (!url) return 'undelivered'
    // The receipt home forwards the report to the cloud. The cloud compares the report with the grant, so both must
    // name the same epoch and units.
    const answer = await this.#send(
      { agentId, url, epoch: homeEpoch },
      { redemptionId, cti, rightClass, candidates, all: false, receiptExp, outcome },
    )
    return typeof answer === 'object' ? 'delivered' : (answer ?? 'undelivered')
  }

  /** Abandons the request if no claim uses it in time, so that the receipt home frees the right. */
  #watch(redemptionId: string): void {
    this.#unwatch(redemptionId)
    if (this.#watched.size >= TIMERS_LIMIT) return
    const cancel = this.#parts.platform.timers.after(USED_WITHIN_MS, () => {
      this.#watched.delete(redemptionId)
      this.#reporter.abandon(redemptionId)
    })
    this.#watched.set(redemptionId, cancel)
  }

  #unwatch(redemptionId: string): void {
    this.#watched.get(redemptionId)?.()
    this.#watched.delete(redemptionId)
  }
}

/** Result if the receipt home answered without a decision. */
function refusedFor(answer: 'too many' | 'no home'): HomeResult {
  return { refused: answer === 'too many' ? 'limit_exceeded' : 'manual_assistance_required' }
}
