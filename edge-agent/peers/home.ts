import { HomeResponder, type HomeReply } from './home-responder.ts'
import { HomeClient, HomeRequester, type HomeResult, type RightsRequest } from './home-requester.ts'
import type { HomeDependencies } from './home-dependencies.ts'
import { openHomeTimes } from './home-time.ts'
import { homeOf } from './store-agents.ts'

/**
 * The protocol between the agents of a store. The signed policy names the receipt home and the keys of all agents of
 * the store.
 *
 * The requester stores a redemption id and sends a signed request. The receipt home delegates the rights, and gives the
 * same answer to a repeated id. The requester claims the rights and moves the device. If the outcome is not
 * `confirmed`, the requester sends an outcome report until the receipt home acknowledges the report.
 */
export interface Home {
  /** True if another agent with a known address is the receipt home. */
  readonly isElsewhere: boolean
  /** Time of the last answer of the receipt home, trusted ms; 0: never. */
  readonly lastAnswerMs: number
  /** Requests rights of a receipt from the receipt home. */
  request(rights: RightsRequest): Promise<HomeResult>
  /**
   * Sends due outcome reports to the receipt home, and retries until the receipt home has acknowledged the reports.
   * Never throws.
   */
  reportOutcomes(): Promise<void>
  /** As the receipt home: returns the signed answer to a request of another agent. */
  answer(jws: string): Promise<HomeReply>
  /** As the receipt home: returns signed time for another agent that has no trusted time. */
  answerTime(jws: string): HomeReply
  /** Starts to send stored outcome reports. Requests the time if this agent has no trusted time. */
  start(): void
  stop(): Promise<void>
}

/** Opens both sides of the protocol: the requester, and the responder for an agent that is the receipt home. */
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
    request: (rights) => requests.request(rights),
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
