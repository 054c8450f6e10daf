import { dayOf } from '../../cloud/shop/analytics/store-days.ts'
import type { Json } from './cloud.ts'
import type { DatabaseKind } from './databases.ts'
import { movablePlatform } from './movable-platform.ts'
import { openShop, type Shop } from './shop.ts'

const DAY = 24 * 3_600_000
const QUARTER_HOUR = 15 * 60_000

/** The sandbox of an account with package PRIME, on a clock that a test can move forward. */
export interface PrimeShop extends Shop {
  forward(ms: number): void
  /** Moves the clock to the next day, after the first minutes in which the previous day is still open. */
  nextDay(): void
  today(): string
}

export async function openPrimeShop(kind: DatabaseKind): Promise<PrimeShop> {
  const { platform, forward } = movablePlatform()
  const shop = await openShop(kind, { platform })
  const key = await shop.cloud.key('secret', 'test', { account: 'Deichgold', package: 'PRIME' })
  const { stores } = await shop.cloud.ok(key, 'fetchStores')
  const today = () => dayOf(platform.clock.wall())
  const ok: Shop['ok'] = (operation, body, headers) => shop.cloud.ok(key, operation, body, headers)
  return {
    ...shop,
    key,
    storeId: stores.find((s: Json) => s.securityTagMode === 'rfid').storeId,
    otherStoreId: stores.find((s: Json) => s.securityTagMode === 'station').storeId,
    ok,
    call: (operation, body, headers) => shop.cloud.call(key, operation, body, headers),
    forward,
    nextDay() {
      forward(DAY)
      if (dayOf(platform.clock.wall() - QUARTER_HOUR) !== today()) forward(QUARTER_HOUR)
    },
    today,
  }
}
