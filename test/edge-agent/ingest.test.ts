import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type TestStore } from '../support/store.ts'

const SECRET = 'a-secret-of-gate-1-alone'
const BODY = { reads: [{ epc: '3034257BF400B800000000C8', ts: '1716900123456' }] }

describe('readers that send to the agent', () => {
  let store: TestStore
  const send = (headers: Record<string, string>) => store.local('/ingest/gate-1', { method: 'POST', body: BODY, headers })
  beforeAll(async () => {
    store = await openStore({ devices: [{ deviceId: 'dev_reader', driver: 'http-ingest', link: { push: 'gate-1' }, secret: SECRET, mapping: 'keonn' }] })
  })
  afterAll(() => store.stop())

  it('reach their driver through the agent’s own HTTP, with their secret and by the agent’s name only', async () => {
    await store.until('the device', () => store.agent.status().devices.some(({ deviceId, state }) => deviceId === 'dev_reader' && state === 'ready'))
    expect(await send({ authorization: `Bearer ${SECRET}` })).toMatchObject({ status: 200, body: { success: true } })
    expect(await send({})).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    expect(await send({ authorization: `Bearer ${SECRET}`, host: 'evil.example' })).toMatchObject({ status: 403 })
    expect(await send({ authorization: `Bearer ${SECRET}`, origin: 'https://evil.example' })).toMatchObject({ status: 403 })
  })
})
