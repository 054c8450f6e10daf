import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createApp } from '../../../../cloud/service/http/app.ts'
import { systemCaller, type Tenant } from '../../../../cloud/platform/foundation/caller.ts'
import { operation } from '../../../../cloud/platform/operations/operation.ts'
import { performTask } from '../../../../cloud/platform/operations/perform.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { EVENT_TYPES } from '../../../../cloud/platform/webhooks/event-types.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'

const EVENT = { type: 'product.bulk_imported', storeId: null, data: { storeId: 'st_x', imported: 1 } }

const shared = {
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Emits one event.',
  changes: true,
  request: z.strictObject({}),
  response: z.strictObject({ success: z.literal(true) }),
  example: {},
} as const

const inOneTransaction = operation({
  name: 'inOneTransaction',
  ...shared,
  async run(call) {
    call.emit(EVENT)
    return { success: true as const }
  },
})

const inSteps = operation({
  name: 'inSteps',
  ...shared,
  async steps(work) {
    await work.step(async (call) => call.emit(EVENT))
    return { success: true as const }
  },
})

const undeclared = [inOneTransaction, inSteps]

it('operations declare only events that exist', () => {
  const unknown = [...OPERATION_TABLE.values()].flatMap(({ name, emits }) =>
    emits.filter((type) => !EVENT_TYPES.has(type)).map((type) => `${name} emits ${type}`),
  )
  expect(
    unknown,
    'declare the event in cloud/platform/webhooks/event-types.ts, or correct its name in `emits`',
  ).toEqual([])
})

describe.each([
  ['checks its answers', true],
  ['runs in production', false],
])('a cloud that %s', (_, checkAnswers) => {
  let cloud: TestCloud
  let key: string
  beforeAll(async () => {
    cloud = await startTestCloud('sqlite', { config: { checkAnswers } })
    key = await cloud.key('secret')
  })
  afterAll(() => cloud.stop())

  const call = async (name: string, emits: readonly string[]) => {
    const table = new Map(undeclared.map((each) => [each.name, { ...each, emits }]))
    const app = createApp(table, cloud.db.database, cloud.cloud.services)
    cloud.errors.length = 0
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const { status } = await app.request(`/api/v1/${name}`, { method: 'POST', headers, body: '{}' })
    return { status, logged: cloud.errors.map((fields) => String((fields as Json).err)) }
  }
  const stored = async () => (await cloud.db.database.reads.selectFrom('outbox_event').select('type').execute()).length

  it.each(undeclared.map(({ name }) => name))('stores the event that %s declares', async (name) => {
    const before = await stored()
    expect(await call(name, [EVENT.type])).toEqual({ status: 200, logged: [] })
    expect(await stored()).toBe(before + 1)
  })

  it.each(undeclared.map(({ name }) => name))('reports the event that %s does not declare', async (name) => {
    const before = await stored()
    const { status, logged } = await call(name, ['product.created'])
    expect(logged).toEqual([
      expect.stringContaining(`${name} emitted "product.bulk_imported": add it to \`emits\` of ${name}`),
    ])
    // In production the change and its event are more important than the missing documentation.
    expect([status, await stored()]).toEqual(checkAnswers ? [500, before] : [200, before + 1])
  })

  it('checks the events of jobs in the same way', async () => {
    const who = { operation: inOneTransaction, caller: systemCaller('acc_x:test' as Tenant, 'job'), requestId: 'req_x' }
    cloud.errors.length = 0
    const done = performTask(who, cloud.db.database, cloud.cloud.services, async (task) => task.emit(EVENT))
    if (checkAnswers) await expect(done).rejects.toThrow('add it to `emits` of inOneTransaction')
    else {
      await done
      expect(cloud.errors).toHaveLength(1)
    }
  })
})
