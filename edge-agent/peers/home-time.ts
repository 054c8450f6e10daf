import { HOME_MESSAGE_LIFE, HomeTimeResponse, HomeTimeRequest } from '../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { retryDelays, type Cancel } from '../../policy/platform.ts'
import { httpClient } from '../link/wire/http-client.ts'
import { messageTimes } from '../trust/time/message-times.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { agentKeys, homeOf } from './store-agents.ts'

/**
 *   no real-time clock, no cloud ─ signed question ─▶ home, if it knows the time itself ─ signed answer ─▶ our clock, until the cloud says better
 *
 * The time of the home of receipts, for an agent that has started and knows none (ADR 0015). It counts as a real-time clock
 * does: at or past the last time that the cloud signed, whose mark it does not move.
 */
export interface HomeTimes {
  /** As the home: the signed time for another agent of the store; undefined: the question is not genuine, or nobody knows the time here either. */
  answer(question: string, asker: string): string | undefined
  /** Asks for as long as the time is not known. */
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
    // Only the answer to this very question: an old one tells an old time.
    if (told?.success && told.data.jti === jti && told.data.iss === at.agentId) clock.offerHome(told.data.timeMs)
  }

  async function round(): Promise<void> {
    if (isStopped || clock.now().trust !== 'none') return
    // A disk that is full keeps no time: it is asked again.
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
      // What was heard from another home is not passed on.
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
