import { createECDH } from 'node:crypto'
import { expect, it } from 'vitest'
import webPush from 'web-push'
import { CONTENT_ENCODING, keysOf, vapidHeader } from '../../../../cloud/shop/push/sender.ts'
import { newBrowser, verifyVapid } from '../../../support/push-service.ts'

const ENDPOINT = 'https://push.example/w/1'
const bytes = (text: string) => Buffer.from(text, 'base64url')

/** RFC 8291, section 5. */
const RFC_8291 = {
  privateKey: 'q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  message:
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  text: 'When I grow up, I want to be a watermelon',
}

it('the test browser decrypts the example of RFC 8291', () => {
  const browser = newBrowser(ENDPOINT, RFC_8291)
  expect(browser.text(bytes(RFC_8291.message))).toBe(RFC_8291.text)
})

it('push encryption creates notices that a browser decrypts', () => {
  const browser = newBrowser(ENDPOINT)
  const notice = { orderId: 'ord_1', text: 'Ihre Bestellung ist bereit – Grüße' }
  const { p256dh, auth } = browser.keys
  const { cipherText } = webPush.encrypt(p256dh, auth, JSON.stringify(notice), CONTENT_ENCODING)
  expect(browser.read(cipherText)).toEqual(notice)
})

it('the VAPID header contains a token that `jose` verifies for 12 hours', async () => {
  const pair = createECDH('prime256v1')
  pair.generateKeys()
  const keys = keysOf(pair.getPrivateKey())
  const sub = 'https://shop.example'
  const nowMs = Date.parse('2026-11-20T09:00:00Z')
  const header = await vapidHeader(keys, ENDPOINT, sub, nowMs)
  const verify = (now: number) => verifyVapid(header, keys.publicKey, 'https://push.example', new Date(now))
  expect(await verify(nowMs)).toMatchObject({ aud: 'https://push.example', exp: nowMs / 1_000 + 43_200, sub })
  await expect(verify(nowMs + 43_201_000)).rejects.toThrow('exp')
})
