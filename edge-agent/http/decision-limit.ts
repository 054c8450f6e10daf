import type { MiddlewareHandler } from 'hono'
import { fail } from './fail.ts'

/** Maximum concurrent requests that wait for a decision or outcome. A store has only a few lanes. */
export const DECIDING_LIMIT = 200

/** Limits the concurrent requests of all routes that use this middleware. Answers further requests with 503. */
export function decisionLimit(): MiddlewareHandler {
  let deciding = 0
  return async (c, next) => {
    if (deciding >= DECIDING_LIMIT) {
      c.header('retry-after', '1')
      return fail(
        c,
        503,
        'too_many_requests',
        `${DECIDING_LIMIT} requests wait for their outcome: send this one again later`,
      )
    }
    deciding++
    return next().finally(() => void deciding--)
  }
}
