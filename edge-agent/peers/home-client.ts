import { HOME_MESSAGE_LIFE, HomeGrant, type HomeRequest } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { httpClient } from '../link/wire/http-client.ts'
import { messageTimes } from '../trust/time/message-times.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { agentKeys, type HomeAddress } from './store-agents.ts'

export type HomeMessage = Pick<
  HomeRequest,
  'redemptionId' | 'cti' | 'rightClass' | 'candidates' | 'all' | 'receiptExp' | 'outcome'
>

/**
 * `too many`: the rate limit of the receipt home rejected the call. The receipt home is reachable, so this agent must
 * not act as isolated. `no home`: one of the two agents has an old policy, so staff decide. Undefined: no valid answer.
 */
export type HomeClientAnswer = HomeGrant | 'too many' | 'no home' | undefined

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
