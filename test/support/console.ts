import { stateColumns } from '../../cloud/protection/agent-identity/agent-queries.ts'
import { bodyRoom } from '../../cloud/service/http/body.ts'
import { Hono } from 'hono'
import {
  type UserRole,
  tenantOf,
  type KnownCaller,
  type Mode,
  type UserCaller,
} from '../../cloud/platform/foundation/caller.ts'
import type { ConsoleAccess, ConsoleUser, ConsolePage } from '../../cloud/console/frame/page.ts'
import { consoleRoutes } from '../../cloud/console/frame/console.tsx'
import { perform, performStream } from '../../cloud/platform/operations/perform.ts'
import { formBody } from './form-body.ts'
import type { Shop } from './shop.ts'

/** Header with which a test chooses its role. */
export const ROLE_HEADER = 'x-test-role'
/** Secret in the forms of the test's session. */
export const CSRF = 'csrf-of-the-test'

/** The console of a shop, with a user whose role a header chooses. Without the header the browser is signed out. */
export function consoleOf(
  shop: Shop,
  accountId: string,
  pages?: readonly ConsolePage[],
  role?: UserRole,
  storeIds: readonly string[] | null = null,
): Hono {
  const app = new Hono()
  // The sessions of this test are in no database.
  const services = { ...shop.cloud.cloud.services, findCaller: async (_: unknown, caller: KnownCaller) => caller }
  const { database } = shop.cloud.db
  const callerOf = (user: ConsoleUser, mode: Mode): UserCaller => ({
    kind: 'user',
    keyId: user.userId,
    sessionId: 'ses_1',
    role: user.role,
    hasSecondFactor: true,
    mayUseLive: true,
    accountId: user.accountId,
    mode,
    tenant: tenantOf(user.accountId, mode),
    storeIds: user.storeIds,
    package: 'PRIME',
  })
  const access: ConsoleAccess = {
    async sessionOf(c) {
      const chosen = (c.req.header(ROLE_HEADER) ?? role) as UserRole | undefined
      if (chosen === undefined) return undefined
      const user = { userId: 'usr_1', name: 'Petra Lindner', email: 'petra@shop.example', accountId, storeIds }
      const chosenUser = { ...user, role: chosen }
      return {
        user: chosenUser,
        caller: callerOf(chosenUser, 'live'),
        mode: 'live' as const,
        mayUseLive: true,
        csrfToken: CSRF,
      }
    },
    takePage: () => undefined,
    performAs: (session, { mode, ...call }) =>
      perform({ ...call, caller: callerOf(session.user, mode), isLegacyForm: false }, database, services),
    streamAs: (session, { mode, ...call }) =>
      performStream({ ...call, caller: callerOf(session.user, mode), isLegacyForm: false }, database, services),
    signInPage: async (c) => c.html('<h1>Sign in</h1>', 401),
    signOut: async () => undefined,
  }
  consoleRoutes(app, { access, services, takeRoom: bodyRoom(), ...(pages && { pages }) })
  return app
}

/** One recall of a lot, and one that has ended. */
async function leaveRecalls(shop: Shop): Promise<void> {
  const [{ ean }] = shop.products
  const lot = { storeIds: [shop.storeId], ean, lot: 'L-2611' }
  const former = await shop.ok('recallProducts', { ...lot, reason: 'Prüfung der Naht' })
  await shop.ok('endRecall', { recallId: former.recallId })
  await shop.ok('recallProducts', {
    ...lot,
    expiry: '2027-01-31',
    reason: 'Die Naht löst sich. Gesammelt an den Lieferanten zurück.',
  })
}

/** Fills the shop's store so that each page has something to show: tasks of all kinds, and agents in all states. */
export async function fillConsole(shop: Shop): Promise<{ accountId: string }> {
  const { storeId } = shop
  const { database } = shop.cloud.db
  const nowMs = shop.cloud.platform.clock.wall()
  const { tenant } = await database.reads
    .selectFrom('store')
    .select('tenant')
    .where('store_id', '=', storeId)
    .executeTakeFirstOrThrow()
  const { zoneId } = await shop.ok('createZone', { storeId, name: 'Herren, 1. Stock' })
  await shop.ok('requestAssistance', { zoneId, message: 'Gibt es das Hemd in L?' })
  await leaveBaskets(shop)
  await leaveOrders(shop)
  await shop.buy([{ productId: shop.products[0].productId, quantity: 1 }])
  await shop.ok('registerOperator', { storeId, name: 'Frau Petersen', pin: '471108' })
  await shop.ok('closeStoreDay', { storeId })
  await leaveRecalls(shop)
  const { devices } = await shop.ok('fetchDevices', { storeId })
  await insertTestUser(shop, tenant.split('.')[0] ?? '')
  await database.write(async (db) => {
    const kinds = ['gate_alarm', 'outcome_unknown', 'refund_failed', 'door_forced']
    for (const [n, kind] of kinds.entries())
      await db
        .insertInto('protection_exception')
        .values({
          exception_id: `exc_${n}`,
          tenant,
          store_id: storeId,
          kind,
          subject: `${n}`,
          detail: '',
          raised_ms: nowMs - (n + 1) * 600_000,
          times: 1,
          ...(kind === 'gate_alarm' && { event_id: 'evt_alarm', last_ms: nowMs - 600_000 }),
        })
        .execute()
    await db
      .insertInto('protection_event')
      .values({
        event_id: 'evt_alarm',
        tenant,
        store_id: storeId,
        type: 'protection.exception.raised',
        occurred_ms: nowMs - 600_000,
        processed_ms: nowMs - 600_000,
        position: 0,
        body: JSON.stringify({
          type: 'protection.exception.raised',
          eventId: 'evt_alarm',
          occurredAt: new Date(nowMs - 600_000).toISOString(),
          storeId,
          reason: 'gate_alarm',
          epc: 'E28011700000020000000001',
        }),
      })
      .execute()
    const agent = (
      name: string,
      seenMs: number,
      changed: { online?: number; fork_ms?: number; revoked_ms?: number },
    ) => ({
      agent_id: `agt_${name.replaceAll(' ', '')}`,
      tenant,
      store_id: storeId,
      name,
      x: name,
      ledger_id: name,
      generation: 1,
      last_seq: 0,
      head_hash: '',
      deny_seq: 0,
      item_seq: 0,
      enrolled_ms: nowMs,
      last_seen_ms: nowMs - seenMs,
      ...changed,
    })
    await db
      .insertInto('agent')
      .values(agent('Kassen Erdgeschoss', 5_000, { online: 1 }))
      .execute()
    await db
      .insertInto('agent')
      .values(agent('Ausgang Nord', 3_600_000, { online: 0 }))
      .execute()
    await db
      .insertInto('agent')
      .values(agent('Kabinen', 60_000, { fork_ms: nowMs }))
      .execute()
    await db
      .insertInto('agent')
      .values(agent('Alte Kasse', 86_400_000, { revoked_ms: nowMs }))
      .execute()
    for (const [i, { deviceId }] of devices.entries())
      await db
        .updateTable('device')
        .set({ agent_id: i === 0 ? 'agt_AusgangNord' : 'agt_KassenErdgeschoss', gate_id: 'Tor 1', last_seen_ms: nowMs })
        .where('device_id', '=', deviceId)
        .execute()
    const since = new Date(nowMs - 480_000).toISOString()
    const states = [
      { state: 'ready', detail: 'Modbus relay' },
      { state: 'absent', detail: '192.168.40.21:5020: connection refused' },
      { state: 'degraded', detail: 'antenna 2 is not connected' },
    ]
    const reported = states.flatMap((each, i) => {
      const device = devices[i + 1]
      return device ? [{ deviceId: device.deviceId, since, ...each }] : []
    })
    await db
      .updateTable('agent')
      .set(stateColumns({ observedAt: since, devices: reported, devicesAt: since }))
      .where('agent_id', '=', 'agt_KassenErdgeschoss')
      .execute()
  })
  return { accountId: tenant.split('.')[0] ?? '' }
}

/** Two baskets that await approval: of an age check and of a spot check. */
async function leaveBaskets(shop: Shop): Promise<void> {
  const { storeId, products } = shop
  const { database } = shop.cloud.db
  for (const reason of ['age', 'spot_check'] as const) {
    const { sessionId } = await shop.ok('checkIn', { storeId, userId: `shopper-${reason}` })
    const items = products.slice(0, 2).map(({ productId }) => ({ productId, quantity: 1 }))
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items })
    const awaiting = { approval: 'awaiting', approval_reason: reason, status: 'CREATED', payment_by_ms: null } as const
    await database.write((db) =>
      db.updateTable('purchase').set(awaiting).where('purchase_id', '=', transactionId).execute(),
    )
  }
}

/** An order in each column of the board, and counted stock. */
async function leaveOrders({ ok, storeId, products }: Shop): Promise<void> {
  const moves = ['confirmed', 'preparing', 'ready']
  for (const [n, { productId }] of products.slice(0, 4).entries()) {
    const items = [{ productId, quantity: n + 1 }]
    const { orderId } = await ok('submitClickCollectOrder', { storeId, userId: `shopper-${n}`, items })
    for (const status of moves.slice(0, n)) await ok('updateClickCollectStatus', { orderId, status })
    await ok('setStock', { storeId, productId, quantity: 10 * n + 12 })
  }
}

/** The user of the test's session, for the page of the profile. */
export async function insertTestUser(shop: Shop, accountId: string): Promise<void> {
  await shop.cloud.db.database.write((db) =>
    db
      .insertInto('console_user')
      .values({
        user_id: 'usr_1',
        account_id: accountId,
        email: 'petra@shop.example',
        name: 'Petra Lindner',
        role: 'owner',
        sandbox_only: 0,
        mode: 'live',
        invited_by: 'test',
        created_ms: 0,
        accepted_ms: 0,
        totp_step: 0,
        recovery_codes: '[]',
      })
      .execute(),
  )
}

/** Who looks at the console of a test, at which store, in which language. */
export interface Looks {
  role?: UserRole
  lang?: string
  storeId?: string
  mode?: Mode
}

/** A browser at the console of a shop: opens pages, and sends forms as browsers do. `role`: default of its user. */
export function browserOf(shop: () => Shop, app: () => Hono, role: UserRole) {
  let keys = 0
  const rest = (looks: Looks) => ({ role, lang: 'en', storeId: shop().storeId, mode: 'test', ...looks })
  return {
    async get(path: string, looks: Looks = {}): Promise<string> {
      const at = rest(looks)
      const cookie = `untag_console=${at.mode}/${at.storeId}`
      const headers = { [ROLE_HEADER]: at.role, cookie, 'accept-language': at.lang }
      return (await app().request(path, { headers })).text()
    },
    /** Sends a form: as multipart if it has a file. */
    async post(path: string, action: string, fields: Record<string, string | File>, looks: Looks = {}) {
      const at = rest(looks)
      const frame = { _csrf: CSRF, _action: action, _mode: at.mode, _store: at.storeId, _key: `key_${++keys}` }
      const hasFile = Object.values(fields).some((value) => value instanceof File)
      const form = hasFile ? new FormData() : new URLSearchParams()
      const all = { ...frame, _form: action, ...fields }
      for (const [name, value] of Object.entries(all)) form.set(name, value as string)
      const { body, headers } = form instanceof FormData ? await asBrowsers(form) : { body: form, headers: {} }
      const response = await app().request(path, {
        method: 'POST',
        body,
        headers: { ...headers, [ROLE_HEADER]: at.role, 'accept-language': at.lang },
      })
      const { status, headers: answered } = response
      return { status, location: answered.get('location'), text: await response.text(), headers: answered }
    },
  }
}

/** Browsers send the empty name of a file that was not chosen; Node.js leaves it out. */
async function asBrowsers(form: FormData) {
  const { body, headers } = await formBody(form)
  const text = Buffer.from(body).toString('latin1')
  const named = text.replace(/(name="(?:file|snapshot)")\r\nContent-Type/, '$1; filename=""\r\nContent-Type')
  return { body: Buffer.from(named, 'latin1'), headers }
}
