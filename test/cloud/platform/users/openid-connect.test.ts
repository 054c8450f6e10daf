import { TOTP } from 'otpauth'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { outgoingHttp } from '../../../../host/outgoing-http.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { CLIENT, startIdentityProvider, type TestIdentityProvider } from '../../../support/identity-provider.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'

const CALLBACK = 'https://shop.example/console/sign-in/openid-connect/callback'
const NOBODY = null
const START = '/console/sign-in/openid-connect'

inFullSizeOnEveryDatabase('sign-in with OpenID Connect', (kind) => {
  let idp: TestIdentityProvider
  let cloud: TestCloud
  let owner: string
  let people = 0
  const { platform, forward } = movablePlatform()
  const clouds: TestCloud[] = []
  const cloudWith = async (openId: Json = {}) => {
    const config = {
      issuer: idp.issuer,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      name: 'Hafen-ID',
      domains: [],
    }
    const made = await startTestCloud(kind, {
      platform,
      outgoing: outgoingHttp(),
      config: { openId: { ...config, ...openId } },
    })
    clouds.push(made)
    return made
  }

  beforeAll(async () => {
    idp = await startIdentityProvider(CALLBACK)
    cloud = await cloudWith()
    owner = await cloud.user('owner')
  })
  afterAll(async () => {
    for (const each of clouds) await each.stop()
    await idp.close()
  })
  beforeEach(() => {
    idp.state.isDown = false
    const email = `person${++people}@shop.example`
    idp.state.person = { sub: `subject-${people}`, email, email_verified: true, name: 'Jana Petersen' }
  })

  const cookiesOf = (answer: { headers: Headers }) =>
    answer.headers
      .getSetCookie()
      .map((each) => each.split(';')[0] ?? '')
      .filter((each) => !each.endsWith('='))
      .join('; ')
  /** Starts a sign-in in a browser. Returns its cookie and the address back to the cloud. */
  const visit = async (on = cloud, to = '/console/alarms') => {
    const started = await on.get(`${START}?to=${encodeURIComponent(to)}`)
    expect(started.status).toBe(303)
    return { cookie: cookiesOf(started), back: await idp.visit(started.headers.get('location') ?? '') }
  }
  const finish = ({ cookie, back }: { cookie: string; back: URL }, on = cloud) =>
    on.get(`${back.pathname}${back.search}`, { cookie })
  const signInWith = async (on = cloud) => finish(await visit(on), on)
  const invite = async (role = 'manager', email = idp.state.person.email) =>
    cloud.ok(owner, 'inviteUser', { email, role })
  const profile = (cookie: string) => cloud.get('/console/profile', { cookie })

  it('accepts an invitation, and later finds the same person under another address', async () => {
    const { userId } = await invite()
    const first = await signInWith()
    expect([first.status, first.headers.get('location')]).toEqual([303, '/console/alarms'])
    expect((await profile(cookiesOf(first))).text).toContain('Jana Petersen')
    idp.state.person = { ...idp.state.person, email: 'married@shop.example' }
    const second = await signInWith()
    expect(second.status).toBe(303)
    const { users } = await cloud.ok(owner, 'fetchUsers')
    expect(users.find((user: Json) => user.userId === userId)).toMatchObject({ status: 'active', role: 'manager' })
    // Without a password nobody can sign in with one.
    const guess = { email: `person${people}@shop.example`, password: 'vier Wörter, die niemand rät' }
    expect(await cloud.call(NOBODY, 'signIn', guess)).toMatchObject({ status: 401 })
  })

  it('refuses a second person of the provider with the same address, until the user is removed and invited again', async () => {
    const { userId } = await invite()
    expect((await signInWith()).status).toBe(303)
    idp.state.person = { ...idp.state.person, sub: 'successor', name: 'Jan Petersen' }
    const refused = await signInWith()
    expect([refused.status, refused.headers.get('set-cookie')]).toEqual([403, expect.not.stringContaining('session')])
    expect(refused.text).toContain('as another person than before')
    await cloud.ok(owner, 'removeUser', { userId })
    await invite()
    expect((await signInWith()).status).toBe(303)
  })

  it('ends the access of an inviter who accepted in the place of the person', async () => {
    const { url } = await invite('admin')
    const token = String(url).split('/').at(-1)
    const password = 'vier Wörter, die niemand rät'
    const accepted = await cloud.call(NOBODY, 'acceptInvitation', { token, name: 'Chef', password })
    const { sessionToken } = accepted.body
    expect((await cloud.call(sessionToken, 'fetchProfile')).status).toBe(200)
    const signedIn = await signInWith()
    expect(signedIn.status).toBe(303)
    expect((await cloud.call(sessionToken, 'fetchProfile')).status).toBe(401)
    expect(await cloud.call(NOBODY, 'signIn', { email: idp.state.person.email, password })).toMatchObject({
      status: 401,
    })
    // Later sign-ins end nothing.
    const first = cookiesOf(signedIn)
    await signInWith()
    expect((await profile(first)).status).toBe(200)
  })

  it('refuses persons without an invitation, without a verified address, and removed users', async () => {
    const uninvited = await signInWith()
    const audited = cloud.db.database.reads.selectFrom('audit_entry').selectAll()
    // Every visitor may begin a sign-in.
    expect(await audited.where('operation', '=', 'beginOpenIdSignIn').execute()).toEqual([])
    expect([uninvited.status, uninvited.text]).toEqual([403, expect.stringContaining(`${idp.state.person.email}`)])
    // The provider would otherwise sign in the same account at once.
    expect(uninvited.text).toContain('again=yes')
    const again = await cloud.get(`${START}?again=yes`)
    expect(new URL(again.headers.get('location') ?? '').searchParams.get('prompt')).toBe('login')
    const { userId } = await invite()
    for (const isVerified of [false, undefined]) {
      idp.state.person = { ...idp.state.person, email_verified: isVerified as boolean }
      const refused = await signInWith()
      expect(refused.text).toContain('has not verified your address')
      expect([refused.status, refused.headers.get('set-cookie')]).toEqual([403, expect.not.stringContaining('session')])
    }
    idp.state.person = { ...idp.state.person, email_verified: true }
    expect((await signInWith()).status).toBe(303)
    await cloud.ok(owner, 'removeUser', { userId })
    expect((await signInWith()).status).toBe(403)
    await invite()
    expect((await signInWith()).status).toBe(303)
    await invite('manager', 'expired@shop.example')
    idp.state.person = { sub: 'late', email: 'expired@shop.example', email_verified: true }
    forward(8 * 24 * 3_600_000)
    expect((await signInWith()).status).toBe(403)
    owner = await cloud.user('owner')
  })

  describe('if several accounts have the address', () => {
    let stranger: string
    const chosen = (cookie: string, account: string, on = cloud) =>
      on.cloud.app.request('https://shop.example/console/sign-in/account', {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', host: 'shop.example', cookie },
        body: new URLSearchParams({ account }).toString(),
      })
    const sessionOf = async (answer: { headers: Headers }) => {
      const [, token = ''] = /__Host-untag_session=([^;]+)/.exec(answer.headers.getSetCookie().join('; ')) ?? []
      return cloud.ok(token, 'fetchProfile')
    }
    const strangerInvites = async (email = idp.state.person.email) =>
      cloud.ok(stranger, 'inviteUser', { email, role: 'viewer' })
    const accountsOn = (text: string) => [...text.matchAll(/name="account" value="([^"]*)"/g)].map(([, name]) => name)
    const links = () => cloud.db.database.reads.selectFrom('user_identity').selectAll().execute()
    beforeAll(async () => {
      owner = await cloud.user('owner')
      stranger = await cloud.user('owner', { account: 'Fremd' })
    })

    it.each(['accepted', 'invited'])('asks the person, although the stranger was %s first', async (how) => {
      const { url } = await strangerInvites()
      const token = String(url).split('/').at(-1)
      const fields = { token, name: 'Evil', password: 'vier Wörter, die niemand rät' }
      if (how === 'accepted') await cloud.call(NOBODY, 'acceptInvitation', fields)
      const before = (await links()).length
      const { userId } = await invite('admin')
      const asked = await signInWith()
      expect([asked.status, accountsOn(asked.text).toSorted()]).toEqual([200, ['Fremd', 'Hafenkante']])
      expect((await links()).length, 'nothing is linked yet').toBe(before)
      const cookie = cookiesOf(asked)
      expect(cookie).not.toContain('session=')
      const done = await chosen(cookie, 'Hafenkante')
      expect([done.status, done.headers.get('location')]).toEqual([303, '/console/alarms'])
      expect(await sessionOf(done)).toMatchObject({ userId, account: 'Hafenkante', role: 'admin' })
      // The link stays, and the page still offers the other account.
      const again = await signInWith()
      expect(accountsOn(again.text)).toEqual(['Hafenkante', 'Fremd'])
      expect(again.text).toMatch(/used this account before|schon benutzt/)
      expect(await sessionOf(await chosen(cookiesOf(again), 'Fremd'))).toMatchObject({ account: 'Fremd' })
      expect((await links()).length).toBe(before + 2)
    })

    it('refuses another account, another browser, and a choice that is late', async () => {
      await strangerInvites()
      await invite()
      const asked = await signInWith()
      expect((await chosen(cookiesOf(asked), 'Elsewhere')).status).toBe(400)
      expect((await chosen('', 'Hafenkante')).status).toBe(401)
      const late = await signInWith()
      forward(10 * 60_000 + 1)
      expect((await chosen(cookiesOf(late), 'Hafenkante')).status).toBe(401)
    })

    it('offers no invitation of a user who may no longer invite', async () => {
      const { email } = idp.state.person
      const helper = await cloud.user('manager', { account: 'Fremd' })
      await cloud.ok(helper, 'inviteUser', { email, role: 'viewer' })
      const { userId } = await cloud.ok(helper, 'fetchProfile')
      await cloud.ok(stranger, 'removeUser', { userId })
      await invite()
      expect((await signInWith()).status).toBe(303)
    })

    it('answers with the names and a new flow', async () => {
      await strangerInvites()
      const { userId } = await invite()
      const begun = await cloud.ok(NOBODY as never, 'beginOpenIdSignIn')
      const query = (await idp.visit(begun.url)).search.slice(1)
      const { status, body } = await cloud.call(NOBODY, 'finishOpenIdSignIn', { flow: begun.flow, query })
      expect([status, body.reason, body.accounts]).toEqual([409, 'several_accounts', ['Fremd', 'Hafenkante']])
      const answer = await cloud.call(NOBODY, 'finishOpenIdSignIn', {
        flow: body.flow,
        query: '',
        account: 'Hafenkante',
      })
      expect(answer).toMatchObject({ status: 200, body: { userId } })
      const again = { flow: body.flow, query: '', account: 'Hafenkante' }
      expect(await cloud.call(NOBODY, 'finishOpenIdSignIn', again), 'a choice is used once').toMatchObject({
        status: 401,
      })
    })
  })

  it('takes no name from the provider that the API refuses', async () => {
    for (const name of ['Ev\u202eil', 'a\nb', 'x'.repeat(81)]) {
      people++
      idp.state.person = { ...idp.state.person, sub: `named-${people}`, email: `named${people}@shop.example`, name }
      const { userId } = await invite('manager', idp.state.person.email)
      expect((await signInWith()).status).toBe(303)
      const { users } = await cloud.ok(owner, 'fetchUsers')
      expect(users.find((user: Json) => user.userId === userId)).toMatchObject({ name: idp.state.person.email })
    }
  })

  it('refuses an address that is not ASCII', async () => {
    await cloud.ok(owner, 'inviteUser', { email: 'mark@shop.example', role: 'admin' })
    idp.state.person = { sub: 'kelvin', email: 'mar\u212a@shop.example', email_verified: true }
    expect((await signInWith()).status).toBe(403)
    idp.state.person = { sub: 'capital', email: 'MARK@Shop.Example', email_verified: true }
    expect((await signInWith()).status).toBe(303)
  })

  it('counts a second factor of the provider, else asks for the code of the app', async () => {
    await invite()
    idp.state.person.amr = ['pwd', 'otp']
    const strong = await signInWith()
    expect(strong.status).toBe(303)
    const sessions = () =>
      cloud.db.database.reads.selectFrom('user_session').selectAll().orderBy('session_id').execute()
    expect((await sessions()).at(-1)).toMatchObject({ state: 'active', second_factor: 1 })
    const [, token = ''] = cookiesOf(strong).split('=')
    const { secret } = await cloud.ok(token, 'beginSecondFactor')
    const code = new TOTP({ secret }).generate({ timestamp: platform.clock.wall() })
    await cloud.ok(token, 'confirmSecondFactor', { code })
    idp.state.person.amr = ['pwd']
    const weak = await signInWith()
    expect([weak.status, weak.text]).toEqual([200, expect.stringContaining('name="code"')])
    expect((await sessions()).at(-1)).toMatchObject({ state: 'pending', second_factor: 0 })
  })

  it('refuses a forged, replayed, expired or foreign answer', async () => {
    await invite()
    const good = await visit()
    const other = await visit()
    const with_ = (search: string) => ({ ...good, back: new URL(search, good.back) })
    const { searchParams } = good.back
    expect((await finish({ ...good, cookie: other.cookie })).status, 'the answer of another browser').toBe(401)
    expect((await finish({ ...good, cookie: '' })).status, 'no cookie').toBe(401)
    expect((await finish(with_(`?code=${searchParams.get('code')}&state=forged`))).status).toBe(401)
    expect((await finish(with_(`?error=access_denied&state=${searchParams.get('state')}`))).status).toBe(401)
    // Whoever calls may write any error into the address.
    expect((await finish(with_(`?error=invalid_client&state=${searchParams.get('state')}`))).status).toBe(401)
    expect((await finish(good)).status, 'the good one').toBe(303)
    expect((await finish(good)).status, 'replayed').toBe(401)
    const late = await visit()
    forward(10 * 60_000 + 1)
    expect((await finish(late)).status, 'expired').toBe(401)
    const text = (await finish(good)).text
    expect(text).toMatch(/cancelled or took too long|abgebrochen/)
    expect(text).toContain('name="password"')
  })

  it('keeps a sign-in in a cookie that no other host can set', async () => {
    const started = await cloud.get(START)
    const [cookie = ''] = started.headers.getSetCookie()
    expect(cookie).toMatch(/^__Host-untag_openid=[^;]+;/)
    for (const part of ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax']) expect(cookie.split('; ')).toContain(part)
    await invite()
    const good = await visit()
    const planted = good.cookie.replace('__Host-', '')
    expect((await finish({ ...good, cookie: planted })).status).toBe(401)
    expect((await finish(good)).status).toBe(303)
  })

  it('returns only to addresses of the console', async () => {
    await invite()
    for (const to of ['https://evil.example/', '//evil.example', '/console/../x', '/api/v1'])
      expect((await finish(await visit(cloud, to))).headers.get('location')).toBe('/console')
  })

  it('keeps the sign-in by password while the provider is down or refuses the settings', async () => {
    const alone = await cloudWith()
    idp.state.isDown = true
    const started = await alone.get(START)
    expect([started.status, started.text]).toEqual([503, expect.stringContaining('name="password"')])
    expect(started.text).toContain('Hafen-ID')
    idp.state.isDown = false
    expect((await alone.get(START)).status, 'again up').toBe(303)
    const wrong = await cloudWith({ clientSecret: 'another-secret-0123456789-0123456789' })
    expect((await finish(await visit(wrong), wrong)).status).toBe(503)
    expect(JSON.stringify(wrong.errors)).not.toContain('another-secret')
    const elsewhere = await cloudWith({ issuer: `${idp.issuer}/elsewhere` })
    expect((await elsewhere.get(START)).status).toBe(503)
    for (const each of [alone, wrong, elsewhere]) each.errors.length = 0
  })

  it('takes only addresses of the listed domains, which need no further proof', async () => {
    const strict = await cloudWith({ domains: ['hafenkante.example'] })
    const boss = await strict.user('owner')
    const join = async (email: string, isVerified: boolean | undefined) => {
      await strict.ok(boss, 'inviteUser', { email, role: 'viewer' })
      idp.state.person = { sub: email, email, ...(isVerified !== undefined && { email_verified: isVerified }) }
      return (await signInWith(strict)).status
    }
    expect(await join('jana@other.example', true)).toBe(403)
    expect(await join('jana@hafenkante.example', undefined)).toBe(303)
    expect(await join('jens@hafenkante.example', false)).toBe(403)
    // The rule also holds for people who have signed in before.
    idp.state.person = { sub: 'jana@hafenkante.example', email: 'jana@other.example', email_verified: true }
    const moved = await signInWith(strict)
    expect([moved.status, moved.text]).toEqual([403, expect.stringContaining('jana@other.example')])
    // The beginning of an address that is too long is not the address.
    const email = `${'j'.repeat(300)}@hafenkante.example`
    idp.state.person = { sub: 'long', email, email_verified: true }
    expect((await signInWith(strict)).text).toContain('does not tell your e-mail address')
  })

  it('is off without settings', async () => {
    const plain = await startTestCloud(kind)
    clouds.push(plain)
    expect((await plain.get('/console/sign-in')).text).not.toContain('openid-connect')
    expect(await plain.call(NOBODY, 'beginOpenIdSignIn')).toMatchObject({ body: { reason: 'openid_connect_off' } })
    expect((await cloud.get('/console/sign-in')).text).toMatch(/Sign in with Hafen-ID|Anmelden mit Hafen-ID/)
  })
})

it('also logs in at providers that know only client_secret_basic', async () => {
  const idp = await startIdentityProvider(CALLBACK, { authentication: 'client_secret_basic' })
  const openId = { issuer: idp.issuer, clientId: CLIENT.id, clientSecret: CLIENT.secret, name: 'x', domains: [] }
  const cloud = await startTestCloud('sqlite', { outgoing: outgoingHttp(), config: { openId } })
  await cloud.ok(await cloud.user('owner'), 'inviteUser', { email: 'b@shop.example', role: 'viewer' })
  idp.state.person = { sub: 'b', email: 'b@shop.example', email_verified: true }
  const { url, flow } = await cloud.ok(NOBODY as never, 'beginOpenIdSignIn')
  const back = await idp.visit(url)
  expect(await cloud.call(NOBODY, 'finishOpenIdSignIn', { flow, query: back.search.slice(1) })).toMatchObject({
    status: 200,
  })
  await cloud.stop()
  await idp.close()
})
