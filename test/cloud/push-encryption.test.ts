import { createECDH } from 'node:crypto'
import { expect, it } from 'vitest'
import webPush from 'web-push'
import { encryptFor } from '../../cloud/push/encrypt.ts'
import { keysOf, vapidHeader } from '../../cloud/push/vapid.ts'
import { realPlatform } from '../../bin/platform.ts'
import { newBrowser, verifyVapid } from '../support/push-service.ts'

const ENDPOINT = 'https://push.example/w/1'
const bytes = (text: string) => Buffer.from(text, 'base64url')

it('encrypts the example of RFC 8291 as the RFC does', () => {
  const random = [bytes('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'), bytes('DGv6ra1nlYgDCS1FRnbzlw')]
  const keys = {
    p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
    auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  }
  const made = encryptFor(keys, 'When I grow up, I want to be a watermelon', {
    bytes: () => random.shift() ?? Buffer.alloc(0),
  })
  expect(made.toString('base64url')).toBe(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
})

it('makes messages and tokens that are read like those of web-push', async () => {
  const browser = newBrowser(ENDPOINT)
  const { random } = realPlatform()
  const notice = { orderId: 'ord_1', text: 'Ihre Bestellung ist bereit – Grüße' }
  const text = JSON.stringify(notice)
  expect(browser.read(encryptFor(browser.keys, text, random))).toEqual(notice)
  const secret = createECDH('prime256v1')
  secret.generateKeys()
  const privateKey = secret.getPrivateKey('base64url')
  const keys = keysOf(bytes(privateKey))
  const sub = 'https://shop.example'
  const theirs = webPush.generateRequestDetails({ endpoint: ENDPOINT, keys: browser.keys }, text, {
    vapidDetails: { subject: sub, publicKey: keys.publicKey, privateKey },
  })
  expect(browser.read(theirs.body)).toEqual(notice)
  const nowMs = Date.parse('2026-11-20T09:00:00Z')
  const verify = (header: string, now?: Date) => verifyVapid(header, keys.publicKey, 'https://push.example', now)
  const ours = await verify(vapidHeader(keys, ENDPOINT, sub, nowMs), new Date(nowMs))
  expect(ours).toEqual({ aud: 'https://push.example', exp: nowMs / 1_000 + 43_200, sub })
  expect(Object.keys(await verify(String(theirs.headers['Authorization'])))).toEqual(Object.keys(ours))
  await expect(verify(vapidHeader(keys, ENDPOINT, sub, nowMs), new Date(nowMs + 43_201_000))).rejects.toThrow('exp')
})
