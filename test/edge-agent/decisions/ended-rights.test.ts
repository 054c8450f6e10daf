import { expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore } from '../../support/store.ts'

const HOST = '127.0.0.1:8090'
const log = { info: () => undefined, warn: () => undefined, error: () => undefined }

it('requests that wait for their turn are refused when the pairing or the operator’s session has ended', async () => {
  const store = await openStore()
  const { shop, agent, world } = store
  const { operatorId } = await store.drive(
    shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau P', pin: '471108' }),
  )
  const { policy } = await store.drive(shop.ok('fetchProtectionPolicy', { storeId: shop.storeId }))
  await store.drive(
    shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...policy, requiresManualOverrideAboveValue: 1 },
    }),
  )
  const known = () => agent.trust.policy?.policy.requiresManualOverrideAboveValue === 1
  await store.until('operator and policy', () => agent.trust.policy?.operators.length === 1 && known())
  const [{ ean } = { ean: '' }] = shop.products
  const receipts: string[] = []
  for (let i = 0; i < 6; i++) receipts.push((await store.buy([{ ean, quantity: 1 }])).receipt)
  store.network(false)
  await store.until('offline', () => !agent.link.isOnline)
  // Without `store.local`, which lets the time pass.
  const app = localApp(agent, { hosts: () => [HOST], log, credential: () => undefined })
  for (const isPairing of [true, false]) {
    const credential = newSecret('pair', world.random)
    agent.ledger.pairings.addProgram(hashSecret(credential), `program ${isPairing}`, world.clock.wall(), [])
    const headers = { authorization: `Bearer ${credential}` }
    const signIn = { method: 'POST', body: { operatorId, pin: '471108' }, headers }
    const { session } = (await store.local('/v1/operator', signIn)).body
    const own = receipts.splice(0, 3).map(async (receipt) => {
      const body = JSON.stringify({
        deviceId: shop.devices.pos_deactivator,
        protectionAction: 'deactivate_label',
        receipt,
      })
      const sent = { host: HOST, 'content-type': 'application/json', 'content-length': String(body.length) }
      const all = { ...sent, ...headers, 'x-untag-operator': session as string }
      const answer = await app.request(`http://${HOST}/v1/authorize`, { method: 'POST', body, headers: all })
      return (await answer.json()) as Json
    })
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
    if (!isPairing) agent.operators.close(session)
    else
      for (const { id, name } of agent.ledger.pairings.list())
        if (name === 'program true') agent.ledger.pairings.revoke(id)
    const answers = await store.drive(Promise.all(own))
    // The first one had its turn before.
    expect(answers.slice(1).map(({ authorized, reason }) => [authorized, reason])).toEqual(
      [1, 2].map(() => [false, 'manual_assistance_required']),
    )
  }
  await store.stop()
})
