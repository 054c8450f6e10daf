import { decodeUnverifiedClaims, openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { HOME_MESSAGE_LIFE, HomeRequest, type HomeGrant } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { GrantAnswer } from '../ledger/home/home-grants.ts'
import { untrustedReason } from '../trust/revocation/untrusted-ledger.ts'
import { peerRateLimit, type PeerRateLimit, agentKeys } from './store-agents.ts'
import type { HomeTimes } from './home-time.ts'
import { messageTimes } from '../trust/time/cloud-contact.ts'
import type { HomeDependencies } from './home-dependencies.ts'

export type HomeReply =
  | { kind: 'answer'; answer: string }
  /** This agent is not the receipt home of the request, or the request is not genuine. */
  | { kind: 'not_home' }
  /** The requesting agent exceeded its rate limit. */
  | { kind: 'too_many_questions'; retryAfterSeconds: number }

const NOT_HOME: HomeReply = { kind: 'not_home' }
/**
 * Rate limit per requesting agent. The limit is far above the requests that shoppers at one agent cause. The limit is
 * also so low that requests do not slow the lanes of the receipt home.
 */
const REQUEST_RATE = { perSecond: 20, burst: 60 }
/**
 * Separate rate limit per agent for requests whose time is not current. Such requests may be replays of an attacker, or
 * come from an agent with a wrong clock. The limit suffices for the shoppers of an agent with a wrong clock.
 */
const LATE_REQUEST_RATE = { perSecond: 5, burst: 20 }
/** Maximum difference of clocks in a store, s (ADR trusted-time). */
const CLOCKS_DIFFER_S = 60
/** Maximum stored answers, and maximum requests in progress. */
const ANSWERS_LIMIT = 500

/**
 * The answers of this agent as the receipt home. A repeated request gets the same answer. A new request must be
 * addressed to this agent, have a valid signature and be within the rate limit. A request for rights must also name the
 * current epoch of this receipt home. In one transaction, the receipt home then grants the rights or applies the
 * outcome.
 */
export class HomeResponder {
  readonly #parts: HomeDependencies
  readonly #times: HomeTimes
  readonly #limit: PeerRateLimit
  readonly #lateLimit: PeerRateLimit
  /** The stored answers, by the exact text of the request. */
  readonly #answers = new Map<string, Promise<HomeReply>>()
  /** The requests in progress, by their exact text. */
  readonly #underWay = new Map<string, Promise<HomeReply>>()

  constructor(parts: HomeDependencies, times: HomeTimes) {
    this.#parts = parts
    this.#times = times
    this.#limit = peerRateLimit(parts.platform.clock, REQUEST_RATE)
    this.#lateLimit = peerRateLimit(parts.platform.clock, LATE_REQUEST_RATE)
  }

  answer(text: string): Promise<HomeReply> {
    // A replayed request gets the stored answer and does not count against the rate limit.
    const known = this.#answers.get(text) ?? this.#underWay.get(text)
    if (known) return known
    if (this.#underWay.size >= ANSWERS_LIMIT)
      return Promise.resolve({ kind: 'too_many_questions', retryAfterSeconds: 1 })
    const reply = this.#answerTo(text)
    this.#underWay.set(text, reply)
    reply
      // Stores only answers to verified requests, so that invalid requests displace no stored answer.
      .then(({ kind }) => kind === 'answer' && this.#store(text, reply))
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(text))
    return reply
  }

  answerTime(text: string): HomeReply {
    const { agentId, trust } = this.#parts
    const requester = issuerOf(text)
    if (requester === undefined || requester === agentId || trust.policy?.policy.home !== agentId) return NOT_HOME
    const answer = this.#times.answer(text, requester)
    if (answer === undefined) return NOT_HOME
    const retryAfterSeconds = this.#lateLimit.take(requester)
    return retryAfterSeconds > 0 ? { kind: 'too_many_questions', retryAfterSeconds } : { kind: 'answer', answer }
  }

  async #answerTo(text: string): Promise<HomeReply> {
    const request = this.#opened(text)
    if (!request) return NOT_HOME
    const isOwnEpoch = this.#isHomeIn(request.homeEpoch)
    // Outcome reports go to the agent that granted the right, even if the receipt home has moved.
    if (request.outcome === undefined && !isOwnEpoch) return NOT_HOME
    // The rate limit comes after the signature check, so that no agent can use up the limit of another agent.
    const retryAfterSeconds = (this.#isCurrent(request) ? this.#limit : this.#lateLimit).take(request.iss)
    if (retryAfterSeconds > 0) return { kind: 'too_many_questions', retryAfterSeconds }
    const grant = await this.#parts.ledger.commits.durably(() => this.#apply(request, text, isOwnEpoch))
    return grant ? { kind: 'answer', answer: this.#sign(request, grant) } : NOT_HOME
  }

  #opened(text: string): HomeRequest | undefined {
    const { agentId, trust } = this.#parts
    const requester = issuerOf(text)
    if (requester === undefined || requester === agentId) return undefined
    const opened = openDocument<HomeRequest>(text, DOCUMENT_KINDS.homeRequest, {
      keys: agentKeys(trust, requester),
      audience: agentId,
    })
    const request = opened.ok ? HomeRequest.safeParse(opened.claims).data : undefined
    return request?.iss === requester ? request : undefined
  }

  #isHomeIn(epoch: number): boolean {
    const policy = this.#parts.trust.policy?.policy
    return policy?.home === this.#parts.agentId && epoch === policy.homeEpoch
  }

  /** True if the time of the request is current, or if this agent has no trusted time. */
  #isCurrent({ iat, exp }: HomeRequest): boolean {
    const { nowMs, clock } = this.#parts
    const nowS = nowMs() / 1_000
    return clock.now().trust === 'none' || (iat - CLOCKS_DIFFER_S <= nowS && nowS <= exp + CLOCKS_DIFFER_S)
  }

  /** Applies an outcome report, or grants or refuses rights. Call it inside a transaction. */
  #apply(request: HomeRequest, report: string, isOwnEpoch: boolean): GrantAnswer | undefined {
    const { ledger, trust } = this.#parts
    const nowMs = this.#parts.nowMs()
    const {
      iss: agentId,
      redemptionId,
      cti,
      rightClass,
      candidates,
      all,
      unlessLeft,
      receiptExp: exp,
      outcome,
      homeEpoch,
    } = request
    if (outcome === 'failed' || outcome === 'unknown')
      ledger.homeGrants.noteOutcome({ agentId, redemptionId, outcome, candidates, exp, nowMs, report, isOwnEpoch })
    if (outcome !== undefined) return { ordinals: [], remaining: 0 }
    // A restored ledger may lack grants. A forked ledger has a clone that may grant the same rights.
    const isUnsure = trust.isImporting(exp) || untrustedReason(ledger, nowMs) !== undefined
    return ledger.homeGrants.grant(
      { agentId, redemptionId, cti, rightClass, candidates, all, unlessLeft, exp, nowMs, homeEpoch },
      isUnsure ? 'manual_assistance_required' : undefined,
    )
  }

  #sign({ iss: requester, jti, redemptionId }: HomeRequest, grant: GrantAnswer): string {
    const { agentId, signer, nowMs } = this.#parts
    const times = messageTimes(nowMs(), HOME_MESSAGE_LIFE)
    const claims: HomeGrant = { aud: requester, ...times, iss: agentId, jti, redemptionId, ...grant }
    return signDocument(DOCUMENT_KINDS.homeGrant, claims, signer())
  }

  #store(text: string, reply: Promise<HomeReply>): void {
    const [oldest] = this.#answers.keys()
    if (this.#answers.size >= ANSWERS_LIMIT && oldest !== undefined) this.#answers.delete(oldest)
    this.#answers.set(text, reply)
  }
}

/** Reads the unverified issuer. The issuer only selects the keys for the signature check. */
function issuerOf(text: string): string | undefined {
  const { iss } = decodeUnverifiedClaims(text)
  return typeof iss === 'string' ? iss : undefined
}
