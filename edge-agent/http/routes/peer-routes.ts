import type { Context, Hono } from 'hono'
import type { RateLimitedLog } from '../../../policy/rate-limited-log.ts'
import type { HomeReply } from '../../peers/home-responder.ts'
import type { Agent } from '../../runtime.ts'
import { addressOf } from '../access.ts'
import { fail, reply, refusedCallers } from '../fail.ts'
import { readBody, TILL_NOTICE_LIMIT } from '../read-request.ts'
import { HomeRequest, NoticeRequest, TillNoticeRequest } from '../request-schemas.ts'

/** Notices about sales that wait for their check: of one address, and of all. */
const NOTICES_OF_ONE = 4
const NOTICES_LIMIT = 64

/** Adds the routes for signed requests of other agents: home requests and notices. */
export function peerRoutes(app: Hono, agent: Agent, refusals: Pick<RateLimitedLog, 'write'>): void {
  const callers = refusedCallers(agent.platform.clock, refusals)

  /**
   * Refuses a request that no agent of the store signed, and limits those of its address. The signature comes first:
   * behind a router or a proxy, strangers and agents have one address.
   */
  function refuse(c: Context, code: 'not_home' | 'notice_not_genuine', message: string): Response {
    const address = addressOf(c) ?? ''
    const wait = callers.waitSeconds(address)
    if (wait > 0) return tooMany(c, wait)
    callers.refuse(address, code)
    return fail(c, 403, code, message)
  }

  const homeAnswers = (answer: (question: string) => HomeReply | Promise<HomeReply>) => async (c: Context) => {
    const body = await readBody(c, HomeRequest)
    if (body instanceof Response) return body
    const answered = await answer(body.question)
    if (answered.kind === 'answer') return reply(c, 'redeemAtHome', { answer: answered.answer })
    if (answered.kind === 'too_many_questions') return tooMany(c, answered.retryAfterSeconds)
    return refuse(c, 'not_home', 'this agent is not the receipt home, or does not know the agent that sent the request')
  }
  app.post(
    '/v1/home/redeem',
    homeAnswers((question) => agent.home.answer(question)),
  )
  app.post(
    '/v1/home/time',
    homeAnswers((question) => agent.home.answerTime(question)),
  )

  app.post('/v1/home/code', async (c) => {
    const body = await readBody(c, HomeRequest)
    if (body instanceof Response) return body
    const answered = agent.homeCodes.answer(body.question)
    if (answered.kind === 'notices') return reply(c, 'codeOfHome', { notices: answered.notices })
    if (answered.kind === 'too_many_questions') return tooMany(c, answered.retryAfterSeconds)
    return refuse(c, 'not_home', 'this agent is not the receipt home, or does not know the agent that sent the request')
  })

  const notices = noticeSlots()
  app.post('/v1/till-notices', async (c) => {
    const body = await readBody(c, TillNoticeRequest, TILL_NOTICE_LIMIT)
    if (body instanceof Response) return body
    // After the body: a sender of a slow body takes no place of others.
    const release = notices.take(addressOf(c) ?? '')
    if (!release) return tooMany(c, 1)
    const result = await notices.inTurn(() => agent.tillNotices.receive(body.notice)).finally(release)
    if (result.kind === 'taken') return reply(c, 'announceTillSales', { success: true })
    if (result.kind === 'too_many') return tooMany(c, result.retryAfterSeconds)
    if (result.kind === 'missing')
      return fail(c, 409, 'notices_missing', 'this agent lacks earlier changes: announce all again')
    if (result.kind === 'refused') return fail(c, 403, 'sales_refused', `the notice was rejected: ${result.why}`)
    return refuse(c, 'notice_not_genuine', 'no known agent of this store has signed the notice')
  })

  app.post('/v1/releases', async (c) => {
    const body = await readBody(c, NoticeRequest)
    if (body instanceof Response) return body
    const result = agent.notices.receive(body.notice)
    if (result.kind === 'taken') return reply(c, 'announceRelease', { success: true })
    if (result.kind === 'too_many') return tooMany(c, result.retryAfterSeconds)
    if (result.kind === 'refused')
      return fail(c, 403, 'release_refused', `the release notice was rejected: ${result.why}`)
    return refuse(c, 'notice_not_genuine', 'no known agent of this store has signed the notice')
  })
}

/**
 * Slots for notices about sales. Notices are checked and stored one at a time, each in a turn of the event loop of its
 * own, so that other requests come between.
 */
function noticeSlots() {
  const open = new Map<string, number>()
  let total = 0
  let last: Promise<unknown> = Promise.resolve()
  return {
    /** Takes a slot for an address. Returns a function that releases it; undefined if none is free. */
    take(address: string): (() => void) | undefined {
      const count = open.get(address) ?? 0
      if (count >= NOTICES_OF_ONE || total >= NOTICES_LIMIT) return undefined
      open.set(address, count + 1)
      total++
      return () => {
        total--
        const left = (open.get(address) ?? 1) - 1
        if (left > 0) open.set(address, left)
        else open.delete(address)
      }
    },
    inTurn<T>(check: () => Promise<T>): Promise<T> {
      const result = last.then(() => new Promise((resolve) => setImmediate(resolve))).then(check)
      last = result.catch(() => undefined)
      return result
    },
  }
}

function tooMany(c: Context, seconds: number): Response {
  c.header('retry-after', String(seconds))
  return fail(c, 429, 'too_many_questions', `too many requests: wait ${seconds} s`)
}
