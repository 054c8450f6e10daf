import { TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { invite } from '../../../../cloud/platform/users/invitations.ts'
import { FAILURE_LIMITS, FAILURE_PERIOD_MS } from '../../../../cloud/platform/users/sign-in-operations.ts'
import { SESSIONS_LIMIT, IDLE_MS, SESSION_MS } from '../../../../cloud/platform/users/sessions.ts'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { markRestored } from '../../../../cloud/service/mark-restored.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'

const PASSWORD = 'vier Wörter, die niemand rät'

inFullSizeOnEveryDatabase('users', (kind) => {
  const { platform, forward } = movablePlatform()
  let cloud: TestCloud
  let owner: string
  let stores: string[]
  beforeAll(async () => {
    cloud = await startTestCloud(kind, { platform })
    owner = await cloud.user('owner')
    stores = (await cloud.ok(owner, 'fetchStores')).stores.map((s: Json) => s.storeId)
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  const call: TestCloud['call'] = (...args) => cloud.call(...args)
  const tokenOf = (url: string) => url.split('/').at(-1) ?? ''
  const accept = (url: string, name = 'Jana Petersen', password = PASSWORD) =>
    call(null, 'acceptInvitation', { token: tokenOf(url), name, password })
  const signIn = (email: string, password = PASSWORD) => call(null, 'signIn', { email, password })

  async function invited(email: string, fields: Json = {}, by = owner): Promise<{ userId: string; session: string }> {
    const { url, userId } = await cloud.ok(by, 'inviteUser', { email, role: 'manager', ...fields })
    return { userId, session: (await accept(url)).body.sessionToken }
  }

  it('accept an invitation once, sign in with the password, and see their profile', async () => {
    const made = await cloud.ok(owner, 'inviteUser', { email: ' Jana@Shop.Example ', role: 'manager' })
    expect(made.url).toMatch(/^https:\/\/shop\.example\/console\/invitations\/untag_ui_/)
    const { body } = await accept(made.url)
    expect(body).toMatchObject({ userId: made.userId, role: 'manager', state: 'active', mode: 'test' })
    expect(await accept(made.url)).toMatchObject({ status: 404 })
    expect(await cloud.ok(body.sessionToken, 'fetchProfile')).toMatchObject({
      email: 'jana@shop.example',
      name: 'Jana Petersen',
      account: 'Hafenkante',
    })
    expect(await cloud.ok(body.sessionToken, 'updateProfile', { name: 'Jana P.' })).toMatchObject({ name: 'Jana P.' })
    const again = await signIn('JANA@shop.example')
    expect(again.body.sessionToken).not.toBe(body.sessionToken)
    expect((await cloud.ok(again.body.sessionToken, 'fetchStores')).stores).toHaveLength(stores.length)
    const log = await cloud.ok(owner, 'fetchAuditLog', { entityId: made.userId })
    expect(log.entries.map((e: Json) => e.operation)).toEqual([
      'inviteUser',
      'acceptInvitation',
      'updateProfile',
      'signIn',
    ])
    expect(log.entries[0].actor).toMatch(/^usr_/)
  })

  it('sign in again after a restore, and open invitations need a new link', async () => {
    const { url } = await cloud.ok(owner, 'inviteUser', { email: 'restored@shop.example', role: 'admin' })
    const { body } = await accept(url)
    const open = await cloud.ok(owner, 'inviteUser', { email: 'open@shop.example', role: 'admin' })
    const files = await loadKeyFiles(keysOf(cloud.keyFolder), secretFiles, cloud.platform.random)
    await cloud.db.database.write((db) => markRestored(db, files, cloud.platform))
    expect((await cloud.call(body.sessionToken, 'fetchProfile')).status).toBe(401)
    expect(await accept(open.url)).toMatchObject({ status: 404 })
    owner = await cloud.user('owner')
  })

  it('confirm a sign-in with a code of an app, each code once, or with a recovery code', async () => {
    const { session } = await invited('totp@shop.example', { role: 'owner' })
    expect(await call(session, 'confirmSecondFactor', { code: '000000' })).toMatchObject({ status: 409 })
    const { secret, uri } = await cloud.ok(session, 'beginSecondFactor')
    expect(uri).toContain(`secret=${secret}`)
    const app = new TOTP({ secret })
    const code = () => app.generate({ timestamp: platform.clock.wall() })
    const wrong = () => String((Number(code()) + 1) % 1_000_000).padStart(6, '0')
    expect((await call(session, 'confirmSecondFactor', { code: wrong() })).status).toBe(401)
    const ofSetUp = code()
    const { recoveryCodes } = await cloud.ok(session, 'confirmSecondFactor', { code: ofSetUp })
    expect(recoveryCodes).toHaveLength(10)
    expect(await cloud.ok(session, 'switchMode', { mode: 'live' })).toMatchObject({ mode: 'live' })
    expect(await call(session, 'beginSecondFactor')).toMatchObject({ body: { reason: 'second_factor_exists' } })

    // Who knows only the password ends no session with both factors.
    for (let n = 0; n < SESSIONS_LIMIT + 1; n++) expect((await signIn('totp@shop.example')).body.state).toBe('pending')
    expect((await call(session, 'fetchProfile')).status).toBe(200)
    const first = (await signIn('totp@shop.example')).body
    expect(first.state).toBe('pending')
    expect((await call(first.sessionToken, 'fetchProfile')).status).toBe(401)
    const confirm = (given: string, sessionToken = first.sessionToken) =>
      call(null, 'confirmSignIn', { sessionToken, code: given })
    expect(await confirm(ofSetUp), 'the code that set the app up').toMatchObject({ status: 401 })
    forward(60_000)
    const used = code()
    const done = await confirm(used)
    expect(done.body).toMatchObject({ state: 'active', mode: 'live' })
    expect(await confirm(used)).toMatchObject({ status: 401 })
    expect(await cloud.ok(done.body.sessionToken, 'fetchProfile')).toMatchObject({ hasSecondFactor: true })

    const second = (await signIn('totp@shop.example')).body.sessionToken
    expect(await confirm(used, second)).toMatchObject({ status: 401 })
    expect(await confirm(String(recoveryCodes[0]).toLowerCase(), second)).toMatchObject({ status: 200 })
    const third = (await signIn('totp@shop.example')).body.sessionToken
    expect(await confirm(recoveryCodes[0], third)).toMatchObject({ status: 401 })
    const { body } = await confirm(recoveryCodes[1], third)
    await cloud.ok(body.sessionToken, 'removeSecondFactor', { code: recoveryCodes[2] })
    expect((await signIn('totp@shop.example')).body.state).toBe('active')
  })

  it('are locked out of the second step after too many wrong codes', async () => {
    const { session } = await invited('codes@shop.example')
    const { secret } = await cloud.ok(session, 'beginSecondFactor')
    const app = new TOTP({ secret })
    const code = () => app.generate({ timestamp: platform.clock.wall() })
    await cloud.ok(session, 'confirmSecondFactor', { code: code() })
    forward(60_000)
    const { sessionToken } = (await signIn('codes@shop.example')).body
    for (let i = 0; i < FAILURE_LIMITS.user; i++)
      expect((await call(null, 'confirmSignIn', { sessionToken, code: 'AAAAAAAAAAAA' })).status).toBe(401)
    expect(await call(null, 'confirmSignIn', { sessionToken, code: code() })).toMatchObject({ status: 429 })
  })

  it('get the same answer for a wrong password and for an unknown address', async () => {
    await invited('known@shop.example')
    const [wrong, unknown] = [await signIn('known@shop.example', 'wrong'), await signIn('who@shop.example', 'wrong')]
    expect(wrong.status).toBe(401)
    expect(wrong.body.error).toBe(unknown.body.error)
    expect(wrong.body.reason).toBe('sign_in_failed')
    expect({ ...wrong.body, requestId: '' }).toEqual({ ...unknown.body, requestId: '' })
  })

  it('are locked out after too many failures, known or unknown, until the period ends', async () => {
    await invited('guessed@shop.example')
    for (const email of ['guessed@shop.example', 'unknown@shop.example']) {
      for (let i = 0; i < FAILURE_LIMITS.user; i++) expect((await signIn(email, 'wrong')).status).toBe(401)
      expect(await signIn(email)).toMatchObject({ status: 429, body: { reason: 'too_many_sign_ins' } })
    }
    forward(FAILURE_PERIOD_MS + 1_000)
    expect((await signIn('guessed@shop.example')).status).toBe(200)
  })

  it('cannot choose a short or common password or their own name', async () => {
    const { url } = await cloud.ok(owner, 'inviteUser', { email: 'weak@shop.example', role: 'viewer' })
    for (const password of ['kurz', 'password1234', '123456789012', 'P@ssw0rd1234!', 'aaaaaaaaaaaa', 'petersen-2026'])
      expect(await accept(url, 'Jana Petersen', password)).toMatchObject({ status: 400 })
  })

  it('never invite, change or remove a role above their own', async () => {
    const { session } = await invited('mia@shop.example')
    const admin = await cloud.ok(owner, 'inviteUser', { email: 'admin@shop.example', role: 'admin' })
    const calls: [string, Json][] = [
      ['inviteUser', { email: 'new@shop.example', role: 'admin' }],
      ['inviteUser', { email: 'admin@shop.example', role: 'viewer' }],
      ['updateUser', { userId: admin.userId, role: 'viewer' }],
      ['removeUser', { userId: admin.userId }],
    ]
    for (const [name, body] of calls)
      expect(await cloud.call(session, name, body)).toMatchObject({ status: 403, body: { reason: 'role_too_low' } })
    const own = (await cloud.ok(session, 'fetchProfile')).userId
    expect(await cloud.call(session, 'updateUser', { userId: own, role: 'owner' })).toMatchObject({ status: 403 })
  })

  it('lose their sessions when role or stores change, and when they are removed', async () => {
    const { userId, session } = await invited('lena@shop.example')
    await cloud.ok(owner, 'updateUser', { userId, storeIds: [stores[0]] })
    expect((await cloud.call(session, 'fetchStores')).status).toBe(401)
    const next = (await signIn('lena@shop.example')).body.sessionToken
    expect((await cloud.ok(next, 'fetchStores')).stores.map((s: Json) => s.storeId)).toEqual([stores[0]])
    expect(await cloud.call(next, 'fetchStore', { storeId: stores[1] })).toMatchObject({ status: 404 })
    await cloud.ok(owner, 'removeUser', { userId })
    expect((await cloud.call(next, 'fetchStores')).status).toBe(401)
    expect((await signIn('lena@shop.example')).status).toBe(401)
  })

  it('who are limited to stores manage only users of these stores', async () => {
    const { session } = await invited('limited@shop.example', { storeIds: [stores[0]] })
    const other = await cloud.ok(owner, 'inviteUser', {
      email: 'b@shop.example',
      role: 'viewer',
      storeIds: [stores[1]],
    })
    const all = await cloud.ok(owner, 'inviteUser', { email: 'c@shop.example', role: 'viewer' })
    const seen = (await cloud.ok(session, 'fetchUsers')).users.map((u: Json) => u.email)
    expect(seen).toEqual(['limited@shop.example'])
    for (const { userId } of [other, all])
      expect(await cloud.call(session, 'removeUser', { userId })).toMatchObject({ status: 404 })
    const email = 'd@shop.example'
    expect(await cloud.call(session, 'inviteUser', { email, role: 'viewer', storeIds: [stores[1]] })).toMatchObject({
      status: 404,
    })
    const made = await cloud.ok(session, 'inviteUser', { email, role: 'associate' })
    const found = (await cloud.ok(session, 'fetchUsers')).users.find((u: Json) => u.userId === made.userId)
    expect(found.storeIds).toEqual([stores[0]])
    expect(await cloud.call(session, 'updateUser', { userId: made.userId, storeIds: null })).toMatchObject({
      status: 404,
    })
  })

  it('keep at least one owner', async () => {
    const account = 'Einzelhandel'
    const only = await cloud.user('owner', { account })
    const { userId } = await cloud.ok(only, 'fetchProfile')
    for (const [name, body] of [
      ['removeUser', { userId }] as const,
      ['updateUser', { userId, role: 'admin' }] as const,
    ])
      expect(await cloud.call(only, name, body)).toMatchObject({ status: 409, body: { reason: 'last_owner' } })
    await cloud.user('owner', { account })
    await cloud.ok(only, 'removeUser', { userId })
  })

  it('who are owners without a second factor use sandbox data only, and grant nothing more', async () => {
    const { url } = await cloud.ok(owner, 'inviteUser', { email: 'chef@shop.example', role: 'owner' })
    const session = (await accept(url)).body.sessionToken
    expect(await cloud.ok(session, 'fetchProfile')).toMatchObject({ mode: 'test', mayUseLive: false })
    expect(await cloud.call(session, 'switchMode', { mode: 'live' })).toMatchObject({
      status: 403,
      body: { reason: 'second_factor_needed' },
    })
    const email = 'helper@shop.example'
    expect(await cloud.call(session, 'inviteUser', { email, role: 'admin', sandboxOnly: false })).toMatchObject({
      status: 403,
      body: { reason: 'second_factor_needed' },
    })
    const helper = await invited(email, { role: 'admin' }, session)
    expect(await cloud.ok(helper.session, 'fetchProfile')).toMatchObject({ sandboxOnly: true, mayUseLive: false })
    expect(await cloud.call(helper.session, 'switchMode', { mode: 'live' })).toMatchObject({ status: 403 })
    expect(await cloud.ok(owner, 'switchMode', { mode: 'live' })).toMatchObject({ mode: 'live' })
    expect((await cloud.ok(owner, 'fetchStores')).stores).toEqual([])
    await cloud.ok(owner, 'switchMode', { mode: 'test' })
  })

  it('see and end their sessions, which also end by themselves', async () => {
    const { session } = await invited('tom@shop.example')
    const other = (await signIn('tom@shop.example')).body.sessionToken
    const { sessions } = await cloud.ok(other, 'fetchSessions')
    expect(sessions.map((s: Json) => s.isCurrent)).toEqual([false, true])
    await cloud.ok(other, 'endSessions', { sessionId: sessions[0].sessionId })
    expect((await cloud.call(session, 'fetchProfile')).status).toBe(401)
    await cloud.ok(other, 'endSessions')
    expect((await cloud.call(other, 'fetchProfile')).status).toBe(401)
    const idle = (await signIn('tom@shop.example')).body.sessionToken
    forward(IDLE_MS + 1_000)
    expect((await cloud.call(idle, 'fetchProfile')).status).toBe(401)
    const busy = (await signIn('tom@shop.example')).body.sessionToken
    for (let ms = 0; ms < SESSION_MS - IDLE_MS; ms += IDLE_MS / 2) {
      forward(IDLE_MS / 2)
      expect((await cloud.call(busy, 'fetchProfile')).status).toBe(200)
    }
    forward(IDLE_MS)
    expect((await cloud.call(busy, 'fetchProfile')).status).toBe(401)
    owner = await cloud.user('owner')
  })

  it('change their password, which ends all other sessions', async () => {
    const { session } = await invited('pia@shop.example')
    const other = (await signIn('pia@shop.example')).body.sessionToken
    const next = 'fünf andere Wörter ohne Sinn'
    expect(await cloud.call(session, 'changePassword', { password: 'wrong', newPassword: next })).toMatchObject({
      status: 401,
      body: { reason: 'sign_in_failed' },
    })
    expect(await cloud.ok(session, 'changePassword', { password: PASSWORD, newPassword: next })).toMatchObject({
      endedSessions: 1,
    })
    expect((await cloud.call(other, 'fetchProfile')).status).toBe(401)
    expect((await signIn('pia@shop.example')).status).toBe(401)
    expect((await signIn('pia@shop.example', next)).status).toBe(200)
    await cloud.ok(session, 'signOut')
    expect((await cloud.call(session, 'fetchProfile')).status).toBe(401)
  })

  describe('who share an e-mail address with a user of another account', () => {
    const OTHER = 'sechs fremde Wörter ohne Reim'
    let stranger: string
    beforeAll(async () => (stranger = await cloud.user('owner', { account: 'Nachbar' })))

    async function namesakes(email: string, passwords: { here: string; there: string }): Promise<Json> {
      const there = await cloud.ok(stranger, 'inviteUser', { email, role: 'viewer' })
      await accept(there.url, 'Jana', passwords.there)
      const here = await cloud.ok(owner, 'inviteUser', { email, role: 'admin' })
      await accept(here.url, 'Jana', passwords.here)
      return { here: here.userId, there: there.userId }
    }
    const signInTo = (email: string, account: string, password: string) =>
      call(null, 'signIn', { email, password, account })

    it('sign in with their own password, also after a reset', async () => {
      const email = 'carla@shop.example'
      const users = await namesakes(email, { here: PASSWORD, there: OTHER })
      expect((await signIn(email)).body).toMatchObject({ userId: users.here, role: 'admin' })
      expect((await signIn(email, OTHER)).body).toMatchObject({ userId: users.there, role: 'viewer' })
      const token = await cloud.db.database.write(async (db) => {
        const { account_id: accountId } = await db
          .selectFrom('console_user')
          .select('account_id')
          .where('user_id', '=', users.here)
          .executeTakeFirstOrThrow()
        const person = { accountId, email, name: '', role: 'admin' as const, storeIds: null, sandboxOnly: false }
        return (await invite(db, { ...person, invitedBy: 'command line', mayReplace: true }, platform)).token
      })
      const next = 'acht neue Wörter nach dem Verlust'
      const before = await acceptedMs(users.here)
      forward(1_000)
      expect((await call(null, 'acceptInvitation', { token, name: 'Carla', password: next })).status).toBe(200)
      expect(await acceptedMs(users.here), 'a reset does not renew the acceptance').toBe(before)
      expect((await signIn(email, next)).body).toMatchObject({ userId: users.here })
    })

    const acceptedMs = async (userId: string) =>
      (
        await cloud.db.database.reads
          .selectFrom('console_user')
          .select('accepted_ms')
          .where('user_id', '=', userId)
          .executeTakeFirstOrThrow()
      ).accepted_ms

    it('choose the account if the password fits several, and only then see their names', async () => {
      const email = 'both@shop.example'
      const users = await namesakes(email, { here: PASSWORD, there: PASSWORD })
      const asked = await signIn(email)
      expect(asked).toMatchObject({
        status: 409,
        body: { reason: 'several_accounts', accounts: ['Hafenkante', 'Nachbar'] },
      })
      expect(asked.body).not.toHaveProperty('sessionToken')
      const wrong = await signIn(email, 'wrong')
      expect([wrong.status, wrong.text.includes('Nachbar')]).toEqual([401, false])
      expect((await signInTo(email, 'Hafenkante', PASSWORD)).body).toMatchObject({ userId: users.here })
      expect((await signInTo(email, 'Nachbar', PASSWORD)).body).toMatchObject({ userId: users.there })
    })

    it('do not reset the count of wrong passwords', async () => {
      const email = 'target@shop.example'
      await namesakes(email, { here: PASSWORD, there: OTHER })
      const answers: number[] = []
      for (let round = 0; round < 2; round++) {
        for (let i = 0; i < FAILURE_LIMITS.user - 1; i++)
          answers.push((await signInTo(email, 'Hafenkante', 'wrong')).status)
        answers.push((await signInTo(email, 'Nachbar', OTHER)).status)
      }
      expect(answers.filter((status) => status === 401)).toHaveLength(FAILURE_LIMITS.user)
      expect(await signInTo(email, 'Hafenkante', PASSWORD)).toMatchObject({ status: 429 })
      forward(FAILURE_PERIOD_MS + 1_000)
      expect((await signInTo(email, 'Hafenkante', PASSWORD)).status).toBe(200)
    })

    it('cannot find out a password by choosing it for a user of the same address', async () => {
      const email = 'oracle@shop.example'
      await namesakes(email, { here: PASSWORD, there: OTHER })
      const { sessionToken } = (await signInTo(email, 'Nachbar', OTHER)).body
      const guesses = Array.from({ length: FAILURE_LIMITS.email }, (_, i) => `geratene Wörter ohne Sinn ${i}`)
      let password = OTHER
      for (const newPassword of [...guesses, PASSWORD]) {
        await cloud.ok(sessionToken, 'changePassword', { password, newPassword })
        password = newPassword
        const { status } = await signIn(email, password)
        expect(status).toBe(newPassword === PASSWORD ? 429 : 200)
      }
      forward(FAILURE_PERIOD_MS + 1_000)
      // Who names the account compares no other password.
      for (let i = 0; i <= FAILURE_LIMITS.email; i++)
        expect((await signInTo(email, 'Nachbar', PASSWORD)).status).toBe(200)
    })

    it('do not lock them out with wrong passwords of a signed-in user', async () => {
      const email = 'locked@shop.example'
      await namesakes(email, { here: PASSWORD, there: OTHER })
      const { sessionToken } = (await signIn(email, OTHER)).body
      const change = () => call(sessionToken, 'changePassword', { password: 'wrong', newPassword: PASSWORD })
      for (let i = 0; i < FAILURE_LIMITS.user; i++) expect((await change()).status).toBe(401)
      expect((await change()).status).toBe(429)
      expect((await signIn(email)).status).toBe(200)
    })
  })

  it('have addresses in ASCII, of which only A to Z count as small letters', async () => {
    await invited('mark@shop.example')
    expect((await signIn('MARK@shop.example')).status).toBe(200)
    // U+212A, the sign of the unit kelvin, becomes k in lower case.
    const email = 'mar\u212a@shop.example'
    expect(await signIn(email)).toMatchObject({ status: 400 })
    expect(await call(owner, 'inviteUser', { email, role: 'viewer' })).toMatchObject({ status: 400 })
  })

  it('guess the present password ten times, also at once', async () => {
    const { session } = await invited('burst@shop.example')
    const change = (password: string) =>
      call(session, 'changePassword', { password, newPassword: 'ganz andere Wörter' })
    const wrong = Array.from({ length: FAILURE_LIMITS.user }, (_, i) => change(`wrong ${i}`))
    const statuses = (await Promise.all([...wrong, ...wrong.map((_, i) => change(`false ${i}`))])).map((a) => a.status)
    const compared = statuses.filter((status) => status === 401).length
    expect(compared).toBe(FAILURE_LIMITS.user)
    expect(await change(PASSWORD)).toMatchObject({ status: 429 })
  })

  it('of another account are unknown', async () => {
    const stranger = await cloud.user('owner', { account: 'Fremd' })
    const { userId } = await cloud.ok(owner, 'fetchProfile')
    expect(await cloud.call(stranger, 'removeUser', { userId })).toMatchObject({ status: 404 })
    expect(
      await cloud.call(stranger, 'inviteUser', { email: 'x@y.example', role: 'viewer', storeIds: [stores[0]] }),
    ).toMatchObject({ status: 404 })
    expect((await cloud.ok(stranger, 'fetchUsers')).users).toHaveLength(1)
  })
})
