import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tokenVerifier, type TokenVerifierOptions } from '../../../clients/typescript/verify-token.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { testKey } from '../../support/keys.ts'
import { openShop, type Shop } from '../../support/shop.ts'

const kind = DOCUMENT_KINDS.authorization
const NOW = 1_800_000_000
const issuer = 'acc_1.test'
const key = testKey('token')
const { x, kid } = key.record
const good = {
  iss: issuer,
  aud: 'dev_1',
  iat: NOW,
  exp: NOW + 300,
  jti: 'j'.repeat(22),
  led: 'device',
  act: 'detach_hard_tag',
  cnt: 1,
}
const sign = (changed: object = {}, by = key.signer) => signDocument(kind, { ...good, ...changed }, by)
const [header = '', payload = ''] = sign().split('.')

function verifier(options: Partial<TokenVerifierOptions> = {}) {
  const fetched: string[] = []
  const verify = tokenVerifier({
    cloud: 'https://untag.example',
    issuer,
    deviceId: 'dev_1',
    platform: {
      now: () => NOW * 1_000,
      fetch(url) {
        fetched.push(String(url))
        return Promise.resolve(
          Response.json({ keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' }] }),
        )
      },
    },
    ...options,
  })
  return { fetched, verify }
}

describe('tokenVerifier', () => {
  it('returns the claims, and fetches the keys of the account once', async () => {
    const { verify, fetched } = verifier()
    expect(await verify(sign())).toEqual(good)
    await verify(sign({ exp: NOW + 600 }))
    expect(fetched).toEqual(['https://untag.example/.well-known/jwks/acc_1.test.json'])
  })

  it.each([
    ['another device', sign({ aud: 'dev_2' }), 'not_for_this_device'],
    ['several devices', sign({ aud: ['dev_1'] }), 'not_for_this_device'],
    ['another account', sign({ iss: 'acc_2.test' }), 'not_for_this_device'],
    ['the ledger of an agent', sign({ led: 'led_1.1' }), 'not_for_this_device'],
    ['the ledger of the cloud', sign({ led: 'cloud' }), 'redeem_first'],
    ['an hour ago', sign({ iat: NOW - 3_600, exp: NOW - 3_300 }), 'expired'],
    ['tomorrow', sign({ iat: NOW + 6 }), 'malformed'],
    ['longer than ten minutes', sign({ exp: NOW + 601 }), 'malformed'],
    ['no nonce', sign({ jti: undefined }), 'malformed'],
    ['another kind', signDocument(DOCUMENT_KINDS.command, good, key.signer), 'malformed'],
    ['a key that is not published', sign({}, testKey('token', { seed: 9 }).signer), 'bad_signature'],
    ['another signature', `${header}.${payload}.${'A'.repeat(86)}`, 'bad_signature'],
    ['white space', `${sign()}\n`, 'malformed'],
    ['too many characters', sign({ more: 'x'.repeat(1_000) }), 'malformed'],
    ['nothing', '', 'malformed'],
  ])('refuses a token with %s', async (_, token, code) => {
    await expect(verifier().verify(token)).rejects.toMatchObject({ name: 'TokenRefused', code })
  })

  it('reports unavailable keys, and fetches them again for the next token', async () => {
    let isUp = false
    const { verify } = verifier({
      platform: {
        now: () => NOW * 1_000,
        fetch: () =>
          isUp
            ? Promise.resolve(Response.json({ keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid }] }))
            : Promise.reject(new TypeError('fetch failed')),
      },
    })
    await expect(verify(sign())).rejects.toMatchObject({ code: 'keys_unavailable' })
    isUp = true
    expect(await verify(sign())).toEqual(good)
  })
})

describe('tokenVerifier with a cloud', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop('sqlite')
  })
  afterAll(() => shop.stop())

  it('accepts a token only for its device, and only if the device may claim it offline', async () => {
    const product = shop.products[0]
    const { epc } = await shop.newItem(product)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const deviceId = shop.devices.self_checkout_detacher
    const { authorizationToken: token, replayProtectedNonce: nonce } = await shop.ok('verifyProtectedItem', {
      deviceId,
      protectionAction: 'detach_hard_tag',
      epc,
    })
    const { iss } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()) as { iss: string }
    await shop.ok('updateDevice', { deviceId, supportsOfflineAuth: true })
    await shop.ok('revokeProtectionAuthorization', { replayProtectedNonce: nonce })
    const { authorizationToken: offline } = await shop.ok('verifyProtectedItem', {
      deviceId,
      protectionAction: 'detach_hard_tag',
      epc,
    })
    const verifierOf = (device: string) =>
      tokenVerifier({
        cloud: 'http://cloud.test',
        issuer: iss,
        deviceId: device,
        platform: { fetch: async (url, init) => shop.cloud.cloud.app.request(new URL(url).pathname, init) },
      })
    await expect(verifierOf(deviceId)(token)).rejects.toMatchObject({ code: 'redeem_first' })
    expect(await verifierOf(deviceId)(offline)).toMatchObject({ act: 'detach_hard_tag', cnt: 1, aud: deviceId })
    await expect(verifierOf(shop.devices.exit_gate)(offline)).rejects.toMatchObject({ code: 'not_for_this_device' })
  })
})
