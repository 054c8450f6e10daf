import { newId } from '../../policy/ids.ts'
import { type Cancel, retryDelays, type Platform } from '../../policy/platform.ts'
import type { DenyReason, RightClass } from '../../policy/vocabulary.ts'
import type { OutcomeReport } from '../ledger/home/stored-home-requests.ts'
import type { GrantAnswer } from '../ledger/home/home-grants.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { homeOf, storeAgent, type HomeAddress, agentKeys } from './store-agents.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { HOME_MESSAGE_LIFE, HomeGrant, type HomeRequest } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { httpClient } from '../link/wire/http-client.ts'
import { messageTimes } from '../trust/time/cloud-contact.ts'

type HomeMessage = Pick<
  HomeRequest,
  'redemptionId' | 'cti' | 'rightClass' | 'candidates' | 'all' | 'receiptExp' | 'outcome'
>

/**
 * `too many`: the rate limit of the receipt home rejected the call. The receipt home is reachable, so this agent must
 * not act as isolated. `no home`: one of the two agents has an old policy, so staff decide. Undefined: no valid answer.
 */
type HomeClientAnswer = HomeGrant | 'too many' | 'no home' | undefined

/** Time limit for an answer of the receipt home, ms. The limit is short, because a shopper waits. */
const ANSWER_WITHIN_MS = 1_000

/** Signs requests to the receipt home, and verifies the answers of the receipt home. */
export class HomeClient {
  readonly #parts: HomeDependencies

  constructor(parts: HomeDependencies) {
    this.#parts = parts
  }

  async send(at: HomeAddress, call: HomeMessage): Promise<HomeClientAnswer> {
    const { platform, fetch } = this.#parts
    const jti = Buffer.from(platform.random.bytes(16)).toString('base64url')
    const answer = await httpClient(`${at.url}/v1/home`, fetch, platform).post(
      'redeem',
      { question: this.#sign(at, call, jti) },
      { timeoutMs: ANSWER_WITHIN_MS },
    )
    if (answer.kind === 'refused' && answer.status === 429) return 'too many'
    if (answer.kind === 'refused' && answer.code === 'not_home') return 'no home'
    const text = answer.kind === 'answered' ? answer.body['answer'] : undefined
    return typeof text === 'string' ? this.#verified(text, at, call, jti) : undefined
  }

  #sign(at: HomeAddress, call: HomeMessage, jti: string): string {
    const { agentId, signer, nowMs } = this.#parts
    const times = messageTimes(nowMs(), HOME_MESSAGE_LIFE)
    const claims: HomeRequest = { aud: at.agentId, ...times, iss: agentId, jti, homeEpoch: at.epoch, ...call }
    return signDocument(DOCUMENT_KINDS.homeRequest, claims, signer())
  }

  /** Verifies an answer. Accepts only the answer to this request, because a replayed answer may be outdated. */
  #verified(text: string, at: HomeAddress, { redemptionId }: HomeMessage, jti: string): HomeGrant | undefined {
    const { trust, agentId } = this.#parts
    const opened = openDocument<HomeGrant>(text, DOCUMENT_KINDS.homeGrant, {
      keys: agentKeys(trust, at.agentId),
      audience: agentId,
    })
    const answer = opened.ok ? HomeGrant.safeParse(opened.claims).data : undefined
    const isOurs = answer?.jti === jti && answer.redemptionId === redemptionId && answer.iss === at.agentId
    return isOurs ? answer : undefined
  }
}

/**
 * Delivers outcome reports to the receipt home. The agent stores each report and retries with pauses of at most 30 s.
 * Until the receipt home has the report, the receipt home reserves the unused rights and rejects cloud tokens for these
 * rights.
 */
interface OutcomeReporter {
  /** Sends the due reports about this receipt to this receipt home. Call it before a new request. */
  reportFirst(home: string, cti: string): Promise<DeliveryResult>
  /** Sends all due reports now, and retries the undelivered ones. Never throws. */
  kick(): Promise<void>
  /** Abandons a request that no claim will use, and sends its report. */
  abandon(redemptionId: string): void
  /** Sends the reports that were stored before the restart. */
  start(): void
  stop(): Promise<void>
}

/**
 * `obsolete`: no agent is left that needs the report. `undelivered`: no valid answer. `too many`: the rate limit of the
 * receipt home is exceeded. `no home`: the receipt home has another policy version.
 */
type DeliveryResult = 'delivered' | 'obsolete' | 'undelivered' | 'too many' | 'no home'

interface OutcomeReporterParts {
  platform: Platform
  ledger: Pick<Ledger, 'commits' | 'homeRequests'>
  send(report: OutcomeReport): Promise<DeliveryResult>
  /** True while a running request may still use this id. */
  isWatched(redemptionId: string): boolean
  /** True if the cloud is online and trusts this ledger. */
  isLedgerTrusted(): boolean
}

const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 30_000

const isFinal = (result: DeliveryResult) => result === 'delivered' || result === 'obsolete'

/** Opens the reporter. The reporter retries as long as the agent runs. */
function openOutcomeReporter({
  platform,
  ledger,
  send,
  isWatched,
  isLedgerTrusted,
}: OutcomeReporterParts): OutcomeReporter {
  const { commits, homeRequests } = ledger
  let delays = newDelays()
  let retry: Cancel | undefined
  let running = Promise.resolve()
  /** The next round, which has not started yet. The round sends all reports that exist when the round starts. */
  let next: Promise<void> | undefined
  let isStopped = false

  function newDelays() {
    return retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }

  async function sendOne(report: OutcomeReport): Promise<DeliveryResult> {
    const result = await send(report)
    if (isFinal(result)) await commits.durably(() => homeRequests.noteDelivered(report.redemptionId))
    return result
  }

  /** Returns the ids of open requests without a timer, such as requests of an earlier process. */
  const orphaned = () => homeRequests.openIds().filter((redemptionId) => !isWatched(redemptionId))

  async function sendAll(): Promise<void> {
    // A restored ledger may lack the claim that used a request. So the agent abandons requests only if the cloud trusts
    // this ledger.
    const abandoned = isLedgerTrusted() ? orphaned() : []
    if (abandoned.length > 0) await commits.durably(() => abandoned.forEach(homeRequests.abandon))
    const unreachable = new Set<string>()
    for (const report of homeRequests.dueReports()) {
      if (isStopped) return
      if (!unreachable.has(report.home) && !isFinal(await sendOne(report))) unreachable.add(report.home)
    }
  }

  async function round(): Promise<void> {
    next = undefined
    retry?.()
    retry = undefined
    if (isStopped) return
    // If the disk is full, the reports stay stored, and the next round sends them again.
    await sendAll().catch(() => undefined)
    if (isStopped) return
    if (homeRequests.hasReports || orphaned().length > 0)
      retry = platform.timers.after(delays.next().value, () => void kick())
    else delays = newDelays()
  }

  function kick(): Promise<void> {
    next ??= running = running.then(round)
    return next
  }

  return {
    async reportFirst(home, cti) {
      for (const report of homeRequests.dueReports()) {
        const result = report.home === home && report.cti === cti ? await sendOne(report) : 'delivered'
        if (!isFinal(result)) return result
      }
      return 'delivered'
    },
    kick,
    abandon(redemptionId) {
      if (isStopped || !homeRequests.isOpen(redemptionId)) return
      commits.durably(() => homeRequests.abandon(redemptionId)).then(kick, kick)
    },
    start: () => void kick(),
    stop() {
      isStopped = true
      retry?.()
      return running
    },
  }
}

export interface RightsRequest {
  cti: string
  rightClass: RightClass
  candidates: readonly number[]
  all: boolean
  /** True: the receipt home grants no unit whose goods have left. */
  unlessLeft?: boolean | undefined
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
    const { cti, rightClass, candidates, all, unlessLeft, exp: receiptExp } = request
    const answer = await this.#send(at, {
      redemptionId,
      cti,
      rightClass,
      candidates: [...candidates],
      all,
      ...(unlessLeft && { unlessLeft }),
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
