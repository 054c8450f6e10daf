import type { Context, Hono } from 'hono'
import { z } from 'zod'
import type { Agent } from '../runtime.ts'

/** Host names and IPv4 addresses, with a port if not 5084. */
const Address = z
  .string()
  .regex(/^[A-Za-z0-9.-]{1,200}(:\d{1,5})?$/, 'give a host name or an IPv4 address, with a port if not 5084')
  .refine((address) => Number(address.split(':')[1] ?? 1) <= 65_535, 'the port is above 65535')
const LlrpBody = z.strictObject({ address: Address })
/** A device's entry; what is in it the configuration's own check tells. */
const EntryBody = z.strictObject({ entry: z.record(z.string().max(100), z.unknown()) })
const CheckBody = z.strictObject({ deviceId: z.string().min(1).max(128) })

export interface SetupRoutesOptions {
  isLoopback(c: Context): boolean
  read<S extends z.ZodType>(c: Context, schema: S): Promise<z.output<S> | Response>
  fail(c: Context, status: 400 | 401 | 404 | 429, code: string, error: string): Response
}

/** What the set-up page asks: only from this machine, one question of a kind at a time. */
export function setupRoutes(app: Hono, agent: Agent, { isLoopback, read, fail }: SetupRoutesOptions): void {
  const underWay = new Set<string>()

  async function once(c: Context, what: string, work: () => Promise<Response>): Promise<Response> {
    if (underWay.has(what)) return fail(c, 429, 'busy', 'this is being looked at already')
    underWay.add(what)
    return work().finally(() => underWay.delete(what))
  }

  app.use('/v1/setup/*', async (c, next) =>
    isLoopback(c) ? next() : fail(c, 401, 'unauthenticated', 'this is for the machine of the agent only'),
  )

  app.post('/v1/setup/llrp', async (c) => {
    const body = await read(c, LlrpBody)
    return body instanceof Response
      ? body
      : once(c, 'llrp', async () => c.json((await agent.surroundings?.llrpAt(body.address)) ?? { fault: '' }))
  })
  app.post('/v1/setup/devices', async (c) => {
    const body = await read(c, EntryBody)
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
      ? c.json({ file: agent.configFile.name })
      : fail(c, 400, 'invalid-argument', added.faults.join('; '))
  })
  app.post('/v1/setup/check', async (c) => {
    const body = await read(c, CheckBody)
    if (body instanceof Response) return body
    return once(c, `check ${body.deviceId}`, async () => {
      const status = await agent.check(body.deviceId)
      return status ? c.json(status) : fail(c, 404, 'not-found', 'no device of the configuration has this deviceId')
    })
  })
}
