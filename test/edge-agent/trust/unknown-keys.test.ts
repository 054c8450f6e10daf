import { afterEach, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { newKey, createSigner } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

it('tokens with unknown key ids cause at most two polls per second and delay no other request', async () => {
  store = await openStore()
  const { world, shop } = store
  const deviceId = shop.devices.pos_deactivator
  const { purchase } = await store.buy([{ ean: shop.products[0].ean, quantity: 1 }])
  const { authorizationToken: genuine } = await shop.ok('verifySecurityTagDeactivation', {
    purchaseId: purchase.transactionId,
    deviceId,
  })
  const show = (token: string) => store.authorize({ deviceId, protectionAction: 'deactivate_label', token })
  const forged = () => {
    const { x, secret } = newKey(world.random)
    const iat = Math.floor(world.clock.wall() / 1_000)
    return signDocument(DOCUMENT_KINDS.authorization, { aud: deviceId, iat, exp: iat + 300 }, createSigner(x, secret))
  }
  let fetches = 0
  store.onFetch((url) => {
    if (url.endsWith('/fetchSignedDocuments')) fetches++
    return true
  })
  const began = world.clock.elapsed()
  for (let n = 0; n < 200; n++)
    expect(await show(forged())).toMatchObject({ authorized: false, reason: 'token_invalid', outcome: null })
  const seconds = (world.clock.elapsed() - began) / 1_000
  // The rate limit allows 20 polls at once, then 2 per second. The regular polls come every 15 s.
  expect(fetches).toBeLessThanOrEqual(20 + 2 * seconds + seconds / 15 + 1)
  expect(fetches).toBeLessThan(60)
  expect(await show(genuine)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  expect(store.pulses('station')).toBe(1)
})
