import type { MiddlewareHandler } from 'hono'
import { fail } from './fail.ts'

/** Requests that may wait for a decision or its outcome at once: a store has a handful of lanes. */
export const DECIDING_LIMIT = 200

/** Lets few requests wait for decisions at once, all addresses it is used for together. The rest gets 503. */
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
