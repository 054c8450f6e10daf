import { afterAll, beforeAll, expect, it } from 'vitest'
import { BODY_ROOM, bodyRoom } from '../../../../cloud/service/http/body.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const MB = 1024 * 1024
let shop: Shop
beforeAll(async () => void (shop = await openShop('sqlite')))
afterAll(() => shop.stop())

it('refuses large bodies of an account that fills its room, before it reads them', async () => {
  const stranger = await shop.cloud.key('secret', 'test', { account: 'Fremd' })
  const ends: (() => void)[] = []
  /** Announces 20 MB and sends the rest only at the end of the test. */
  const upload = (key: string) => {
    const body = new ReadableStream({ start: (stream) => void ends.push(() => stream.close()) })
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'multipart/form-data; boundary=xxxx',
      'content-length': String(20 * MB),
    }
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
    return Promise.resolve(shop.cloud.cloud.app.request('/api/v1/importProducts', init))
  }
  const held = Array.from({ length: 6 }, () => upload(shop.key))
  const refused = await upload(shop.key)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
  expect(await shop.call('fetchStores')).toMatchObject({ status: 200 })
  held.push(upload(stranger))
  for (const end of ends) end()
  for (const answer of await Promise.all(held)) expect(answer.status).toBe(400)
  const next = upload(shop.key)
  ends.at(-1)?.()
  expect((await next).status).toBe(400)
})

it('has room for several holders, and gets it back', () => {
  const room = bodyRoom()
  const take = (holder: string) => room(holder, BODY_ROOM.ofOne)
  const [first] = ['a', 'b', 'c'].map(take)
  expect(() => take('d')).toThrow('too many large bodies')
  expect(() => room('d', BODY_ROOM.ofOne / 2)).not.toThrow()
  expect(() => room('e', BODY_ROOM.ofOne / 4)).not.toThrow()
  first?.()
  expect(() => take('f')).toThrow('too many large bodies')
  expect(() => room('f', BODY_ROOM.ofOne / 2)).not.toThrow()
})
