import { afterEach, expect, it } from 'vitest'
import type { AgentParts } from '../../../edge-agent/runtime.ts'
import type { Json } from '../../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

/** A revoked agent receives a signed command of the cloud. From then on it releases nothing, not even offline. */

let store: TestStore
afterEach(() => store.stop())

const ok = (operation: string, body: Json) => store.drive(store.shop.ok(operation, body))
const station = () => store.shop.devices[LANES.station]
const buy = () => store.buy([{ ean: store.shop.products.toSorted((a, b) => a.price - b.price)[0].ean, quantity: 1 }])
const show = (shown: Json) => store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', ...shown })
const isRevoked = () => store.agent.status().ledgerDoubt === 'revoked'

it.each([true, false])(
  'a revoked agent releases nothing within seconds, by receipt, token or at the gate, also after restarts (broker: %s)',
  async (broker) => {
    store = await openStore({ broker })
    await store.until('online', () => store.agent.link.isOnline)
    const [first, second] = [await buy(), await buy()]
    const { authorizationToken: token } = await ok('verifySecurityTagDeactivation', {
      purchaseId: first.purchase.transactionId,
      deviceId: station(),
    })
    await ok('revokeAgent', { agentId: store.identity.agentId })
    await store.until('the revocation', isRevoked, 20_000)
    const refused = { authorized: false, reason: 'device_revoked' }
    const gate = { deviceId: store.shop.devices[LANES.gate], protectionAction: 'authorize_exit' }
    const tryAll = async () => {
      for (const shown of [{ receipt: second.receipt }, { token }]) expect(await show(shown)).toMatchObject(refused)
      expect(await store.authorize({ ...gate, receipt: second.receipt })).toMatchObject(refused)
    }
    await tryAll()
    expect((await store.local('/setup?lang=en')).body).toContain('This agent was revoked')
    expect((await store.local('/setup?lang=de')).body).toContain('Dieser Agent wurde gesperrt')
    await store.restart()
    await tryAll()
    store.network(false)
    await store.world.advance(1_000)
    await tryAll()
    expect(store.pulses('station')).toBe(0)
  },
)

it('an agent that was offline learns of its revocation when it reconnects', async () => {
  store = await openStore()
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  const { receipt } = await buy()
  await ok('revokeAgent', { agentId: store.identity.agentId })
  store.network(true)
  await store.until('the revocation', isRevoked, 20_000)
  expect(await show({ receipt })).toMatchObject({ authorized: false, reason: 'device_revoked' })
})

it.each([-30_000, 120_000])(
  'an agent whose clock is wrong by %d ms learns of its revocation when it reconnects',
  async (drift) => {
    const parts: Partial<AgentParts> = {}
    let gained = 0
    store = await openStore({
      parts,
      extra: async (_shop, world) => {
        parts.platform = {
          ...world,
          clock: {
            wall: () => world.clock.wall() + gained,
            elapsed: () => world.clock.elapsed() + gained,
            bootId: world.clock.bootId,
          },
        }
        return {}
      },
    })
    await store.until('online', () => store.agent.link.isOnline)
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    const { receipt } = await buy()
    await ok('revokeAgent', { agentId: store.identity.agentId })
    await store.world.advance(60_000)
    gained = drift
    store.network(true)
    await store.until('the revocation', isRevoked, 40_000)
    expect(await show({ receipt })).toMatchObject({ authorized: false, reason: 'device_revoked' })
  },
)
