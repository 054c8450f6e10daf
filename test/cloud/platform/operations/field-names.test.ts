import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'

let cloud: TestCloud
let key: string
let storeId: string
beforeAll(async () => {
  cloud = await startTestCloud('sqlite')
  key = await cloud.key('secret')
  const { stores } = await cloud.ok(key, 'fetchStores')
  storeId = stores[0].storeId
})
afterAll(() => cloud.stop())

/** A form with one more field of any name, as `FormData` or as text. */
async function sendForm(name: string, file = ''): Promise<{ status: number; error: string }> {
  const part = (field: string, text: string, more = '') =>
    `--limit\r\ncontent-disposition: form-data; name="${field}"${more}\r\n\r\n${text}\r\n`
  const body = [
    part('storeId', storeId),
    part('file', 'ean,name,price,vat\n4006381333931,Marker,1.99,19\n', '; filename="goods.csv"'),
    part(name, 'x', file),
    '--limit--\r\n',
  ].join('')
  const headers = { 'content-type': 'multipart/form-data; boundary=limit', authorization: `Bearer ${key}` }
  const answer = await cloud.cloud.app.request('/api/v1/importProducts', { method: 'POST', headers, body })
  return { status: answer.status, error: ((await answer.json()) as { error: string }).error }
}

it.each(['nonsense', '__proto__', 'constructor', 'toString'])(
  'the API rejects the form field %s as unknown',
  async (name) => {
    const refused = { status: 400, error: expect.stringContaining(`unknown field "${name}"`) as string }
    expect(await sendForm(name)).toEqual(refused)
    expect(await sendForm(name, '; filename="x.csv"')).toEqual(refused)
  },
)

it.each(['nonsense', '__proto__', 'constructor'])('the API rejects the query field "%s" as unknown', async (name) => {
  const path = `/api/v1/fetchStore?storeId=${storeId}&${name}=1`
  const { status, body } = await cloud.get(path, { authorization: `Bearer ${key}` })
  expect([status, body.error]).toEqual([400, expect.stringContaining(`unknown field "${name}"`)])
})
