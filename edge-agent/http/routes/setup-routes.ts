import type { Context, Hono } from 'hono'
import type { Agent } from '../../runtime.ts'
import { isLoopback } from '../connection.ts'
import { fail } from '../fail.ts'
import { readBody } from '../read-request.ts'
import { reply } from '../reply.ts'
import { AddDeviceRequest, CheckDeviceRequest, LlrpRequest } from '../request-schemas.ts'

/**
 * Adds the routes of the set-up page. Only browsers and programs on the agent's machine may use these routes. While a
 * check runs, a second request for the same check is refused.
 */
export function setupRoutes(app: Hono, agent: Agent): void {
  const underWay = new Set<string>()

  async function once(c: Context, what: string, work: () => Promise<Response>): Promise<Response> {
    if (underWay.has(what)) return fail(c, 429, 'busy', 'the same check is running already: wait for its result')
    underWay.add(what)
    return work().finally(() => underWay.delete(what))
  }

  app.use('/v1/setup/*', async (c, next) =>
    isLoopback(c) ? next() : fail(c, 401, 'unauthenticated', 'this works only on the machine of the agent'),
  )

  app.post('/v1/setup/llrp', async (c) => {
    const body = await readBody(c, LlrpRequest)
    return body instanceof Response
      ? body
      : once(c, 'llrp', async () =>
          reply(c, 'findLlrp', (await agent.deviceDiscovery?.findLlrpReader(body.address)) ?? { fault: '' }),
        )
  })
  app.post('/v1/setup/devices', async (c) => {
    const body = await readBody(c, AddDeviceRequest)
    if (body instanceof Response) return body
    if (!agent.configFile)
      return fail(
        c,
        404,
        'no_config_file',
        'this agent was started without a configuration file: start it with --config FILE',
      )
    const added = agent.configFile.add(body.entry)
    return added.ok
      ? reply(c, 'addDevice', { file: agent.configFile.name })
      : fail(c, 400, 'invalid-argument', added.faults.join('; '))
  })
  app.post('/v1/setup/check', async (c) => {
    const body = await readBody(c, CheckDeviceRequest)
    if (body instanceof Response) return body
    return once(c, `check ${body.deviceId}`, async () => {
      const status = await agent.check(body.deviceId)
      return status
        ? reply(c, 'checkDevice', status)
        : fail(c, 404, 'not-found', 'no device of the configuration has this deviceId')
    })
  })
}
