import { afterAll, beforeAll, expect, it } from 'vitest'
import { PLATFORM_ROLE } from '../../../../cloud/platform/foundation/caller.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'

const ADDRESS = { street: 'Kai 1', city: 'Hamburg', zip: '20457', country: 'DE' }

onEveryDatabase('accounts of the cloud', (kind) => {
  let cloud: TestCloud
  let admin: string
  let person: string
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    admin = await cloud.key('admin', 'live', { account: 'Betreiber' })
    person = await cloud.user(PLATFORM_ROLE)
  })
  afterAll(() => cloud.stop())

  /** A live store of the account, approved with this package. */
  const approved = async (account: string, wanted: string): Promise<string> => {
    const key = await cloud.key('secret', 'live', { account, package: 'DISCOVER' })
    const store = { companyName: `${account} GmbH`, tradingName: account, address: ADDRESS }
    const { registrationId } = await cloud.ok(key, 'submitStoreRegistration', store)
    return (await cloud.ok(admin, 'approveStoreRegistration', { registrationId, package: wanted })).storeId
  }
  const named = async (search: string): Promise<Json> =>
    (await cloud.ok(admin, 'fetchAccounts', { search })).accounts[0]

  it('are listed with sizes and last activity, found by name and package, in pages', async () => {
    for (const name of ['Lindwerk', 'lindenhof 100%', 'Hafenkante']) await approved(name, 'GROW')
    const key = await cloud.key('secret', 'live', { account: 'Lindwerk' })
    const { storeId } = (await cloud.ok(key, 'fetchStores')).stores[0]
    await cloud.ok(key, 'registerDevice', { storeId, deviceType: 'pos_deactivator' })
    await cloud.user('manager', { account: 'Lindwerk' })
    expect(await named('lindwerk')).toMatchObject({
      name: 'Lindwerk',
      package: 'GROW',
      stores: 1,
      devices: 1,
      agents: 0,
      users: 1,
      lastActiveAt: expect.any(String),
    })
    const names = async (request: Json) =>
      (await cloud.ok(admin, 'fetchAccounts', request)).accounts.map(({ name }: Json) => name)
    expect(await names({ search: 'LIND' })).toEqual(['Lindwerk', 'lindenhof 100%'])
    expect(await names({ search: '%' })).toEqual(['lindenhof 100%'])
    expect(await names({ search: '_' })).toEqual([])
    expect(await names({ search: (await named('Hafenkante')).accountId })).toEqual(['Hafenkante'])
    expect(await names({ package: 'prime' })).toEqual([])
    const all: string[] = await names({})
    expect(all).not.toContain('untag platform')
    const paged: string[] = []
    for (let cursor: string | undefined; ;) {
      const answer = await cloud.ok(person, 'fetchAccounts', { limit: 1, ...(cursor && { cursor }) })
      paged.push(...answer.accounts.map(({ name }: Json) => name))
      cursor = answer.nextCursor
      if (cursor === undefined) break
    }
    expect(paged).toEqual(all)
  })

  it('answer with the stores of both modes and the use of limits, but not about the platform itself', async () => {
    const { accountId } = await named('Lindwerk')
    const account = await cloud.ok(person, 'fetchAccount', { accountId })
    expect(account.limits).toMatchObject({
      liveStores: { used: 1, limit: 10_000 },
      testStores: { used: 2 },
      users: { used: 1, limit: 1_000 },
      liveKeys: { used: 2 },
      pendingRegistrations: { used: 0 },
    })
    const { stores } = await cloud.ok(person, 'fetchAccountStores', { accountId })
    expect(stores.map(({ mode, devices }: Json) => [mode, devices > 0])).toContainEqual(['live', true])
    expect(stores.map(({ mode }: Json) => mode).toSorted()).toEqual(['live', 'test', 'test'])
    const first = await cloud.ok(person, 'fetchAccountStores', { accountId, limit: 2 })
    const rest = await cloud.ok(person, 'fetchAccountStores', { accountId, limit: 2, cursor: first.nextCursor })
    expect([...first.stores, ...rest.stores]).toEqual(stores)
    for (const name of ['fetchAccount', 'fetchAccountStores'])
      expect(await cloud.call(admin, name, { accountId: 'platform' })).toMatchObject({ status: 404 })
  })

  it('show before a change of the package exactly what it changes', async () => {
    const grow = await approved('Marktplatz', 'GROW')
    await approved('Marktplatz', 'GO')
    const test = (
      await cloud.ok(admin, 'fetchAccountStores', { accountId: (await named('Marktplatz')).accountId })
    ).stores.find(({ mode }: Json) => mode === 'test').storeId
    for (const [storeId, wanted] of [
      [grow, 'PRIME'],
      [grow, 'ASSIST'],
      [grow, 'GROW'],
      [test, 'DISCOVER'],
      [test, 'PRIME'],
    ]) {
      const said = await cloud.ok(person, 'simulateStorePackage', { storeId, package: wanted })
      expect(said.package.after).toBe(wanted)
      const store = await cloud.ok(person, 'setStorePackage', {
        storeId,
        package: wanted,
        expectedPackage: said.package.before,
      })
      const now = await cloud.ok(person, 'simulateStorePackage', { storeId })
      expect([
        wanted,
        now.package.before,
        now.hasScanAndGo.before,
        now.hasOffers.before,
        now.accountPackage.before,
      ]).toEqual([wanted, wanted, said.hasScanAndGo.after, said.hasOffers.after, said.accountPackage.after])
      expect(store).toMatchObject({ package: wanted, hasScanAndGo: said.hasScanAndGo.after })
      expect((await named('Marktplatz')).package).toBe(said.accountPackage.after)
    }
    const lower = await cloud.ok(admin, 'simulateStorePackage', { storeId: grow, package: 'go' })
    expect(lower).toMatchObject({
      mode: 'live',
      tradingName: 'Marktplatz',
      hasScanAndGo: { before: true, after: false },
      accountPackage: { before: 'GROW', after: 'GO' },
      stopsAgents: true,
    })
  })

  it('tell the second of two editors that the package changed meanwhile', async () => {
    const storeId = await approved('Zwei Leute', 'GO')
    const request = { storeId, package: 'GROW', expectedPackage: 'GO' }
    await cloud.ok(person, 'setStorePackage', request)
    const late = await cloud.call(admin, 'setStorePackage', { ...request, package: 'PRIME' })
    expect(late).toMatchObject({ status: 409, body: { reason: 'package_changed' } })
    expect((await named('Zwei Leute')).package).toBe('GROW')
  })
})
