import { HOME_MESSAGE_LIFE, HomeAnswer, type HomeQuestion } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { httpClient } from '../link/wire/http-client.ts'
import { messageTimes } from '../trust/time/message-times.ts'
import type { HomeParts } from './home-parts.ts'
import { agentKeys, type HomeAt } from './store-agents.ts'

export type HomeCall = Pick<
  HomeQuestion,
  'redemptionId' | 'cti' | 'rightClass' | 'candidates' | 'all' | 'receiptExp' | 'outcome'
>

/**
 * `too many`: the home was asked too often; it did answer, so nobody claims in its place. `no home`: it says that it is none, or does not
 * know who asks: one of the two has not heard the newest, and staff stand in for it. Undefined: it did not answer as it should.
 */
export type HomeCallAnswer = HomeAnswer | 'too many' | 'no home' | undefined

/** A person stands at the gate: who does not answer within this is out of reach, ms. */
const ANSWER_WITHIN_MS = 1_000

/** Signed calls of the home of receipts. */
export class HomeCalls {
  readonly #parts: HomeParts

  constructor(parts: HomeParts) {
    this.#parts = parts
  }

  async send(at: HomeAt, call: HomeCall): Promise<HomeCallAnswer> {
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

  #sign(at: HomeAt, call: HomeCall, jti: string): string {
    const { agentId, signer, nowMs } = this.#parts
    const times = messageTimes(nowMs(), HOME_MESSAGE_LIFE)
    const claims: HomeQuestion = { aud: at.agentId, ...times, iss: agentId, jti, homeEpoch: at.epoch, ...call }
    return signDocument(DOCUMENT_KINDS.homeQuestion, claims, signer())
  }

  /** Only the answer to the question that is outstanding counts: an old one may say what is no longer so. */
  #verified(text: string, at: HomeAt, { redemptionId }: HomeCall, jti: string): HomeAnswer | undefined {
    const { trust, agentId } = this.#parts
    const opened = openDocument<HomeAnswer>(text, DOCUMENT_KINDS.homeAnswer, {
      keys: agentKeys(trust, at.agentId),
      audience: agentId,
    })
    const answer = opened.ok ? HomeAnswer.safeParse(opened.claims).data : undefined
    const isOurs = answer?.jti === jti && answer.redemptionId === redemptionId && answer.iss === at.agentId
    return isOurs ? answer : undefined
  }
}
