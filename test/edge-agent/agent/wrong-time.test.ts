import { afterEach, describe, expect, it } from 'vitest'
import { openStore, type TestStore } from '../../support/store.ts'

describe('a cloud whose clock was a year ahead for some minutes', () => {
  let store: TestStore
  afterEach(() => store.stop())

  it.each([false, true])(
    'misleads its agents until the freshness key is revoked (restarted before that: %s)',
    async (isStartedAgain) => {
      store = await openStore()
      const { world, shop } = store
      const admin = await shop.cloud.key('admin', 'live')
      const scan = async (receipt: string) =>
        store.authorize({ deviceId: shop.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
      const buy = () => store.buy([{ ean: shop.products[0].ean, quantity: 1 }])
      const aheadMs = () => store.agent.clock.now().nowMs - world.clock.wall()
      await store.until('online', () => store.agent.link.isOnline)
      expect(await scan((await buy()).receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })

      const YEAR = 365 * 86_400_000
      world.setWall(world.clock.wall() + YEAR)
      await store.until(
        'the wrong time',
        () => store.agent.clock.now().nowMs > world.clock.wall() - 1_000 && store.agent.clock.now().trust === 'signed',
        30 * 60_000,
      )
      world.setWall(world.clock.wall() - YEAR)
      if (isStartedAgain) await store.drive(shop.cloud.restart())
      await world.advance(3 * 60_000)
      expect(aheadMs()).toBeGreaterThan(YEAR - 60_000)

      await store.drive(shop.cloud.ok(admin, 'rotateSigningKey', { use: 'freshness', revoke: true }))
      await store.until(
        'the right time',
        () => Math.abs(aheadMs()) < 5_000 && !store.agent.trust.isBehind && store.agent.trust.stage() === 'fresh',
        12 * 60_000,
      )
      const { receipt } = await buy()
      expect(await scan(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
      store.network(false)
      await store.until('offline', () => !store.agent.link.isOnline)
      expect(await scan(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    },
  )
})
