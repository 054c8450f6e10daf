import type { Hono } from 'hono'
import type { Agent } from '../../runtime.ts'
import type { Access } from '../access.ts'
import { fail, failUnpaired } from '../fail.ts'
import { readBody } from '../read-request.ts'
import { reply } from '../reply.ts'
import { HandleAlarmRequest } from '../request-schemas.ts'
import { sessionOf } from './operator-routes.ts'

/** Adds the route with which an operator at a gate acknowledges or disposes of an alarm. */
export function alarmRoutes(app: Hono, agent: Agent, access: Access): void {
  app.post('/v1/alarms', async (c) => {
    const body = await readBody(c, HandleAlarmRequest)
    if (body instanceof Response) return body
    const { deviceId, alarmId, step } = body
    // Unpaired callers must not use the session of the operator at the device.
    if (!access.callerOf(c)) return failUnpaired(c)
    const operator = agent.operators.find(sessionOf(c)) ?? agent.lanes.actingOperatorAt(deviceId)
    if (!operator) return fail(c, 403, 'operator_required', 'no operator is signed in at this gate')
    const state = await agent.gates.alarms.handle(deviceId, alarmId, { step, ...operator })
    if (!state)
      return fail(
        c,
        404,
        'not-found',
        'this gate has no such alarm since the agent started: dispose of it in the cloud',
      )
    return reply(c, 'handleAlarm', { alarmId, ...state })
  })
}
