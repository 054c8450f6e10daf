import type { Context } from 'hono'
import { AGENT_ERRORS, type AgentErrorCode, type StatusOf } from './error-codes.ts'
import { AGENT_OPERATIONS, type AgentAnswer, type AgentOperationName } from './operations.ts'
import type { RateLimitedLog } from '../../policy/rate-limited-log.ts'
import type { Clock } from '../../policy/platform.ts'
import { peerRateLimit } from '../peers/store-agents.ts'

/** Rate limit for requests with an invalid signature or secret, per address. */
export const REFUSED = { perSecond: 5, burst: 50 }

/** Limits the requests of addresses that send peer requests with invalid signatures. */
interface RefusedCallers {
  /** Time before the next request of this address, s; 0 if the address may send one now. */
  waitSeconds(from: string): number
  /** Counts a request of this address with an invalid signature. */
  refuse(from: string, why: string): void
}

/** Makes the limits. Logs refusals with the rate limit of `log`. */
export function refusedCallers(clock: Pick<Clock, 'elapsed'>, log: Pick<RateLimitedLog, 'write'>): RefusedCallers {
  const refused = peerRateLimit(clock, REFUSED)
  const note = (from: string, why: string) => log.write({ from, why }, 'a request between agents was refused')
  return {
    waitSeconds(from) {
      const seconds = refused.wait(from)
      if (seconds > 0) note(from, 'too many requests that are not genuine')
      return seconds
    },
    refuse(from, why) {
      refused.take(from)
      note(from, why)
    },
  }
}

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

/** Answers an operation. The compiler checks that the body fits the schema. */
export function reply<N extends AgentOperationName>(
  c: Context,
  _operation: N,
  body: Frozen<AgentAnswer<N>>,
  status: 200 | 503 = 200,
): Response {
  return c.json(body as object, status)
}

/** One wrong field of a request. `message`: what the field must be. */
interface FieldFault {
  path: string
  code: string
  message: string
}

/** Makes an error answer. `status` must be the status of `code`. */
export function fail<C extends AgentErrorCode>(
  c: Context,
  status: StatusOf<C>,
  code: C,
  error: string,
  details?: readonly FieldFault[],
): Response {
  return c.json({ error, code, fix: AGENT_ERRORS[code].fix, ...(details && { details }) }, status)
}

/** Makes the 400 answer for a single field. */
export function failField(c: Context, path: string, code: 'invalid' | 'missing', message: string): Response {
  return fail(c, 400, 'invalid-argument', message, [{ path, code, message }])
}

/** Makes the 401 answer for a caller without a valid credential. */
export function failUnpaired(c: Context): Response {
  c.header('www-authenticate', 'Bearer')
  return fail(c, 401, 'unauthenticated', 'this request needs a credential of the agent, or a paired browser')
}

/** Makes the 403 answer for a program that may only report what a till does. */
export function failRights(c: Context): Response {
  const text = 'this program may only report what a till does: pair another one without --may for this request'
  return fail(c, 403, 'right_missing', text)
}

/** Makes the 403 answer for a host name that `hosts` of the configuration lacks. */
export function refuseHost(c: Context): Response {
  const host = (c.req.header('host') ?? '').slice(0, 100)
  return fail(c, 403, 'host_not_allowed', `the host name ${host} is not allowed: add it to hosts in the configuration`)
}

/** Answers 404 if no operation has the path, and 405 if only the method is wrong. */
export function refuseAddress(c: Context): Response {
  const methods = Object.values(AGENT_OPERATIONS).flatMap(({ path, method }) => (path === c.req.path ? [method] : []))
  if (methods.length === 0) return fail(c, 404, 'not-found', 'this address does not exist')
  c.header('allow', methods.join(', '))
  return fail(c, 405, 'method-not-allowed', `this address does not take ${c.req.method}`)
}
