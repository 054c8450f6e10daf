import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Tenant } from '../../cloud/platform/foundation/caller.ts'
import type { Database, Db } from '../../cloud/platform/persistence/database.ts'
import { startSession } from '../../cloud/platform/users/sessions.ts'
import { stateColumns } from '../../cloud/protection/agent-identity/agent-queries.ts'
import { benchAccount, openBenchCloud } from './bench-cloud.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result, type Sizes, type Target } from './figure.ts'
import { cpuTime, takeTurns } from './measure.ts'
import { fillSales } from './retail/fill-sales.ts'

/** Maximum ratio of a page's cost in a large account to its cost in an empty one. */
const LIMIT = 3
/** Maximum size of a first visit, bytes: the page with its styles, programs and pictures, not compressed. */
const FIRST_VISIT = 200_000

const SIZES = {
  full: { stores: 1_000, agents: 5_000, purchases: 1_000_000, alarms: 100_000, calls: 5, rounds: 11, warmUps: 2 },
  quick: { stores: 300, agents: 1_500, purchases: 20_000, alarms: 10_000, calls: 3, rounds: 5, warmUps: 1 },
  smoke: { stores: 3, agents: 5, purchases: 20, alarms: 10, calls: 1, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Alarms that nobody has looked at. */
const OPEN_ALARMS = 50
const AT_ONCE = 500
const HOUR_MS = 3_600_000

const OF_ALL_STORES = [
  '',
  '/alarms',
  '/exceptions',
  '/health',
  '/agents',
  '/purchases',
  '/audit',
  '/users',
  '/alarm-figures',
]
const OF_A_STORE = [
  '',
  '/alarms',
  '/exceptions',
  '/agents',
  '/purchases',
  '/products',
  '/offers',
  '/closings',
  '/stock',
]

/** Measures whether pages of the console are slower in an account of many stores, and how large a first visit is. */
export const consolePages: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { calls, rounds, warmUps, ...size } = SIZES[mode]
  const clouds = [await openFilled(join(folder, 'empty'), undefined, note)]
  try {
    clouds.push(await openFilled(join(folder, 'filled'), size, note))
    const targets: Target[] = []
    const rows: Result['rows'][number][] = []
    for (const [scope, paths] of [
      ['all stores', OF_ALL_STORES],
      ['one store', OF_A_STORE],
    ] as const) {
      for (const path of paths) {
        const nameOf = (account: string) => `/console${path} of ${scope}, ${account} account`
        const contenders = clouds.map((cloud) => ({
          name: nameOf(cloud.account),
          slice: () =>
            cpuTime(calls, async () => {
              for (let i = 0; i < calls; i++) await cloud.read(path, scope === 'all stores' ? 'all' : cloud.storeId)
            }),
        }))
        const samples = await takeTurns(contenders, rounds, random, warmUps)
        rows.push(...rowsOf(samples, nameOf('empty')))
        targets.push(costsAtMost(samples, nameOf('large'), nameOf('empty'), LIMIT))
      }
    }
    const bytes = await firstVisit(clouds[1] ?? clouds[0])
    targets.push({
      text: `a first visit of Today has at most ${FIRST_VISIT / 1_000} kB, not compressed`,
      measured: bytes,
      limit: FIRST_VISIT,
      met: bytes <= FIRST_VISIT,
    })
    const count = (n: number) => n.toLocaleString('en')
    return {
      title: `Pages of the console: an empty account, and one with ${count(size.stores)} stores, ${count(size.agents)} agents, ${count(size.purchases)} purchases and ${count(size.alarms)} alarms (SQLite)`,
      counts: 'CPU time of the process, all threads, per page without a socket',
      rows,
      targets,
      notes: [],
    }
  } finally {
    for (const cloud of clouds) await cloud.stop()
  }
}

interface Filled {
  account: 'empty' | 'large'
  storeId: string
  /** Reads a page below /console of a store, or of `all`. */
  read(path: string, store: string): Promise<string>
  /** Reads a file that a page names. */
  fetch(path: string): Promise<ArrayBuffer>
  stop(): Promise<void>
}

async function openFilled(
  data: string,
  size: { stores: number; agents: number; purchases: number; alarms: number } | undefined,
  note: (text: string) => void,
): Promise<Filled> {
  const { running, platform } = await openBenchCloud(data)
  const { tenant } = await benchAccount(running.database, platform)
  const { storeId } = await fillSales(running.database, tenant, size?.purchases ?? 0, platform, (done) =>
    note(`${done.toLocaleString('en')} purchases are in`),
  )
  if (size) await fillStores(running.database, tenant, storeId, size, platform)
  const cookie = `untag_session=${await signIn(running.database, tenant, platform)}`
  const fetch = async (path: string) => {
    const response = await running.cloud.app.request(`http://localhost${path}`, { headers: { cookie } })
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}`)
    return response
  }
  return {
    account: size ? 'large' : 'empty',
    storeId,
    read: async (path, store) => (await fetch(`/console${path}?store=${store}`)).text(),
    fetch: async (path) => (await fetch(path)).arrayBuffer(),
    async stop() {
      await running.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** Signs an owner in. Returns the token of the session. */
function signIn(database: Database, tenant: Tenant, platform: Platform): Promise<string> {
  return database.write(async (db) => {
    const user = await db
      .insertInto('console_user')
      .values({
        user_id: newId('usr', platform),
        account_id: tenant.split('.')[0] ?? '',
        email: 'owner@bench.example',
        name: 'Petra Lindner',
        role: 'owner',
        sandbox_only: 0,
        mode: 'test',
        invited_by: 'bench',
        created_ms: 0,
        accepted_ms: 0,
        totp_step: 0,
        recovery_codes: '[]',
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    const session = { state: 'active', hasSecondFactor: true, mode: 'test', userAgent: 'bench' } as const
    return (await startSession(db, user, session, platform)).sessionToken
  })
}

/**
 * Inserts stores like the sandbox's, with their agents, and alarms of the first store and of the others in turns. All
 * but the newest alarms are disposed of. Every hundredth agent is offline.
 */
async function fillStores(
  database: Database,
  tenant: Tenant,
  firstId: string,
  { stores, agents, alarms }: { stores: number; agents: number; alarms: number },
  platform: Platform,
): Promise<void> {
  const nowMs = platform.clock.wall()
  const first = await database.reads
    .selectFrom('store')
    .selectAll()
    .where('store_id', '=', firstId)
    .executeTakeFirstOrThrow()
  const ids = [firstId, ...Array.from({ length: stores - 1 }, () => newId('st', platform))]
  const idOf = (n: number) => ids[n % ids.length] ?? firstId
  await insertAll(
    database,
    stores - 1,
    (n) => ({ ...first, store_id: ids[n + 1] ?? '', trading_name: `Filiale ${n + 2}` }),
    (db, rows) => db.insertInto('store').values(rows).execute(),
  )
  const state = stateColumns({
    observedAt: new Date(nowMs).toISOString(),
    devices: [],
    devicesAt: new Date(nowMs).toISOString(),
  })
  await insertAll(
    database,
    agents,
    (n) => ({
      agent_id: newId('agt', platform),
      tenant,
      store_id: idOf(n),
      name: `Kasse ${n}`,
      x: `${n}`,
      ledger_id: `${n}`,
      generation: 1,
      last_seq: 0,
      head_hash: '',
      deny_seq: 0,
      item_seq: 0,
      enrolled_ms: nowMs,
      last_seen_ms: n % 100 === 0 ? nowMs - HOUR_MS : nowMs,
      online: n % 100 === 0 ? 0 : 1,
      ...state,
    }),
    (db, rows) => db.insertInto('agent').values(rows).execute(),
  )
  const alarmOf = (n: number) => ({
    n,
    eventId: `evt_bench_${n}`,
    storeId: idOf(n),
    atMs: nowMs - (alarms - n) * 60_000,
    isOpen: n >= alarms - OPEN_ALARMS,
  })
  await insertAll(database, alarms, alarmOf, async (db, rows) => {
    await db
      .insertInto('protection_event')
      .values(
        rows.map(({ eventId, storeId, atMs, n }) => ({
          event_id: eventId,
          tenant,
          store_id: storeId,
          type: 'protection.exception.raised',
          occurred_ms: atMs,
          processed_ms: atMs,
          position: n,
          body: JSON.stringify({
            type: 'protection.exception.raised',
            eventId,
            occurredAt: new Date(atMs).toISOString(),
            storeId,
            reason: 'gate_alarm',
            epc: `E2801170${String(n).padStart(16, '0')}`,
          }),
        })),
      )
      .execute()
    await db
      .insertInto('protection_exception')
      .values(
        rows.map(({ eventId, storeId, atMs, isOpen }) => ({
          exception_id: newId('exc', platform),
          tenant,
          store_id: storeId,
          kind: 'gate_alarm',
          subject: eventId,
          event_id: eventId,
          detail: '',
          raised_ms: atMs,
          last_ms: atMs,
          ...(!isOpen && { acknowledged_ms: atMs + 60_000, acknowledged_by: 'bench' }),
        })),
      )
      .execute()
    const disposed = rows.filter(({ isOpen }) => !isOpen)
    if (disposed.length > 0)
      await db
        .insertInto('alarm_disposition')
        .values(
          disposed.map(({ eventId, storeId, atMs }) => ({
            event_id: eventId,
            tenant,
            store_id: storeId,
            disposition: 'false_alarm',
            operator_id: 'bench',
            disposed_ms: atMs + 60_000,
          })),
        )
        .execute()
  })
}

async function insertAll<T>(
  database: Database,
  count: number,
  rowOf: (n: number) => T,
  insert: (db: Db, rows: T[]) => Promise<unknown>,
): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) {
    const rows = Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, i) => rowOf(done + i))
    await database.write(async (db) => void (await insert(db, rows)))
  }
}

/** Bytes of Today with all files that it names. */
async function firstVisit(cloud: Filled | undefined): Promise<number> {
  if (!cloud) return 0
  const page = await cloud.read('', 'all')
  const files = new Set(
    [...page.matchAll(/(?:src|href)="(\/(?:console\/)?assets\/[^"]+)"/g)].map(([, path]) => path ?? ''),
  )
  let bytes = Buffer.byteLength(page)
  for (const file of files) bytes += (await cloud.fetch(file)).byteLength
  return bytes
}
