import { HomeResponder, type HomeReply } from './home-responder.ts'
import { HomeClient } from './home-client.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { HomeRequester, type HomeResult, type RightsRequest } from './home-requester.ts'
import { openHomeTimes } from './home-time.ts'
import { homeOf } from './store-agents.ts'

/**
 *   asker: commit redemption id ─ sign ──▶ home: same id? same answer : take the rights ─ sign ──▶ asker: claim ─ actuate ─ outcome
 *          unused, or outcome unknown ─ sign ──▶ home: free again, or for staff                       (retried until acknowledged)
 *
 * The protocol between the agents of a store. The signed policy names the receipt home and the keys of both agents.
 */
export interface Home {
  /** True if another agent with a known address is the receipt home. */
  readonly isElsewhere: boolean
  /** When the home last answered, trusted ms; 0: never. */
  readonly lastAnswerMs: number
  /** Requests rights of a receipt from the home. */
  request(wish: RightsRequest): Promise<HomeResult>
  /** Sends due outcome reports to the home, and retries until it has them. Never throws. */
  reportOutcomes(): Promise<void>
  /** As the home: the signed answer to a question of another agent. */
  answer(jws: string): Promise<HomeReply>
  /** As the home: signed time for another agent that has none. */
  answerTime(jws: string): HomeReply
  /** Starts pending reports, and requests for the time if it is unknown. */
  start(): void
  stop(): Promise<void>
}

/** The way to the home, and this agent's part when it is the home itself. */
export function openHome(parts: HomeDependencies): Home {
  const requests = new HomeRequester(parts, new HomeClient(parts))
  const times = openHomeTimes(parts)
  const answers = new HomeResponder(parts, times)
  return {
    get isElsewhere() {
      return homeOf(parts.trust, parts.agentId) !== undefined
    },
    get lastAnswerMs() {
      return requests.lastAnswerMs
    },
    request: (wish) => requests.request(wish),
    reportOutcomes: () => requests.reportOutcomes(),
    answer: (jws) => answers.answer(jws),
    answerTime: (jws) => answers.answerTime(jws),
    start() {
      requests.start()
      times.start()
    },
    stop() {
      times.stop()
      return requests.stop()
    },
  }
}
