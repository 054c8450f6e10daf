import { afterAll, beforeAll, expect, it } from 'vitest'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { newKey, publicJwk } from '../../../policy/documents/keys.ts'
import { enrolTestAgent, type TestAgent } from '../../support/test-agent.ts'

onEveryDatabase('a set-up code', (kind) => {
  let shop: Shop
  let agent: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind)
    agent = await enrolTestAgent(shop)
  })
  afterAll(() => shop.stop())

  const newCode = async () => (await shop.ok('createSetupCode', { storeId: shop.storeId })).code as string
  const register = (by: TestAgent, code: string) =>
    by.call('registerDeviceWithCode', { code, deviceType: 'exit_gate', name: 'Ausgang Nord' })

  it('registers one device, for an agent of the code’s store only', async () => {
    const stranger = await enrolTestAgent(shop, shop.otherStoreId)
    const code = await newCode()
    expect(code).toMatch(/^[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}$/)
    expect((await register(stranger, code)).status).toBe(404)
    expect((await register(agent, 'AAAA-AAAA-AAAA')).status).toBe(404)
    // An agent may not register a device without a code, nor create a code.
    for (const operation of ['registerDevice', 'createSetupCode'])
      expect((await agent.call(operation, { storeId: shop.storeId, deviceType: 'exit_gate' })).status).toBe(403)
    const { status, body } = await register(agent, code.toLowerCase().replaceAll('-', ' '))
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ storeId: shop.storeId, agentId: agent.agentId, name: 'Ausgang Nord' }),
    ])
    // A repeated call returns the same device, and may rename it. Another agent of the store gets nothing.
    const { deviceId } = body
    expect((await register(agent, code)).body.deviceId).toBe(deviceId)
    const renamed = await agent.call('registerDeviceWithCode', { code, deviceType: 'exit_gate', name: 'Ausgang Süd' })
    expect(renamed.body).toMatchObject({ deviceId, name: 'Ausgang Süd' })
    const { body: kept } = await agent.call('registerDeviceWithCode', { code, deviceType: 'exit_gate' })
    expect(kept).toMatchObject({ deviceId, name: 'Ausgang Süd' })
    const late = await register(await enrolTestAgent(shop), code)
    expect([late.status, late.body.reason]).toEqual([409, 'setup_code_used'])
  })

  it('registers one device if two agents use it at the same time', async () => {
    const code = await newCode()
    const rival = await enrolTestAgent(shop)
    const answers = await Promise.all([register(agent, code), register(rival, code)])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409])
  })

  it('is replaced by a newer code, and ends after 15 minutes', async () => {
    const [first, second] = [await newCode(), await newCode()]
    expect((await register(agent, first)).status).toBe(404)
    await shop.cloud.db.database.write((db) => db.updateTable('setup_code').set({ expires_ms: 1 }).execute())
    expect((await register(agent, second)).body.reason).toBe('setup_code_expired')
  })

  it('ends with the right of who made it, like a code for a new agent', async () => {
    const { storeId } = shop
    const { database } = shop.cloud.db
    const codesOf = async (token: string) => {
      const call = async (operation: string) => (await shop.cloud.ok(token, operation, { storeId })).code as string
      return { setUp: await call('createSetupCode'), enrol: await call('createEnrolmentCode') }
    }
    const enrol = async (code: string) =>
      (await shop.cloud.call(null, 'enrolEdgeAgent', { code, publicJwk: publicJwk(newKey(random).x), proof: 'x' })).body
    const { random } = shop.cloud.platform
    const manager = await codesOf(await shop.cloud.user('manager'))
    const made = await shop.ok('createApiKey', { name: 'till', kind: 'secret' })
    // The proof is checked after the code.
    expect((await enrol(manager.enrol)).details?.[0]?.path).toBe('proof')
    await database.write((db) =>
      db.updateTable('console_user').set({ role: 'viewer' }).where('role', '=', 'manager').execute(),
    )
    expect((await register(agent, manager.setUp)).status).toBe(404)
    expect((await enrol(manager.enrol)).code).toBe('not-found')
    const ofKey = await codesOf(made.key)
    await shop.ok('revokeApiKey', { keyId: made.keyId })
    expect((await register(agent, ofKey.setUp)).status).toBe(404)
    expect((await enrol(ofKey.enrol)).code).toBe('not-found')
  })
})
