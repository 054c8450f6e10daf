import { HOME_MESSAGE_LIFE, HomeCodeRequest } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { decodeUnverifiedClaims, openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { httpClient } from '../link/wire/http-client.ts'
import { messageTimes } from '../trust/time/cloud-contact.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { agentKeys, homeOf, peerRateLimit } from './store-agents.ts'
import type { TillNotices } from './till-notices.ts'

type HomeCodesParts = Pick<
  HomeDependencies,
  'platform' | 'agentId' | 'trust' | 'signer' | 'fetch' | 'nowMs' | 'clock'
> & { tillNotices: Pick<TillNotices, 'noticesOf' | 'receive'> }

type HomeCodesReply =
  | { kind: 'notices'; notices: string[] }
  | { kind: 'not_home' }
  | { kind: 'too_many_questions'; retryAfterSeconds: number }

/** A shopper waits. */
const ANSWER_WITHIN_MS = 1_000
/** Of each agent. A lane presents far fewer unknown codes. */
const REQUEST_RATE = { perSecond: 5, burst: 20 }
/** Maximum difference of clocks in a store, s (ADR trusted-time). */
const CLOCKS_DIFFER_S = 60
/** Sales of one code that matter: two are one too many. */
const NOTICES_LIMIT = 2

/**
 *   code that is unknown here ─▶ its hash, signed ─▶ receipt home ─▶ notices of the agents that recorded its sales
 *                                                                     └─▶ TillNotices.receive: verified and stored
 *
 * Codes of sales that this agent lacks, because a notice was lost or is late (ADR till-sales). The answer is not signed:
 * each notice is, by the agent that recorded the sale, so the receipt home cannot invent one.
 */
export class HomeCodes {
  readonly #parts: HomeCodesParts
  readonly #limit

  constructor(parts: HomeCodesParts) {
    this.#parts = parts
    this.#limit = peerRateLimit(parts.platform.clock, REQUEST_RATE)
  }

  /** Stores what the receipt home knows about the hash of a code. Resolves after 1 s at most; never throws. */
  async fetch(code: string): Promise<void> {
    const { platform, agentId, trust, signer, fetch, nowMs, tillNotices } = this.#parts
    const at = homeOf(trust, agentId)
    if (!at || trust.policy?.policy.tillSales.agents.length === 0) return
    const request: HomeCodeRequest = {
      aud: at.agentId,
      ...messageTimes(nowMs(), HOME_MESSAGE_LIFE),
      iss: agentId,
      code,
    }
    const answer = await httpClient(`${at.url}/v1/home`, fetch, platform).post(
      'code',
      { question: signDocument(DOCUMENT_KINDS.homeCodeRequest, request, signer()) },
      { timeoutMs: ANSWER_WITHIN_MS },
    )
    const notices = answer.kind === 'answered' ? answer.body['notices'] : undefined
    for (const notice of Array.isArray(notices) ? notices.slice(0, NOTICES_LIMIT) : [])
      // If the disk is full, the code stays unknown.
      if (typeof notice === 'string') await tillNotices.receive(notice, true).catch(() => undefined)
  }

  /** As the receipt home: answers a request of another agent. */
  answer(text: string): HomeCodesReply {
    const { agentId, trust, clock, tillNotices } = this.#parts
    const { iss } = decodeUnverifiedClaims(text)
    const isHome = trust.policy?.policy.home === agentId
    if (typeof iss !== 'string' || iss === agentId || !isHome) return { kind: 'not_home' }
    const opened = openDocument<HomeCodeRequest>(text, DOCUMENT_KINDS.homeCodeRequest, {
      keys: agentKeys(trust, iss),
      audience: agentId,
    })
    const request = opened.ok ? HomeCodeRequest.safeParse(opened.claims).data : undefined
    if (request?.iss !== iss) return { kind: 'not_home' }
    const { nowMs, trust: timeTrust } = clock.now()
    const nowS = nowMs / 1_000
    const isCurrent = request.iat - CLOCKS_DIFFER_S <= nowS && nowS < request.exp + CLOCKS_DIFFER_S
    if (timeTrust !== 'none' && !isCurrent) return { kind: 'not_home' }
    const retryAfterSeconds = this.#limit.take(iss)
    return retryAfterSeconds > 0
      ? { kind: 'too_many_questions', retryAfterSeconds }
      : { kind: 'notices', notices: tillNotices.noticesOf(request.code) }
  }
}
