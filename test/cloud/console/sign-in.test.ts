import type { Db } from '../../../cloud/platform/persistence/database.ts'
import { TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ensureAccount } from '../../../cloud/sales/registrations/registrations.ts'
import { endSession, endSessionsOf } from '../../../cloud/platform/users/sessions.ts'
import {
  insertUser,
  NAMESAKES_LIMIT,
  updateUserRow,
  hashOfUserToken,
} from '../../../cloud/platform/users/user-queries.ts'
import { lateBody } from '../../support/form-body.ts'
import { startTestCloud, type TestCloud } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { movablePlatform } from '../../support/movable-platform.ts'
import { newId } from '../../../policy/ids.ts'

const PASSWORD = 'vier Wörter, die niemand rät'
const EMAIL = 'jana@shop.example'

onEveryDatabase('the sign-in pages', (kind) => {
  const { platform } = movablePlatform()
  let cloud: TestCloud
  let link: string
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    const owner = await cloud.user('owner')
    const { url } = await cloud.ok(owner, 'inviteUser', { email: EMAIL, role: 'manager' })
    link = new URL(url).pathname
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  const send = async (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    cloud.cloud.app.request(`https://shop.example${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', host: 'shop.example', ...headers },
      body: new URLSearchParams(fields).toString(),
    })
  const open = (path: string, cookie: string) => cloud.get(path, { cookie })
  const cookieOf = (answer: Response) => (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''

  it('accept an invitation once, and start a session in a cookie that scripts cannot read', async () => {
    expect((await cloud.get(link)).text).toContain(EMAIL)
    const weak = await send(link, { name: 'Jana', password: 'kurz' })
    expect(weak.status).toBe(400)
    const answer = await send(link, { name: 'Jana', password: PASSWORD })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/console'])
    const cookie = answer.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^__Host-untag_session=untag_us_/)
    for (const part of ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax']) expect(cookie).toContain(part)
    expect((await open('/console', cookieOf(answer))).text).not.toContain('name="password"')
    expect((await cloud.get(link)).status).toBe(404)
  })

  it('ask for a code as the second step, and set it up on the page of the profile', async () => {
    const owner = await cloud.user('owner')
    const { url } = await cloud.ok(owner, 'inviteUser', { email: 'app@shop.example', role: 'manager' })
    const cookie = cookieOf(await send(new URL(url).pathname, { name: 'App', password: PASSWORD }))
    const field = (text: string, name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''
    const act = async (action: string, fields: Record<string, string>) => {
      const { text } = await open('/console/profile', cookie)
      const hidden = Object.fromEntries(['_csrf', '_mode', '_store'].map((name) => [name, field(text, name)]))
      const form = { ...hidden, _key: `${action}-key`, _action: action, _form: action, ...fields }
      return (await send('/console/profile', form, { cookie, origin: 'https://shop.example' })).text()
    }
    const begun = await act('begin', {})
    const secret = /<code>([A-Z2-7]{32})<\/code>/.exec(begun)?.[1] ?? ''
    const code = (step = 0) => new TOTP({ secret }).generate({ timestamp: cloud.platform.clock.wall() + step * 30_000 })
    // A wrong code does not hide the key.
    const shown = { uri: field(begun, 'uri').replaceAll('&amp;', '&'), secret }
    const mistyped = await act('confirm', { _key: 'wrong-key', code: '000000', ...shown })
    expect([mistyped.includes('class="qr"'), mistyped.includes(secret)]).toEqual([true, true])
    expect(await act('confirm', { code: code() })).toMatch(/(?:<li><code>[A-Z0-9]{12}<\/code><\/li>){10}/)

    const first = await send('/console/sign-in', {
      email: 'app@shop.example',
      password: PASSWORD,
      to: '/console/agents',
    })
    const codePage = await first.text()
    expect(codePage).toContain('name="code"')
    expect(codePage).toContain('href="/console/sign-in/code?to=%2Fconsole%2Fagents&amp;lang=de"')
    const pending = cookieOf(first)
    expect((await open('/console', pending)).text).toContain('name="password"')
    const wrong = await send('/console/sign-in/code', { code: '000000' }, { cookie: pending })
    expect(wrong.status).toBe(401)
    const done = await send('/console/sign-in/code', { code: code(1), to: '/console/agents' }, { cookie: pending })
    expect([done.status, done.headers.get('location')]).toEqual([303, '/console/agents'])
    expect((await open('/console/profile', cookieOf(done))).text).not.toContain('name="email"')
  })

  it('keep in the other language where the browser returns, that the session has ended, and the second step', async () => {
    const other = (text: string) =>
      (/href="([^"]*lang=de)"/.exec(text)?.[1] ?? '').replaceAll('&amp;', '&').replace(/^\?/, '/console/sign-in?')
    const toIn = (text: string) => /name="to" value="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&')
    const ended = await cloud.get('/console/sign-in?to=%2Fconsole%2Falarms%3Fgate%3Ddev_1&ended')
    const inGerman = (await cloud.get(other(ended.text))).text
    expect(toIn(inGerman)).toBe('/console/alarms?gate=dev_1')
    expect(inGerman).toContain('Ihre Sitzung ist beendet')
    // At the address of a page, also with a filter.
    const page = await open('/console/alarms?gate=dev_1', '__Host-untag_session=untag_us_old')
    expect(other(page.text)).toBe('/console/alarms?gate=dev_1&lang=de')
    // After a wrong password.
    const failed = await send('/console/sign-in', { email: EMAIL, password: 'x', to: '/console/stock' })
    expect(other(await failed.text())).toBe('/console/sign-in?to=%2Fconsole%2Fstock&lang=de')
    const code = await open('/console/sign-in/code?to=%2Fconsole%2Fstock&lang=de', '__Host-untag_session=untag_us_old')
    expect([code.text.includes('name="code"'), toIn(code.text)]).toEqual([true, '/console/stock'])
    const without = await cloud.get('/console/sign-in/code?to=%2Fconsole%2Fstock')
    expect(without.headers.get('location')).toBe('/console/sign-in?to=%2Fconsole%2Fstock')
  })

  it('ask which account, if the password fits several', async () => {
    const email = 'both@shop.example'
    for (const account of ['Hafenkante', 'Fremd']) {
      const { url } = await cloud.ok(await cloud.user('owner', { account }), 'inviteUser', { email, role: 'viewer' })
      await send(new URL(url).pathname, { name: 'Jana', password: PASSWORD })
    }
    const asked = await send('/console/sign-in', { email, password: PASSWORD, to: '/console/agents' })
    const text = await asked.text()
    expect(asked.status).toBe(409)
    expect(asked.headers.get('set-cookie') ?? '').not.toContain('session=untag')
    for (const part of ['name="account" value="Hafenkante"', 'name="account" value="Fremd"', `value="${email}"`])
      expect(text).toContain(part)
    expect(text).not.toContain(PASSWORD)
    const done = await send('/console/sign-in', { email, password: PASSWORD, account: 'Fremd', to: '/console/agents' })
    expect([done.status, done.headers.get('location')]).toEqual([303, '/console/agents'])
    const token = cookieOf(done).split('=')[1] ?? ''
    expect(await cloud.ok(token, 'fetchProfile')).toMatchObject({ account: 'Fremd' })
  })

  it('take the name of the account after a failed sign-in, also if many accounts have the address', async () => {
    const email = 'crowd@shop.example'
    const own = await cloud.ok(await cloud.user('owner'), 'inviteUser', { email, role: 'viewer' })
    await send(new URL(own.url).pathname, { name: 'Jana', password: PASSWORD })
    await cloud.db.database.write(async (db) => {
      const users = db.selectFrom('console_user').selectAll()
      const row = await users.where('user_id', '=', own.userId).executeTakeFirstOrThrow()
      for (let i = 0; i < NAMESAKES_LIMIT; i++) {
        const { accountId } = await ensureAccount(db, `A${i}`, 'GROW', platform)
        const namesake = { ...row, user_id: newId('usr', platform), account_id: accountId, password_hash: null }
        await insertUser(db, { ...namesake, accepted_ms: (row.accepted_ms ?? 0) + 1 })
      }
    })
    // Accounts that name the address later keep nobody out.
    expect((await send('/console/sign-in', { email, password: PASSWORD })).status).toBe(303)
    const earlier = (db: Db) =>
      db
        .updateTable('console_user')
        .set({ accepted_ms: 1 })
        .where('email', '=', email)
        .where('user_id', '<>', own.userId)
    await cloud.db.database.write((db) => earlier(db).execute())
    expect((await cloud.get('/console/sign-in')).text).not.toContain('name="account"')
    const failed = await send('/console/sign-in', { email, password: PASSWORD })
    expect([failed.status, await failed.text()]).toEqual([401, expect.stringContaining('name="account"')])
    const done = await send('/console/sign-in', { email, password: PASSWORD, account: 'Hafenkante' })
    expect(done.status).toBe(303)
  })

  it.each(['ends', 'is lowered to viewer'])('perform no form whose session %s while it is on its way', async (how) => {
    const owner = await cloud.user('owner')
    const cookie = `__Host-untag_session=${owner}`
    const { text } = await open('/console/users', cookie)
    const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''
    const email = `late-${how.length}@shop.example`
    const form = new URLSearchParams({
      ...Object.fromEntries(['_csrf', '_mode', '_store', '_key'].map((name) => [name, field(name)])),
      _action: 'invite',
      email,
      role: 'admin',
    })
    const { db } = cloud
    const meanwhile = () =>
      db.database.write(async (tx) => {
        const session = await tx
          .selectFrom('user_session')
          .selectAll()
          .where('token_hash', '=', hashOfUserToken(owner))
          .executeTakeFirstOrThrow()
        if (how === 'ends') await endSession(tx, session.session_id)
        else await updateUserRow(tx, session.user_id, { role: 'viewer' })
      })
    const answer = await cloud.cloud.app.request('https://shop.example/console/users', {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        host: 'shop.example',
        cookie,
        origin: 'https://shop.example',
      },
      body: lateBody(form.toString(), meanwhile),
      duplex: 'half',
    } as RequestInit)
    expect([200, 401, 403]).toContain(answer.status)
    const users = await db.database.reads
      .selectFrom('console_user')
      .select('email')
      .where('email', '=', email)
      .execute()
    expect(users).toEqual([])
  })

  it('end the stream of changes with the session, and tell it nothing more', async () => {
    const owner = await cloud.user('owner')
    const answer = await cloud.cloud.app.request('https://shop.example/console/live?mode=test&topics=assistance', {
      headers: { host: 'shop.example', cookie: `__Host-untag_session=${owner}` },
    })
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
    const next = async () => Buffer.from((await reader.read()).value ?? []).toString()
    expect(await next()).toBe(': open\n\n')
    const { reads } = cloud.db.database
    const { user_id } = await reads
      .selectFrom('user_session')
      .select('user_id')
      .where('token_hash', '=', hashOfUserToken(owner))
      .executeTakeFirstOrThrow()
    await cloud.db.database.write((tx) => endSessionsOf(tx, user_id))
    const other = await cloud.user('owner')
    const { stores } = await cloud.ok(other, 'fetchStores')
    await cloud.ok(other, 'createZone', { storeId: stores[0].storeId, name: 'Herren' })
    expect(await next()).toBe('')
  })

  it('invite a person on the page of users, and show the link once', async () => {
    const owner = await cloud.user('owner')
    const cookie = `__Host-untag_session=${owner}`
    const { text } = await open('/console/users', cookie)
    const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''
    const hidden = Object.fromEntries(['_csrf', '_mode', '_store', '_key'].map((name) => [name, field(name)]))
    const form = {
      ...hidden,
      _action: 'invite',
      _form: 'invite',
      email: 'neu@shop.example',
      role: 'viewer',
      store_id: '',
    }
    const answer = await send('/console/users', form, { cookie, origin: 'https://shop.example' })
    expect(await answer.text()).toMatch(/\/console\/invitations\/untag_ui_/)
    // An owner of one store: the field of the store is marked, with the reason.
    const { stores } = await cloud.ok(owner, 'fetchStores')
    const wrong = { ...form, _key: 'another', role: 'owner', store_id: stores[0]?.storeId ?? '' }
    const refused = await (await send('/console/users', wrong, { cookie, origin: 'https://shop.example' })).text()
    expect(refused).toMatch(/name="store_id"[^>]*aria-invalid="true"/)
    expect(refused).toMatch(/An owner has all stores|gehören alle Filialen dazu/)
    const after = (await open('/console/users', cookie)).text
    // The list comes first, with the last sign-in of those who have signed in.
    const [listed, inviteForm] = [after.indexOf('neu@shop.example'), after.indexOf('value="invite"')]
    expect([listed > 0, listed < inviteForm]).toEqual([true, true])
    expect(after).toMatch(/(?:Last sign-in|Letzte Anmeldung): /)
    expect(after).not.toContain('untag_ui_')
  })

  it('answer every address of the console while the browser is signed out, and return there', async () => {
    for (const path of ['/console', '/console/no-such-page', '/console/agents?x=1']) {
      const page = await cloud.get(path)
      expect([page.status, page.text.includes('name="password"')]).toEqual([200, true])
      expect(page.text).toContain(`value="${path}"`)
    }
    const fields = { email: EMAIL, password: PASSWORD }
    const to = async (address: string) =>
      (await send('/console/sign-in', { ...fields, to: address })).headers.get('location')
    expect(await to('/console/agents?x=1')).toBe('/console/agents?x=1')
    for (const foreign of ['https://evil.example', '//evil.example', '/console//evil.example', '/console/\\evil', 'x'])
      expect(await to(foreign)).toBe('/console')
  })

  it('refuse a form of another site, and a session chosen by an attacker', async () => {
    const fields = { email: EMAIL, password: PASSWORD }
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }])
      expect((await send('/console/sign-in', fields, headers)).status).toBe(403)
    const chosen = `__Host-untag_session=untag_us_${'A'.repeat(43)}`
    const answer = await send('/console/sign-in', fields, { cookie: chosen, origin: 'https://shop.example' })
    expect(answer.status).toBe(303)
    expect(cookieOf(answer)).not.toBe(chosen)
    expect((await open('/console', chosen)).text).toContain('name="password"')
  })

  it('show a wrong password in both languages and keep the address of the person', async () => {
    const answer = await send('/console/sign-in?lang=de', { email: EMAIL, password: 'wrong' })
    const text = await answer.text()
    expect(answer.status).toBe(401)
    expect(text).toContain('Passwort ist falsch')
    expect(text).toContain(`value="${EMAIL}"`)
    expect(text).not.toContain('wrong')
  })

  it('give the API no session of a cookie', async () => {
    const cookie = cookieOf(await send('/console/sign-in', { email: EMAIL, password: PASSWORD }))
    const headers = { 'content-type': 'application/json', cookie }
    const answer = await cloud.cloud.app.request('/api/v1/fetchProfile', { method: 'POST', headers, body: '{}' })
    expect(answer.status).toBe(401)
    const token = cookie.split('=')[1] ?? ''
    expect(await cloud.ok(token, 'fetchProfile')).toMatchObject({ email: EMAIL })
  })
})
