import { afterAll, beforeAll, expect, it } from 'vitest'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

const claimsOf = (jws: string) => JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
const ofKind = (all: string[], typ: string) =>
  all.find((jws) => JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()).typ === typ) ?? ''

inFullSizeOnEveryDatabase('time epochs', (kind) => {
  let platform: VirtualPlatform
  let shop: Shop
  let agent: TestAgent
  let admin: string

  beforeAll(async () => {
    platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
    shop = await openShop(kind, { platform })
    agent = await enrolTestAgent(shop)
    admin = await shop.cloud.key('admin', 'live')
  })
  afterAll(() => shop.stop())

  const rotate = (body: Json) => shop.cloud.ok(admin, 'rotateSigningKey', { mode: 'test', use: 'freshness', ...body })
  /** Epochs of the key set (undefined if it has none), the freshness and the time response. */
  async function epochs(): Promise<(number | undefined)[]> {
    const documents: string[] = (await agent.call('fetchSignedDocuments', { have: {} })).body.documents
    const { time } = (await shop.cloud.get(`/api/v1/time?nonce=${'n'.repeat(22)}`)).body
    return [
      claimsOf(ofKind(documents, 'keys+jwt')).timeEpoch,
      claimsOf(ofKind(documents, 'fresh+jwt')).timeEpoch,
      claimsOf(time).timeEpoch,
    ]
  }

  it('start with each revoked freshness key, also after documents with a future time', async () => {
    expect(await epochs()).toEqual([undefined, 0, 0])
    await rotate({})
    expect(await epochs()).toEqual([undefined, 0, 0])
    await shop.cloud.db.database.write((db) =>
      shop.cloud.cloud.services.authority.storeLastSigned(db, platform.clock.wall() + 400 * 86_400_000),
    )
    await shop.cloud.restart()
    expect((await agent.call('fetchSignedDocuments', { have: {} })).status).toBe(503)
    await rotate({ revoke: true })
    const begun = Math.floor(platform.clock.wall() / 1_000)
    expect(await epochs()).toEqual([begun, begun, begun])
    await shop.cloud.restart()
    expect(await epochs()).toEqual([begun, begun, begun])
    await rotate({ revoke: true })
    expect(await epochs()).toEqual([begun + 1, begun + 1, begun + 1])
  })
})
