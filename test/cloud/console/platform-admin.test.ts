import { TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PLATFORM_ACCOUNT, PLATFORM_ROLE, ROLES } from '../../../cloud/platform/foundation/caller.ts'
import { ensurePlatformAccount } from '../../../cloud/platform/accounts/platform-account.ts'
import { invite } from '../../../cloud/platform/users/invitations.ts'
import { deleteUser } from '../../../cloud/platform/users/user-queries.ts'
import { endSessionsOf } from '../../../cloud/platform/users/sessions.ts'
import { pages } from '../../../cloud/console/pages/registry.ts'
import { startTestCloud, type TestCloud } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'

const PASSWORD = 'vier Wörter, die niemand rät'
const VISITOR = null
const PLATFORM_PAGES = pages.filter(({ roles }) => roles.length === 1 && roles[0] === PLATFORM_ROLE)

onEveryDatabase('a person who runs the cloud', (kind) => {
  let cloud: TestCloud
  let adminKey: string
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    adminKey = await cloud.key('admin', 'live', { account: 'Betreiber' })
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  const cookieOfToken = (token: string) => `__Host-untag_session=${token}`
  const cookieOf = (answer: Response) => (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  const open = async (path: string, cookie: string) => {
    const answer = await cloud.cloud.app.request(`https://shop.example${path}`, {
      headers: { cookie, 'accept-language': 'en' },
    })
    return { status: answer.status, location: answer.headers.get('location'), text: await answer.text() }
  }
  const send = async (path: string, fields: Record<string, string>, cookie = '') =>
    cloud.cloud.app.request(`https://shop.example${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', host: 'shop.example', cookie },
      body: new URLSearchParams(fields).toString(),
    })
  const field = (text: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''
  let sent = 0
  /** Sends a form of a page, with the secret of the session. `from`: the page that has the form. */
  const act = async (path: string, action: string, fields: Record<string, string>, cookie: string, from = path) => {
    const { text } = await open(from, cookie)
    const frame = { _csrf: field(text, '_csrf'), _key: `key-${++sent}`, _action: action, _form: action }
    return send(path, { ...frame, _mode: 'live', _store: 'all', ...fields }, cookie)
  }
  /** Invites a person as the command line does. Returns the path of the link. */
  const invited = (email: string) =>
    cloud.db.database.write(async (db) => {
      await ensurePlatformAccount(db, cloud.platform.clock.wall())
      const rights = { role: PLATFORM_ROLE, storeIds: null, sandboxOnly: false, mayReplace: true } as const
      const about = { accountId: PLATFORM_ACCOUNT, email, name: '', invitedBy: 'command line', ...rights }
      return `/console/invitations/${(await invite(db, about, cloud.platform)).token}`
    })
  const registered = async (name: string) => {
    const answer = await cloud.call(VISITOR, 'submitStoreRegistrationRequest', { companyName: name })
    return answer.body.registrationId as string
  }

  it('sets up a second factor before any other page opens, and starts at the registrations', async () => {
    const link = await invited('maria@platform.example')
    const cookie = cookieOf(await send(link, { name: 'Maria Jansen', password: PASSWORD }))
    for (const path of [
      '/console',
      '/console/audit',
      '/console/users',
      '/console/nothing',
      ...PLATFORM_PAGES.map((page) => page.path),
    ]) {
      const { status, location, text } = await open(path, cookie)
      expect([path, status, location, text]).toEqual([path, 303, '/console/profile', ''])
    }
    const profile = await open('/console/profile', cookie)
    expect(profile.text).toContain('A second factor is needed')
    expect(profile.text).not.toContain('href="/console/registrations"')

    const registrationId = await registered('Zu früh GmbH')
    for (const { path, actions = {} } of PLATFORM_PAGES)
      for (const action of Object.keys(actions)) {
        const fields = { registrationId, reason: 'x', package: 'PRIME' }
        const { status } = await act(path.replaceAll(/:\w+/g, 'x'), action, fields, cookie, '/console/profile')
        expect([path, action, status]).toEqual([path, action, 403])
      }
    expect((await cloud.ok(adminKey, 'fetchRegistrations', { status: 'pending' })).registrations).toMatchObject([
      { registrationId },
    ])

    const begun = await (await act('/console/profile', 'begin', {}, cookie)).text()
    const totp = new TOTP({ secret: /<code>([A-Z2-7]{32})<\/code>/.exec(begun)?.[1] ?? '' })
    const code = totp.generate({ timestamp: cloud.platform.clock.wall() })
    const confirmed = await (await act('/console/profile', 'confirm', { code }, cookie)).text()
    expect(confirmed).toMatch(/(?:<li><code>[A-Z0-9]{12}<\/code><\/li>){10}/)
    expect(await open('/console', cookie)).toMatchObject({ status: 303, location: '/console/registrations' })
    const { text } = await open('/console/registrations', cookie)
    expect(text).toContain('Zu früh GmbH')
    for (const part of ['aria-label="Change store', 'class="mode"', 'Test mode']) expect(text).not.toContain(part)
    expect((await open('/console/profile', cookie)).text).not.toContain('A second factor is needed')
  })

  it('approves and rejects registrations, and the log of both accounts names the person', async () => {
    const token = await cloud.user(PLATFORM_ROLE)
    const cookie = cookieOfToken(token)
    const merchant = await cloud.user('owner', { account: 'Hafenkante' })
    const address = { street: 'Kai 1', city: 'Hamburg', zip: '20457', country: 'DE' }
    const store = { companyName: 'Hafenkante GmbH', tradingName: 'Hafenkante', address }
    const { registrationId } = await cloud.ok(merchant, 'submitStoreRegistration', store)
    const path = '/console/registrations'
    const approved = await act(path, 'approve', { registrationId, package: 'GROW' }, cookie)
    expect([approved.status, approved.headers.get('location')]).toEqual([303, path])
    expect((await act(path, 'approve', { registrationId, package: 'GROW' }, cookie)).status).toBe(409)
    const other = await cloud.ok(merchant, 'submitStoreRegistration', { ...store, tradingName: 'Zweite' })
    const reject = { registrationId: other.registrationId, reason: '' }
    expect((await act(path, 'reject', reject, cookie)).status).toBe(400)
    expect((await act(path, 'reject', { ...reject, reason: 'Die Anschrift fehlt.' }, cookie)).status).toBe(303)
    const { text } = await open(`${path}?status=rejected`, cookie)
    expect(text).toMatch(/Zweite[^]*The merchant reads: <q>Die Anschrift fehlt\.<\/q>/)
    expect((await open('/console/stores', cookieOfToken(merchant))).text).toContain('Die Anschrift fehlt.')

    const { userId } = await cloud.ok(token, 'fetchProfile')
    const entry = { actor: userId, operation: 'approveStoreRegistration', entityId: registrationId }
    for (const reader of [token, merchant]) {
      const { entries } = await cloud.ok(reader, 'fetchAuditLog', { entityId: registrationId })
      expect(entries.at(-1)).toMatchObject(entry)
    }
    const log = `/console/audit?entity=${registrationId}`
    expect((await open(log, cookie)).text).toMatch(
      /approveStoreRegistration<\/code>[^]*<td data-label="Who"[^>]*>platform</,
    )
    expect((await open(log, cookieOfToken(merchant))).text).toContain('Platform administrator')
  })

  it('finds an account, sees what another package changes, and changes it; a second editor sees the conflict', async () => {
    const token = await cloud.user(PLATFORM_ROLE)
    const cookie = cookieOfToken(token)
    const merchant = await cloud.user('owner', { account: 'Lindwerk' })
    const address = { street: 'Kai 1', city: 'Hamburg', zip: '20457', country: 'DE' }
    const store = { companyName: 'Lindwerk GmbH', tradingName: 'Lindwerk Kai', address }
    const { registrationId } = await cloud.ok(merchant, 'submitStoreRegistration', store)
    const { storeId } = await cloud.ok(token, 'approveStoreRegistration', { registrationId, package: 'GROW' })
    const list = await open('/console/accounts?q=lindw', cookie)
    const path = /href="(\/console\/accounts\/acc_\w+)">Lindwerk</.exec(list.text)?.[1] ?? ''
    expect(list.text).not.toContain('Hafenkante')
    expect((await open('/console/accounts?package=PRIME&q=lindw', cookie)).text).toContain('No account fits')

    const account = await open(path, cookie)
    for (const part of ['Lindwerk Kai', `${path}?store_id=${storeId}`, '1 of 10,000'])
      expect(account.text).toContain(part)
    const chosen = `${path}?store_id=${storeId}&package=GO`
    const { text } = await open(chosen, cookie)
    expect(text).toMatch(/What changes[^]*Package of the store[^]*GROW[^]*GO[^]*Scan and go[^]*On[^]*Off/)
    expect(text).toContain('Agents and devices of the store stop')
    expect((await open(`${path}?store_id=${storeId}&package=GROW`, cookie)).text).toContain('has this package already')
    const before = { storeId, package: 'GO', expectedPackage: 'GROW' }
    const changed = await act(chosen, 'change', before, cookie)
    expect([changed.status, changed.headers.get('location')]).toEqual([303, path])
    const late = await act(
      `${path}?store_id=${storeId}&package=PRIME`,
      'change',
      { ...before, package: 'PRIME' },
      cookie,
    )
    const conflict = await late.text()
    expect([late.status, conflict.includes('Someone else has changed the package')]).toEqual([409, true])
    expect(conflict).toContain('It has GO now.')
    expect(await cloud.ok(token, 'simulateStorePackage', { storeId })).toMatchObject({ package: { before: 'GO' } })

    for (const unknown of ['/console/accounts/acc_none', `/console/accounts/${PLATFORM_ACCOUNT}`])
      expect((await open(unknown, cookie)).text).toContain('There is no such account')
    // The store of another account is not changed on this page.
    const other = (await cloud.ok(token, 'fetchAccounts', { search: 'Hafenkante' })).accounts[0].accountId
    expect((await open(`/console/accounts/${other}?store_id=${storeId}`, cookie)).text).not.toContain('New package')
  })

  it('reaches nothing of a merchant, and no merchant’s user reaches the pages of the platform', async () => {
    const cookie = cookieOfToken(await cloud.user(PLATFORM_ROLE))
    for (const page of pages.filter(({ roles }) => !roles.includes(PLATFORM_ROLE) && roles.includes('owner'))) {
      const path = page.path.replaceAll(/:\w+/g, 'x')
      if (path === '/console') continue
      expect([path, (await open(path, cookie)).status]).toEqual([path, 403])
    }
    const registrationId = await registered('Fremd GmbH')
    for (const role of ROLES) {
      const own = cookieOfToken(await cloud.user(role))
      for (const page of PLATFORM_PAGES) {
        const path = page.path.replaceAll(/:\w+/g, 'x')
        expect([role, path, (await open(path, own)).status]).toEqual([role, path, 403])
        for (const action of Object.keys(page.actions ?? {})) {
          const fields = { registrationId, package: 'PRIME', reason: 'x' }
          const { status } = await act(path, action, fields, own, '/console/profile')
          expect([role, path, action, status]).toEqual([role, path, action, 403])
        }
      }
    }
    const { registrations } = await cloud.ok(adminKey, 'fetchRegistrations', { status: 'pending' })
    expect(registrations).toContainEqual(expect.objectContaining({ registrationId }))
  })

  it('cannot be made by a merchant, and has no sandbox', async () => {
    const owner = await cloud.user('owner')
    const email = 'boss@shop.example'
    expect(await cloud.call(owner, 'inviteUser', { email, role: PLATFORM_ROLE })).toMatchObject({ status: 400 })
    const { userId } = await cloud.ok(owner, 'inviteUser', { email, role: 'viewer' })
    expect(await cloud.call(owner, 'updateUser', { userId, role: PLATFORM_ROLE })).toMatchObject({ status: 400 })
    const token = await cloud.user(PLATFORM_ROLE)
    expect(await cloud.call(token, 'switchMode', { mode: 'test' })).toMatchObject({ status: 403 })
    expect((await open('/console/registrations?mode=test', cookieOfToken(token))).text).not.toContain('is-test')
    const sandbox = await act('/console/registrations', 'approve', { _mode: 'test' }, cookieOfToken(token))
    expect(sandbox.status).toBe(403)
    const ofMerchant = await cloud.ok(owner, 'fetchUsers')
    expect(ofMerchant.users.map(({ role }: { role: string }) => role)).not.toContain(PLATFORM_ROLE)
    const { users } = await cloud.ok(token, 'fetchUsers')
    expect(new Set(users.map(({ role }: { role: string }) => role))).toEqual(new Set([PLATFORM_ROLE]))
  })

  it('is refused at the next request after the session ended or the person was removed', async () => {
    const registrationId = await registered('Spät GmbH')
    const ends = [
      (userId: string) => cloud.db.database.write((db) => endSessionsOf(db, userId)),
      (userId: string) => cloud.db.database.write((db) => deleteUser(db, userId)),
    ]
    for (const end of ends) {
      const token = await cloud.user(PLATFORM_ROLE)
      const cookie = cookieOfToken(token)
      const { userId } = await cloud.ok(token, 'fetchProfile')
      const { text } = await open('/console/registrations', cookie)
      expect(text).toContain('Spät GmbH')
      await end(userId)
      const frame = { _csrf: field(text, '_csrf'), _key: `key-${++sent}`, _action: 'approve', _form: 'approve' }
      const late = await send(
        '/console/registrations',
        { ...frame, _mode: 'live', _store: 'all', registrationId },
        cookie,
      )
      expect(await late.text()).toContain('name="password"')
      expect(await cloud.call(token, 'approveStoreRegistration', { registrationId })).toMatchObject({ status: 401 })
    }
    const { registrations } = await cloud.ok(adminKey, 'fetchRegistrations', { status: 'pending' })
    expect(registrations).toContainEqual(expect.objectContaining({ registrationId }))
  })

  it('sees 50 registrations at a time, the oldest that waits first', async () => {
    const cookie = cookieOfToken(await cloud.user(PLATFORM_ROLE))
    const merchant = await cloud.user('owner', { account: 'Viele' })
    const address = { street: 'Kai 1', city: 'Hamburg', zip: '20457', country: 'DE' }
    for (let n = 1; n <= 60; n++)
      await cloud.ok(merchant, 'submitStoreRegistration', {
        companyName: 'Viele GmbH',
        tradingName: `Viele ${n}.`,
        address,
      })
    const shownOn = (text: string) => text.match(/<section class="card">/g)?.length
    const first = await open('/console/registrations', cookie)
    expect([shownOn(first.text), first.text.includes('Viele 1.'), first.text.includes('Viele 60.')]).toEqual([
      50,
      true,
      false,
    ])
    const next = /href="(\/console\/registrations\?cursor=reg_\w+)"/.exec(first.text)?.[1] ?? ''
    expect((await open(next, cookie)).text).toContain('Viele 60.')
  })
})
