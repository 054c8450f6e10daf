import type { Context, Hono } from 'hono'
import type { Agent } from '../../runtime.ts'
import type { SetupFault } from '../../setup/setup.ts'
import { isLoopback } from '../access.ts'
import { AGENT_ERRORS } from '../error-codes.ts'
import { fail, reply } from '../fail.ts'
import { DETAILS_LIMIT, readBody, readQuery } from '../read-request.ts'
import {
  AddDeviceRequest,
  ChangeDeviceRequest,
  CheckDeviceRequest,
  SearchRequest,
  StartWalkTestRequest,
  TestDeviceRequest,
  WalkTestQuery,
} from '../request-schemas.ts'
import { sessionOf } from './operator-routes.ts'

/** Runs a check. Refuses a second request for the same check while it runs. */
type Once = (c: Context, what: string, work: () => Promise<Response>) => Promise<Response>

function onceAtATime(): Once {
  const underWay = new Set<string>()
  return async (c, what, work) => {
    if (underWay.has(what)) return fail(c, 429, 'busy', 'the same check is running already: wait for its result')
    underWay.add(what)
    return work().finally(() => underWay.delete(what))
  }
}

/**
 * Adds the routes of the set-up page. Only browsers and programs on the agent's machine may use these routes. While a
 * check runs, a second request for the same check is refused.
 */
export function setupRoutes(app: Hono, agent: Agent): void {
  const once = onceAtATime()

  app.use('/v1/setup/*', async (c, next) =>
    isLoopback(c) ? next() : fail(c, 401, 'unauthenticated', 'this works only on the machine of the agent'),
  )

  app.post('/v1/setup/search', async (c) => {
    const body = await readBody(c, SearchRequest)
    return body instanceof Response
      ? body
      : once(c, 'search', async () =>
          reply(c, 'findAtAddress', (await agent.deviceDiscovery?.findAtAddress(body.address)) ?? { fault: '' }),
        )
  })
  app.post('/v1/setup/devices', async (c) => {
    const body = await readBody(c, AddDeviceRequest)
    if (body instanceof Response) return body
    return once(c, 'add', async () => {
      const added = await agent.setup.add(body)
      if (!added.ok) return failSetup(c, added)
      const { file, deviceId, isInUse } = added
      return reply(c, 'addDevice', { file, deviceId, isInUse })
    })
  })
  app.post('/v1/setup/change', async (c) => {
    const body = await readBody(c, ChangeDeviceRequest)
    if (body instanceof Response) return body
    return once(c, 'add', async () => {
      const { deviceId, ...change } = body
      const changed = await agent.setup.change(deviceId, change)
      if (!changed.ok) return failSetup(c, changed)
      const { file, isInUse } = changed
      return reply(c, 'changeDevice', { file, isInUse })
    })
  })
  app.post('/v1/setup/test', async (c) => {
    const body = await readBody(c, TestDeviceRequest)
    if (body instanceof Response) return body
    return once(c, `test ${body.deviceId}`, async () => {
      const tested = await agent.setup.test(body.deviceId, body.output)
      if (!tested.ok) return failSetup(c, tested)
      const { outcome, detail } = tested.result
      return reply(c, 'testDevice', { outcome, detail })
    })
  })
  walkRoutes(app, agent, once)
  app.post('/v1/setup/check', async (c) => {
    const body = await readBody(c, CheckDeviceRequest)
    if (body instanceof Response) return body
    // While a reader is connected again, its gate reads no tags.
    const gateId = agent.workingGateOf(body.deviceId)
    if (gateId !== undefined && !mayDisturb(c, agent, gateId)) return failOperator(c)
    return once(c, `check ${body.deviceId}`, async () => {
      const status = await agent.check(body.deviceId)
      return status
        ? reply(c, 'checkDevice', status)
        : fail(c, 404, 'not-found', 'no device of the configuration has this deviceId')
    })
  })
}

const operatorAt = (c: Context, agent: Agent, deviceId: string) =>
  agent.operators.find(sessionOf(c)) ?? agent.lanes.actingOperatorAt(deviceId)

/** True if the caller may disturb a gate in use: an operator, or a technician who has just registered it with a set-up code. */
function mayDisturb(c: Context, agent: Agent, gateId: string): boolean {
  return operatorAt(c, agent, gateId) !== undefined || agent.setup.isNew(gateId)
}

function failOperator(c: Context): Response {
  return fail(
    c,
    403,
    'operator_required',
    'no operator is signed in at this gate, and no set-up code registered it in the last 15 minutes',
  )
}

/** Adds the routes of the walk test. A walk needs an operator or a set-up code, because it concerns a gate in use. */
function walkRoutes(app: Hono, agent: Agent, once: Once): void {
  const isGate = (deviceId: string) =>
    agent.status().devices.some((device) => device.deviceId === deviceId && device.deviceType === 'exit_gate')

  app.post('/v1/setup/walk-test', async (c) => {
    const body = await readBody(c, StartWalkTestRequest)
    if (body instanceof Response) return body
    const { deviceId, seconds } = body
    if (!isGate(deviceId)) return fail(c, 404, 'not-found', 'no gate of this agent has this deviceId')
    if (!mayDisturb(c, agent, deviceId)) return failOperator(c)
    const operator = operatorAt(c, agent, deviceId)
    return once(c, 'walk', async () => {
      const { walks } = agent.gates
      if (walks.isUnderWay())
        return fail(c, 429, 'busy', 'another walk is under way: wait until a tag has left, or its time is over')
      const detail = `${operator?.name ?? 'a technician'} began a walk test of ${seconds} s`
      await agent.setup.record(deviceId, { detail, ...(operator && { operatorId: operator.operatorId }) })
      agent.gates.startWalk(deviceId, seconds)
      return reply(c, 'startWalkTest', { success: true })
    })
  })
  app.get('/v1/setup/walk-test', (c) => {
    const query = readQuery(c, WalkTestQuery)
    if (query instanceof Response) return query
    const recording = agent.gates.walks.recording(query.deviceId)
    return recording
      ? reply(c, 'walkTest', recording)
      : fail(c, 404, 'not-found', 'no walk of this device was recorded: start one with POST')
  })
}

function failSetup(c: Context, { code, error, ofEntry = [] }: SetupFault): Response {
  const details = ofEntry
    .slice(0, DETAILS_LIMIT)
    .map(({ path, message }) => ({ path: `entry.${path}`, code: 'invalid', message }))
  return fail(c, AGENT_ERRORS[code].status, code, error, details.length > 0 ? details : undefined)
}
