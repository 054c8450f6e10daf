import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Call } from '../../../../cloud/platform/operations/operation.ts'
import { retryUnapplied } from '../../../../cloud/protection/agents/journal/retry-unapplied.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('long rows that the cloud cannot read', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  it('are retried a million characters at a time', async () => {
    const agent = await enrolTestAgent(shop)
    for (let n = 0; n < 24; n++)
      expect((await agent.reportOnce([agent.row({ event: { junk: 'x'.repeat(190_000) } as never })])).status).toBe(200)
    const { services } = shop.cloud.cloud
    // A clock that stands: only the length of the rows ends a transaction.
    const clock = { ...services.platform.clock, elapsed: () => 0, wall: () => services.platform.clock.wall() }
    const frozen = { ...services, platform: { ...services.platform, clock } }
    let transactions = 0
    const retry = () =>
      retryUnapplied(agent.agentId, (work) =>
        shop.cloud.db.database.write(async (db) => {
          transactions++
          await work({ db, services: frozen, nowMs: clock.wall() } as unknown as Call)
        }),
      )
    await retry()
    expect(transactions).toBe(5) // of five rows
  })
})
