import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Tenant, UserRole } from '../../../cloud/platform/foundation/caller.ts'
import { firstIdAt } from '../../../policy/ids.ts'
import { countStatements, statementsOf } from '../../support/count-statements.ts'
import { insertFleet } from '../../support/fleet.ts'
import { openShop, type Shop } from '../../support/shop.ts'

/** Operations staff of a chain find what does not work in all stores on one page, and why. */
describe('the page of the health', () => {
  let shop: Shop
  let gate: string
  const cookies = new Map<string, string>()

  beforeAll(async () => {
    shop = await openShop('sqlite')
    const { storeId, otherStoreId } = shop
    const nowMs = shop.cloud.platform.clock.wall()
    gate = (await shop.ok('registerDevice', { storeId: otherStoreId, deviceType: 'exit_gate', name: 'Ausgang Süd' }))
      .deviceId
    const { database } = shop.cloud.db
    await database.write((db) => db.updateTable('store').set({ document_version: 7, min_agent: '0.9.0' }).execute())
    const well = Array.from({ length: 498 }, (_, n) => ({
      agentId: firstIdAt('agt', 1_000 + n),
      storeId: n % 2 === 0 ? storeId : otherStoreId,
      release: '0.9.0',
    }))
    await database.write((db) =>
      insertFleet(db, nowMs, [
        ...well,
        { agentId: 'agt_A1', storeId: otherStoreId, name: 'Kasse 7', behind: 2, release: '0.8.3' },
        {
          agentId: 'agt_A2',
          storeId: otherStoreId,
          name: 'Ausgänge',
          release: '0.9.0',
          devices: [{ deviceId: gate, state: 'absent', detail: 'refused' }],
        },
      ]),
    )
    for (const role of ['owner', 'viewer'] as const) cookies.set(role, await shop.cloud.user(role))
    cookies.set('bound', await shop.cloud.user('manager', { storeIds: [storeId] }))
  })
  afterAll(() => shop?.stop())

  async function get(path: string, who: UserRole | 'bound' = 'owner', lang = 'en'): Promise<string> {
    const cookie = `__Host-untag_session=${cookies.get(who)}; __Host-untag_console=test/all`
    const [address, query = ''] = path.split('?')
    const url = `${address}?mode=test&store=all&${query}`
    return (await shop.cloud.get(url, { cookie, 'accept-language': lang })).text
  }
  /** Link, label, number and note of each count. */
  const figures = (text: string) =>
    [
      ...text.matchAll(
        /<a class="figure [^"]*" href="([^"]+)"><span class="label">([^<]+)<\/span><span class="value">([^<]+)<\/span>(?:<span class="note">([^<]+))?/g,
      ),
    ].map(([, href, label, value, note]) => ({ href, label, value, note }))
  const rowsOf = (text: string) => [...text.matchAll(/<tr><th scope="row">[^]*?<\/tr>/g)].map(([row]) => row)

  it('finds the one agent of 500 that is behind, in which store it is, and why', async () => {
    const start = await get('/console/health')
    const behind = figures(start).find(({ label }) => label === 'Behind: old rules')
    expect(behind).toEqual({
      href: '/console/health?state=behind',
      label: 'Behind: old rules',
      value: '1',
      note: 'of 500 agents',
    })
    const rows = rowsOf(await get(behind?.href ?? ''))
    expect(rows).toHaveLength(1)
    expect(rows[0]).toContain('Kasse 7')
    expect(rows[0]).toContain(`/console/health?store=${shop.otherStoreId}`)
    expect(rows[0]).toContain('It uses version 5 of the rules, the store has 7.')
    expect(rows[0]).toContain('Its release 0.8.3 is too old for these rules, which need 0.9.0. Upgrade untag')
  })

  it('shows only what needs a person, the worst first, and the agents in order on request', async () => {
    const rows = rowsOf(await get('/console/health'))
    expect(rows).toHaveLength(2)
    expect(rows[0]).toContain('Kasse 7')
    expect(rows[1]).toContain('Ausgänge')
    expect(rows[1]).toMatch(
      new RegExp(`href="/console/agents/${gate}\\?store=${shop.otherStoreId}">Ausgang Süd</a>: No answer`),
    )
    expect(rows[1]).toContain('Check its power, its cable and its network.')
    const first = await get('/console/health?state=ok')
    expect(rowsOf(first)).toHaveLength(50)
    const next = /href="([^"]*agents=[^"]+)"/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? ''
    const second = rowsOf(await get(next))
    expect(second).toHaveLength(50)
    expect(second[0]).not.toBe(rowsOf(first)[0])
  })

  it('says the reason of an agent that refused the rules', async () => {
    const { database } = shop.cloud.db
    const store = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.otherStoreId)
      .executeTakeFirstOrThrow()
    await database.write((db) =>
      db.updateTable('store').set({ min_agent: null }).where('store_id', '=', shop.otherStoreId).execute(),
    )
    await database.write((db) =>
      db
        .insertInto('protection_exception')
        .values({
          exception_id: firstIdAt('exc', 1_000),
          tenant: store.tenant,
          store_id: shop.otherStoreId,
          kind: 'refused_document',
          subject: 'agt_A1/refused',
          detail: 'the policy has an unknown rule',
          raised_ms: shop.cloud.platform.clock.wall(),
          times: 1,
        })
        .execute(),
    )
    const [row] = rowsOf(await get('/console/health?state=behind', 'owner', 'de'))
    expect(row).toContain('Er hat die neuen Regeln abgelehnt. Zeigen Sie den Grund der Verwaltung.')
    expect(row).toContain('the policy has an unknown rule')
  })

  it('lists exceptions of all stores, the most urgent first, and those of one kind', async () => {
    const { storeId, otherStoreId } = shop
    for (const [n, [store, reason]] of [
      [storeId, 'door_forced'],
      [otherStoreId, 'late_reads'],
      [storeId, 'device_tested'],
    ].entries())
      await shop.ok('reportProtectionEvents', {
        events: [
          {
            type: 'protection.exception.raised',
            eventId: `evt-${n}`,
            occurredAt: new Date().toISOString(),
            storeId: store,
            reason,
          },
        ],
      })
    const titles = (text: string) =>
      [...text.slice(text.indexOf('id="exceptions"')).matchAll(/<header><h2>([^<]+)/g)].map(([, title]) => title)
    expect(titles(await get('/console/health'))).toEqual([
      'A cabinet was opened without a release',
      'A gate reported tags too late',
      'An agent refused a document',
      'A person tested a device or a gate',
    ])
    const one = await get('/console/health?kind=late_reads')
    expect(titles(one)).toEqual(['A gate reported tags too late'])
    expect(rowsOf(one)).toEqual([])
    const open = figures(one).find(({ label }) => label === 'Open exceptions')
    expect(open).toMatchObject({ value: '4', href: '/console/health#exceptions' })
  })

  it('shows a user only the stores that the user may see', async () => {
    const text = await get('/console/health', 'bound')
    expect(figures(text).find(({ label }) => label === 'Behind: old rules')?.value).toBe('0')
    expect(figures(text).find(({ label }) => label === 'In order')).toMatchObject({
      value: '249',
      note: 'of 249 agents',
    })
    const exceptions = text.slice(text.indexOf('id="exceptions"'))
    expect(exceptions).not.toContain('A gate reported tags too late')
    expect(exceptions).toContain('A cabinet was opened without a release')
  })

  it('shows a viewer what is wrong, without a button', async () => {
    const text = await get('/console/health', 'viewer')
    expect(text).toContain('Kasse 7')
    expect(text).not.toContain('name="_action"')
  })

  it('reads once for all viewers after a change, and again after the next one', async () => {
    const { changes } = shop.cloud.cloud.services
    const { tenant } = await shop.cloud.db.database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    const listener = { tenant: tenant as Tenant, topics: new Set(['protection']), storeIds: null }
    const end = changes.subscribe(listener, () => undefined)
    // However slow the machine is, no second passes while the viewers read.
    const { clock } = shop.cloud.platform
    const elapsed = vi.spyOn(clock, 'elapsed').mockReturnValue(clock.elapsed())
    const others = await Promise.all([1, 2, 3].map(() => shop.cloud.user('owner')))
    const cookiesOf = (session: string) => `__Host-untag_session=${session}; __Host-untag_console=test/all`
    const refresh = async (session: string) => {
      const live = { 'hx-request': 'true', 'hx-trigger': 'health', 'hx-target': 'health', 'accept-language': 'en' }
      const url = '/console/health?mode=test&store=all'
      return (await shop.cloud.get(url, { ...live, cookie: cookiesOf(session) })).text
    }
    const all = [cookies.get('owner') ?? '', ...others]
    const reads = (statements: readonly string[]) =>
      statements.filter((sql) => /protection_exception|fork_ms|"listed"/.test(sql)).length
    const one = reads(await statementsOf(() => refresh(all[0] ?? '')))
    expect(one).toBeGreaterThan(3)

    const acknowledge = async (kind: string) => {
      const { exceptions } = await shop.ok('fetchExceptions', { kind, state: 'open' })
      await shop.ok('acknowledgeException', { exceptionId: exceptions[0].exceptionId })
    }
    for (const kind of ['door_forced', 'late_reads']) {
      await acknowledge(kind)
      const texts: string[] = []
      const statements = await statementsOf(async () => {
        for (const session of all) texts.push(await refresh(session))
      })
      expect(reads(statements)).toBe(one)
      const shown = texts.map((text) => figures(text).find(({ label }) => label === 'Open exceptions')?.value)
      expect(new Set(shown)).toEqual(new Set([kind === 'door_forced' ? '3' : '2']))
    }
    // A second later the answer is read again, in case a message was lost.
    elapsed.mockReturnValue(clock.elapsed() + 1_000)
    expect(reads(await statementsOf(() => refresh(all[0] ?? '')))).toBe(one)
    // Other rights, another answer.
    const bound = await refresh(cookies.get('bound') ?? '')
    expect(figures(bound).find(({ label }) => label === 'In order')?.note).toBe('of 249 agents')
    // A whole page is never shared: a person sees the own change.
    expect(reads(await statementsOf(() => get('/console/health')))).toBe(one)
    elapsed.mockRestore()
    end?.()
  })

  it('runs as many queries for 500 agents as for 5,000 in a hundred stores', async () => {
    const read = () => countStatements(() => get('/console/health'))
    await read()
    const before = await read()
    const { database } = shop.cloud.db
    const own = await database.reads
      .selectFrom('store')
      .selectAll()
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    const stores = Array.from({ length: 100 }, (_, n) => ({ ...own, store_id: `st_more${n}` }))
    await database.write(async (db) => {
      for (const store of stores) await db.insertInto('store').values(store).execute()
      const agents = Array.from({ length: 4_500 }, (_, n) => ({
        agentId: `agt_C${n}`,
        storeId: `st_more${n % 100}`,
        silentMs: n % 3 === 0 ? 100_000 : 0,
      }))
      await insertFleet(db, shop.cloud.platform.clock.wall(), agents)
    })
    const rows = rowsOf(await get('/console/health'))
    expect(rows).toHaveLength(50)
    // One more condition has agents now.
    expect(await read()).toBeLessThanOrEqual(before + 3)
  })
})
