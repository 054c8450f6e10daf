import { HOME_MESSAGE_LIFE, HomeTimeResponse, HomeTimeRequest } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { retryDelays, type Cancel } from '../../policy/platform.ts'
import { httpClient } from '../link/wire/http-client.ts'
import { messageTimes } from '../trust/time/cloud-contact.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { agentKeys, homeOf } from './store-agents.ts'

/**
 * Time from the receipt home, for an agent that started without a real-time clock and without the cloud (ADR trusted-time). The
 * clock treats the receipt home's time like the time of a hardware clock. The receipt home's time must not be before
 * the last signed time, and does not raise the high-water mark.
 */
export interface HomeTimes {
  /**
   * As the receipt home: returns the signed time for another agent of the store. Undefined if the request is not
   * genuine, or if this agent has no trusted time from another source than a receipt home.
   */
  answer(jws: string, requester: string): string | undefined
  /** Requests the time until this agent has trusted time. */
  start(): void
  stop(): void
}

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
const ANSWER_WITHIN_MS = 1_000

/** Opens both sides: requests of this agent, and its answers as the receipt home. */
export function openHomeTimes({ platform, agentId, clock, signer, fetch, trust }: HomeDependencies): HomeTimes {
  const delays = retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  let again: Cancel | undefined
  let isStopped = false

  const times = () => messageTimes(clock.now().nowMs, HOME_MESSAGE_LIFE)

  async function requestTime(): Promise<void> {
    const at = homeOf(trust, agentId)
    if (!at) return
    const jti = Buffer.from(platform.random.bytes(16)).toString('base64url')
    const request: HomeTimeRequest = { aud: at.agentId, ...times(), iss: agentId, jti }
    const answer = await httpClient(`${at.url}/v1/home`, fetch, platform).post(
      'time',
      { question: signDocument(DOCUMENT_KINDS.homeTimeRequest, request, signer()) },
      { timeoutMs: ANSWER_WITHIN_MS },
    )
    const text = answer.kind === 'answered' ? answer.body['answer'] : undefined
    if (typeof text !== 'string') return
    const opened = openDocument<HomeTimeResponse>(text, DOCUMENT_KINDS.homeTimeResponse, {
      keys: agentKeys(trust, at.agentId),
      audience: agentId,
    })
    const response = opened.ok ? HomeTimeResponse.safeParse(opened.claims) : undefined
    // The nonce must match, because a replayed answer has an old time.
    if (response?.success && response.data.jti === jti && response.data.iss === at.agentId)
      clock.offerHome(response.data.timeMs)
  }

  async function round(): Promise<void> {
    if (isStopped || clock.now().trust !== 'none') return
    // If the disk is full and the time cannot be stored, the next round requests the time again.
    await requestTime().catch(() => undefined)
    if (!isStopped && clock.now().trust === 'none')
      again = platform.timers.after(delays.next().value, () => void round())
  }

  return {
    answer(jws, requester) {
      const opened = openDocument<HomeTimeRequest>(jws, DOCUMENT_KINDS.homeTimeRequest, {
        keys: agentKeys(trust, requester),
        audience: agentId,
      })
      const request = opened.ok ? HomeTimeRequest.safeParse(opened.claims) : undefined
      const { nowMs, trust: clockTrust } = clock.now()
      // The agent does not pass on time that it received from a receipt home.
      if (!request?.success || request.data.iss !== requester || clockTrust === 'none' || clockTrust === 'home')
        return undefined
      const answer: HomeTimeResponse = {
        aud: requester,
        ...times(),
        iss: agentId,
        jti: request.data.jti,
        timeMs: nowMs,
      }
      return signDocument(DOCUMENT_KINDS.homeTimeResponse, answer, signer())
    },
    start: () => void round(),
    stop() {
      isStopped = true
      again?.()
    },
  }
}
