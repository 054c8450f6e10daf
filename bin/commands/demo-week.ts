import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { Platform } from '../../policy/platform.ts'
import { shopper, type BasketLine, type Shopper } from '../../simulators/services/shopper.ts'
import { startCloud, type CloudSettings, type RunningCloud } from './cloud.ts'
import { WrongUsage } from '../../host/options.ts'
import { dateDemoKey, demoKey, type DemoFile } from './demo-secrets.ts'
import { rfidStore, type DemoStore } from './demo-store.ts'
import { STORE_TIME_ZONE } from '../../policy/store-time-zone.ts'
import type { AlarmDisposition } from '../../policy/vocabulary.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** Opening hours of one day, h. */
const OPEN_H = 9
/** Purchases of the days of the week before the start; the sixth day is the busiest. */
const PURCHASES = [9, 11, 8, 12, 14, 19, 10]
/** Each n-th purchase contains a tagged item, which a detacher releases. */
const TAGGED_EVERY = 3
/** The day on which the network is down for one hour. */
const OFFLINE_DAY = 4
/** How staff disposed of the alarms of the week, in rotation. */
const DISPOSITIONS: readonly AlarmDisposition[] = ['tag_left_on', 'phantom', 'staff_error', 'unintentional', 'real']

/** A cloud of the past, and a shopper who calls its API in this process. */
interface PastShop {
  readonly api: Shopper
  readonly store: DemoStore
  /** Sets the clock of the shop, ms since 1970. */
  at(wallMs: number): void
  now(): number
}

interface Product {
  readonly productId: string
  readonly ean: string
  readonly name: string
  readonly price: number
  readonly tagged: boolean
  readonly flags: { readonly requiresHumanVerification: boolean }
}

/** What the shop has before its first day. */
interface KnownShop {
  readonly operatorIds: readonly string[]
  /** Untagged goods without age limit. */
  readonly plain: readonly Product[]
  /** Tagged goods that a shopper may release without staff. */
  readonly tagged: readonly Product[]
  /** Goods with an age limit. */
  readonly aged: readonly Product[]
  readonly zoneId: string
}

/** Registers operators, a zone and stock. */
async function prepareShop({ api, store, at, now }: PastShop): Promise<KnownShop> {
  const { storeId } = store
  at(now() + MINUTE_MS)
  const operators = ['Aylin Demir', 'Jonas Krüger'].map((name, i) =>
    api.call('registerOperator', { storeId, name, pin: String(473_911 + 118_207 * i) }),
  )
  const operatorIds = (await Promise.all(operators)).map(({ operatorId }) => String(operatorId))
  const { products } = (await api.call('fetchProducts', { storeId, limit: 200 })) as { products: Product[] }
  const { zoneId } = await api.call('createZone', { storeId, name: 'Umkleide, 1. Stock' })
  for (const [i, { productId }] of products.entries())
    if (i % 5 === 0) await api.call('setStock', { storeId, productId, quantity: 60 + (i % 7) * 15 })
  const isAged = (product: Product) => product.flags.requiresHumanVerification
  return {
    operatorIds,
    zoneId: String(zoneId),
    plain: products.filter((p) => !p.tagged && !isAged(p) && p.price < 100),
    tagged: products.filter((p) => p.tagged && !isAged(p) && p.price < 150),
    aged: products.filter(isAged),
  }
}

/** One day: purchases, releases, a refund, alarms with their causes, and the closing of the day. */
async function dayOfDemo(
  shop: PastShop,
  known: KnownShop,
  { opensMs, number }: { opensMs: number; number: number },
): Promise<void> {
  const { api, at } = shop
  const count = PURCHASES[number] ?? 0
  for (let i = 0; i < count; i++) {
    const n = number * 31 + i
    const startMs = opensMs + ((i + 0.5) * OPEN_H * HOUR_MS) / count
    at(startMs)
    const transactionId = await purchase(shop, known, n)
    if (i === 3) await api.call('refundPayment', { purchaseId: transactionId, reason: 'Größe passt nicht' })
    if (i % 5 === 4) await disposedAlarm(shop, known, n)
    if (number === OFFLINE_DAY && i === 5) await offlineHour(shop, known)
  }
  at(opensMs + OPEN_H * HOUR_MS)
  await handOver(shop, await orders(shop, known, number))
  await acknowledgeAll(shop)
  // A day can be closed ten minutes after its end.
  at(opensMs + 15 * HOUR_MS)
  const date = new Date(opensMs).toLocaleDateString('sv-SE', { timeZone: STORE_TIME_ZONE })
  await api.call('closeStoreDay', { storeId: shop.store.storeId, date })
}

/** Staff look at all exceptions of the day. */
async function acknowledgeAll({ api, store: { storeId } }: PastShop): Promise<void> {
  const open = (await api.call('fetchExceptions', { storeId, state: 'open' })) as {
    exceptions: { exceptionId: string }[]
  }
  for (const { exceptionId } of open.exceptions)
    await api.call('acknowledgeException', { exceptionId, note: 'geprüft' })
}

/** The hours before the start: what waits for a person. */
async function lastHours(shop: PastShop, known: KnownShop, endMs: number): Promise<void> {
  const { api, store, at } = shop
  const { storeId } = store
  for (const [i, minutes] of [176, 151, 118, 94, 63, 37].entries()) {
    at(endMs - minutes * MINUTE_MS)
    await purchase(shop, known, 300 + i)
  }
  at(endMs - 31 * MINUTE_MS)
  await reportException(shop, 'release_jammed', {
    deviceId: store.devices.detacher,
    detail: 'the contact did not move after the release',
  })
  at(endMs - 14 * MINUTE_MS)
  const { requestId } = await api.call('requestAssistance', {
    zoneId: known.zoneId,
    message: 'Gibt es die Jacke auch in M?',
  })
  at(endMs - 12 * MINUTE_MS)
  await api.call('answerAssistanceRequest', { requestId, message: 'Ich schaue im Lager nach.' })
  at(endMs - 9 * MINUTE_MS)
  await api.call('requestAssistance', { zoneId: known.zoneId, message: 'Können Sie mir bitte die Vitrine öffnen?' })
  at(endMs - 6 * MINUTE_MS)
  await orders(shop, known, 9)
  at(endMs - 2 * MINUTE_MS)
  const wine = pick(known.aged, 3)
  const { sessionId } = await api.call('checkIn', { storeId, userId: 'sandbox-shopper-12' })
  const items = [{ ean: wine.ean, quantity: 1 }, ...lines(known, 5)]
  await api.call('startCheckout', { sessionId, items })
}

/** A paid purchase. If it contains a tagged item, a detacher releases the tag. Returns the purchase id. */
async function purchase(shop: PastShop, known: KnownShop, n: number): Promise<string> {
  const { api, store, at, now } = shop
  const { storeId, devices } = store
  const item = n % TAGGED_EVERY === 0 ? await newItem(shop, known, n) : undefined
  const items = item ? [{ ean: item.ean, quantity: 1, epcs: [item.epc] }, ...lines(known, n)] : lines(known, n)
  const { sessionId } = await api.call('checkIn', { storeId, userId: `sandbox-shopper-${n % 23}` })
  const { transactionId, awaitingApproval } = await api.call('startCheckout', { sessionId, items })
  at(now() + MINUTE_MS)
  // A spot check selected this basket.
  if (awaitingApproval === true)
    await api.call('approveCheckout', { transactionId, operatorId: pick(known.operatorIds, n) })
  await api.call('completeTestCheckout', { transactionId })
  if (item) {
    at(now() + MINUTE_MS)
    const deviceId = devices.detacher
    const granted = await api.call('verifyProtectedItem', {
      deviceId,
      protectionAction: 'detach_hard_tag',
      epc: item.epc,
    })
    if (granted['authorized'] === true) {
      const { replayProtectedNonce } = granted
      const redeemed = { replayProtectedNonce, deviceId, redemptionId: `demo-${n}`, outcome: 'confirmed' }
      await api.call('redeemProtectionAuthorization', redeemed)
    }
  }
  return String(transactionId)
}

function lines({ plain }: KnownShop, n: number): BasketLine[] {
  return Array.from({ length: 1 + (n % 3) }, (_, i) => ({
    ean: pick(plain, n * 5 + i * 11).ean,
    quantity: 1 + ((n + i) % 2),
  }))
}

function pick<T>(list: readonly T[], n: number): T {
  const found = list[n % list.length]
  if (found === undefined) throw new Error('the sandbox has no products: delete the folder var/demo and start again')
  return found
}

/** Registers a sellable item with an EPC. */
async function newItem({ api, store, now }: PastShop, { tagged }: KnownShop, n: number) {
  const product = pick(tagged, n)
  const epc =
    `E2801160${(Math.trunc(now() / 1_000) % 0x1_0000_0000).toString(16).padStart(8, '0')}${n.toString(16).padStart(8, '0')}`.toUpperCase()
  const item = { epc, ean: product.ean, protectionTechnology: 'uhf_rfid' }
  await api.call('registerProtectedItems', { storeId: store.storeId, items: [item] })
  return { ...product, epc }
}

/** An unpaid item passes the gate. Returns the event id. */
async function alarm(shop: PastShop, known: KnownShop, n: number): Promise<string> {
  const { epc } = await newItem(shop, known, n)
  return reportException(shop, 'gate_alarm', {
    deviceId: shop.store.devices.gate,
    deviceType: 'exit_gate',
    gateId: 'gate_1',
    protectionAction: 'authorize_exit',
    protectionTechnology: 'uhf_rfid',
    epc,
    detail: 'high: item_not_paid',
  })
}

async function disposedAlarm(shop: PastShop, known: KnownShop, n: number): Promise<void> {
  const eventId = await alarm(shop, known, n)
  shop.at(shop.now() + 3 * MINUTE_MS)
  const disposition = pick(DISPOSITIONS, n)
  const recovered = disposition === 'real' && { recoveredValue: pick(known.tagged, n).price }
  const operatorId = pick(known.operatorIds, n)
  await shop.api.call('disposeAlarm', { eventId, disposition, operatorId, ...recovered })
}

async function reportException(shop: PastShop, reason: string, fields: object): Promise<string> {
  return report(shop, { type: 'protection.exception.raised', reason, ...fields })
}

async function report({ api, store, now }: PastShop, fields: object): Promise<string> {
  const eventId = `evt_demo_${now()}`
  const occurredAt = new Date(now()).toISOString()
  const { errors } = (await api.call('reportProtectionEvents', {
    events: [{ eventId, occurredAt, storeId: store.storeId, ...fields }],
  })) as { errors: { message: string }[] }
  if (errors[0]) throw new Error(`the demonstration reported a wrong event: ${errors[0].message}`)
  return eventId
}

/** The network of the shop is down for an hour; the gate and the station go on. */
async function offlineHour(shop: PastShop, known: KnownShop): Promise<void> {
  const { devices } = shop.store
  await report(shop, { type: 'protection.device.offline', deviceId: devices.gate, deviceType: 'exit_gate' })
  for (let i = 0; i < 6; i++) {
    shop.at(shop.now() + 10 * MINUTE_MS)
    const { epc } = await newItem(shop, known, 500 + i)
    await report(shop, {
      type: 'protection.action.completed',
      deviceId: devices.station,
      deviceType: 'pos_deactivator',
      protectionAction: 'deactivate_label',
      protectionTechnology: 'uhf_rfid',
      epc,
      offline: true,
      outcome: 'confirmed',
    })
  }
}

/** Places two click-and-collect orders, and prepares the first. Returns their ids. */
async function orders({ api, store }: PastShop, { plain }: KnownShop, n: number): Promise<string[]> {
  const { storeId } = store
  const order = async (i: number) => {
    const { productId } = pick(plain, n * 3 + i)
    const items = [{ productId, quantity: 1 + i }]
    const placed = await api.call('submitClickCollectOrder', { storeId, userId: `sandbox-shopper-${n + i}`, items })
    return String(placed['orderId'])
  }
  const [first, second] = [await order(0), await order(1)]
  for (const status of ['confirmed', 'preparing', 'ready'])
    await api.call('updateClickCollectStatus', { orderId: first, status })
  return [first, second]
}

/** Hands over both orders of a day. */
async function handOver({ api }: PastShop, [ready, fresh]: readonly string[]): Promise<void> {
  await api.call('updateClickCollectStatus', { orderId: ready, status: 'picked_up' })
  for (const status of ['confirmed', 'preparing', 'ready', 'picked_up'])
    await api.call('updateClickCollectStatus', { orderId: fresh, status })
}

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
 * operations. Does nothing and returns false if the sandbox already has its week.
 *
 * @param settings Settings of the cloud. Its ports are ignored: this cloud answers only calls of this process.
 */
export async function fillDemoWeek(
  settings: CloudSettings,
  file: DemoFile,
  platform: Platform,
  log: Log,
): Promise<boolean> {
  if (file.read().hasWeek) return false
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
    clock.to(endMs)
    await dateDemoKey(running)
  } finally {
    clock.to(endMs)
    await running.stop()
  }
  file.write({ hasWeek: true })
  return true
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
