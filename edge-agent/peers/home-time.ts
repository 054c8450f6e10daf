import { HOME_MESSAGE_LIFE, HomeTimeResponse, HomeTimeRequest } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { retryDelays, type Cancel } from '../../policy/platform.ts'
import { httpClient } from '../link/wire/http-client.ts'
import { messageTimes } from '../trust/time/message-times.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { agentKeys, homeOf } from './store-agents.ts'

/**
 *   no real-time clock, no cloud ─ signed question ─▶ home, if it has trusted time ─ signed answer ─▶ clock of this agent, until the cloud answers
 *
 * Time from the receipt home, for an agent that started without trusted time (ADR 0015). It counts like a hardware clock: it must not be
 * before the last signed time, and it does not raise the high-water mark.
 */
export interface HomeTimes {
  /**
   * As the home: returns the signed time for another agent of the store. Undefined if the request is not genuine or this agent has no own
   * trusted time.
   */
  answer(question: string, asker: string): string | undefined
  /** Requests the time until it is known. */
  start(): void
  stop(): void
}

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
const ANSWER_WITHIN_MS = 1_000

/** The way to the home's time, and this agent's part when it is the home itself. */
export function openHomeTimes({ platform, agentId, clock, signer, fetch, trust }: HomeDependencies): HomeTimes {
  const delays = retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  let again: Cancel | undefined
  let isStopped = false

  const times = () => messageTimes(clock.now().nowMs, HOME_MESSAGE_LIFE)

  async function ask(): Promise<void> {
    const at = homeOf(trust, agentId)
    if (!at) return
    const jti = Buffer.from(platform.random.bytes(16)).toString('base64url')
    const question: HomeTimeRequest = { aud: at.agentId, ...times(), iss: agentId, jti }
    const answer = await httpClient(`${at.url}/v1/home`, fetch, platform).post(
      'time',
      { question: signDocument(DOCUMENT_KINDS.homeTimeRequest, question, signer()) },
      { timeoutMs: ANSWER_WITHIN_MS },
    )
    const text = answer.kind === 'answered' ? answer.body['answer'] : undefined
    if (typeof text !== 'string') return
    const opened = openDocument<HomeTimeResponse>(text, DOCUMENT_KINDS.homeTimeResponse, {
      keys: agentKeys(trust, at.agentId),
      audience: agentId,
    })
    const told = opened.ok ? HomeTimeResponse.safeParse(opened.claims) : undefined
    // The nonce must match, because a replayed answer has an old time.
    if (told?.success && told.data.jti === jti && told.data.iss === at.agentId) clock.offerHome(told.data.timeMs)
  }

  async function round(): Promise<void> {
    if (isStopped || clock.now().trust !== 'none') return
    // A full disk cannot store the time; the next round requests it again.
    await ask().catch(() => undefined)
    if (!isStopped && clock.now().trust === 'none')
      again = platform.timers.after(delays.next().value, () => void round())
  }

  return {
    answer(question, asker) {
      const opened = openDocument<HomeTimeRequest>(question, DOCUMENT_KINDS.homeTimeRequest, {
        keys: agentKeys(trust, asker),
        audience: agentId,
      })
      const asked = opened.ok ? HomeTimeRequest.safeParse(opened.claims) : undefined
      const { nowMs, trust: clockTrust } = clock.now()
      // Time that this agent itself received from a receipt home is not passed on.
      if (!asked?.success || asked.data.iss !== asker || clockTrust === 'none' || clockTrust === 'home')
        return undefined
      const answer: HomeTimeResponse = { aud: asker, ...times(), iss: agentId, jti: asked.data.jti, timeMs: nowMs }
      return signDocument(DOCUMENT_KINDS.homeTimeResponse, answer, signer())
    },
    start: () => void round(),
    stop() {
      isStopped = true
      again?.()
    },
  }
}
