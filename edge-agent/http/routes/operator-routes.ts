import type { Context, Hono } from 'hono'
import type { SignInResult } from '../../lanes/operators.ts'
import { FairTurns } from '../../decisions/fair-turns.ts'
import type { Agent } from '../../runtime.ts'
import type { Access } from '../access.ts'
import { fail, failUnpaired, reply } from '../fail.ts'
import { readBody, readQuery } from '../read-request.ts'
import { DeviceQuery, SignInRequest } from '../request-schemas.ts'

/**
 * `Retry-After` of a sign-in while the agent lacks the store key, s. The key arrives with the next login at the cloud.
 */
const KEY_RETRY_SECONDS = 5

/** Operator session in the headers of a request. */
export function sessionOf(c: Context): string | undefined {
  return c.req.header('x-untag-operator')
}

/** Sign-ins of one caller that wait for their turn. */
const WAITING_LIMIT = 4

/** Adds the routes to sign operators in and out, and to list them. */
export function operatorRoutes(app: Hono, agent: Agent, access: Access): void {
  /** A PIN costs a tenth of a second, in which no gate or lane is served. */
  const turns = new FairTurns(agent.platform)
  const waiting = new Map<string, number>()

  async function turnOf(callerId: string): Promise<boolean> {
    const before = waiting.get(callerId) ?? 0
    if (before >= WAITING_LIMIT) return false
    waiting.set(callerId, before + 1)
    await turns.next(callerId)
    const left = (waiting.get(callerId) ?? 1) - 1
    if (left > 0) waiting.set(callerId, left)
    else waiting.delete(callerId)
    return true
  }

  app.post('/v1/operator', async (c) => {
    const body = await readBody(c, SignInRequest)
    if (body instanceof Response) return body
    const { deviceId, ...proof } = body
    const sender = access.callerOf(c)
    if (sender && !(await turnOf(sender.id)))
      return refuseSignIn(c, { ok: false, reason: 'locked', retryAfterSeconds: 1 })
    const caller = access.callerOf(c)
    if (!caller) return failUnpaired(c)
    const opened =
      deviceId === undefined ? agent.operators.signIn(proof, caller.id) : agent.lanes.signIn(deviceId, proof, caller.id)
    return opened.ok ? reply(c, 'signIn', signedIn(opened)) : refuseSignIn(c, opened)
  })
  /**
   * Returns the name of the operator at the named device, or else of the operator whose session the request names.
   * Pages send this request after they reconnect.
   */
  app.get('/v1/operator', (c) => {
    const query = readQuery(c, DeviceQuery)
    if (query instanceof Response) return query
    const { deviceId } = query
    return reply(c, 'signedIn', {
      name:
        (deviceId === undefined ? agent.operators.peek(sessionOf(c))?.name : agent.lanes.operatorAt(deviceId)) ?? null,
    })
  })
  app.delete('/v1/operator', (c) => {
    const query = readQuery(c, DeviceQuery)
    if (query instanceof Response) return query
    const session = sessionOf(c)
    if (session) agent.operators.close(session)
    if (query.deviceId !== undefined) agent.lanes.signOut(query.deviceId)
    return reply(c, 'signOut', { success: true })
  })
  app.get('/v1/operators', (c) =>
    reply(c, 'operators', {
      operators: (agent.trust.policy?.operators ?? []).map(({ operatorId, name, pin }) => ({
        operatorId,
        name,
        hasPin: pin !== undefined,
      })),
    }),
  )
}

function signedIn({ session, operatorId, name }: SignInResult & { ok: true }) {
  return { session, operatorId, name, idleSeconds: 900 }
}

function refuseSignIn(c: Context, refused: SignInResult & { ok: false }): Response {
  if (refused.reason === 'wrong') return fail(c, 401, 'wrong_credentials', 'badge or PIN is wrong')
  if (refused.reason === 'no_store_key') {
    c.header('retry-after', String(KEY_RETRY_SECONDS))
    return fail(
      c,
      503,
      'no_store_key',
      'the agent does not have the store’s new key yet, which the cloud sends at login: connect the agent to the cloud and try again',
    )
  }
  c.header('retry-after', String(refused.retryAfterSeconds))
  return fail(c, 429, 'locked', `too many wrong attempts: wait ${refused.retryAfterSeconds} s`)
}
