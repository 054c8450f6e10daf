import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { Platform } from '../../policy/platform.ts'
import { shopper } from '../../simulators/services/shopper.ts'
import { startCloud, type CloudSettings, type RunningCloud } from './cloud.ts'
import { WrongUsage } from '../options.ts'
import { dayOfDemo, lastHours, prepareShop, type PastShop } from './demo-days.ts'
import { demoKey, type DemoFile } from './demo-secrets.ts'
import { rfidStore } from './demo-store.ts'

/** Days before the start that the demonstration's data covers. */
const DAYS = 7
const DAY_MS = 86_400_000
/**
 * Time after midnight in which the shop has not closed the day before, ms. If the demonstration starts in this time, its
 * week ends one day earlier.
 */
const NIGHT_MS = 4 * 3_600_000
/** Hour at which the shop opens, in the time zone of the machine. */
const OPENS_AT_H = 10

/** The clock of the past. It moves only forward and only by `to`. */
interface PastClock {
  readonly platform: Platform
  /** Sets the wall clock, ms since 1970. An earlier time has no effect. */
  to(wallMs: number): void
}

/**
 * Fills a new sandbox with a week of a shop: purchases, releases, alarms, refunds, an hour without network, orders, a
 * waiting approval and a chat. Runs a cloud whose clock passes through the week, so all rows are those of real
 * operations. Does nothing if the sandbox already has its week.
 *
 * @param settings Settings of the cloud. Its ports are ignored: this cloud answers only calls of this process.
 */
export async function fillDemoWeek(
  settings: CloudSettings,
  file: DemoFile,
  platform: Platform,
  log: Log,
): Promise<void> {
  if (file.read().hasWeek) return
  const endMs = platform.clock.wall()
  const midnight = new Date(endMs - NIGHT_MS).setHours(0, 0, 0, 0)
  const clock = pastClock(platform, midnight - DAYS * DAY_MS + OPENS_AT_H * 3_600_000 - 3_600_000)
  const running = await startCloud({ ...settings, port: 0, mqttPort: 0 }, clock.platform, log)
  try {
    if (settings.databaseUrl !== undefined) await assertEmpty(running)
    const key = await demoKey(running, file)
    const api = shopper({
      baseUrl: running.baseUrl,
      key,
      fetch: async (url, init) => running.cloud.app.request(url, init),
    })
    const shop: PastShop = { api, store: await rfidStore(api), at: clock.to, now: () => clock.platform.clock.wall() }
    const known = await prepareShop(shop)
    for (let day = DAYS; day > 0; day--) {
      const opensMs = midnight - day * DAY_MS + OPENS_AT_H * 3_600_000
      await dayOfDemo(shop, known, { opensMs, number: DAYS - day })
    }
    await lastHours(shop, known, endMs)
  } finally {
    clock.to(endMs)
    await running.stop()
  }
  file.write({ hasWeek: true })
}

/** Throws if the database has accounts: the demonstration must not mix with the data of a real cloud. */
async function assertEmpty({ database }: RunningCloud): Promise<void> {
  if (await database.reads.selectFrom('account').select('account_id').limit(1).executeTakeFirst())
    throw new WrongUsage(['--database-url names a database with accounts: create an empty one for the demonstration'])
}

function pastClock(platform: Platform, startMs: number): PastClock {
  let wallMs = startMs
  return {
    platform: {
      ...platform,
      clock: { ...platform.clock, wall: () => wallMs, elapsed: () => platform.clock.elapsed() + wallMs - startMs },
    },
    to(ms) {
      wallMs = Math.max(wallMs, Math.trunc(ms))
    },
  }
}
