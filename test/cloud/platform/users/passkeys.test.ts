import { TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { passkeySiteOf } from '../../../../cloud/platform/users/console-address.ts'
import { invite } from '../../../../cloud/platform/users/invitations.ts'
import { CHALLENGE_MS, pruneChallenges, PASSKEYS_LIMIT } from '../../../../cloud/platform/users/passkeys.ts'
import { FAILURE_LIMITS } from '../../../../cloud/platform/users/sign-in-operations.ts'
import { SoftwareAuthenticator, type Faults } from '../../../support/authenticator.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'

const PASSWORD = 'vier Wörter, die niemand rät'

onEveryDatabase('passkeys', (kind) => {
  const { platform, forward } = movablePlatform()
  let cloud: TestCloud
  let owner: string
  beforeAll(async () => {
    cloud = await startTestCloud(kind, { platform })
    owner = await cloud.user('owner')
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  const refusal = async (answer: ReturnType<TestCloud['call']>) => {
    const { status, body } = await answer
    return [status, body.reason]
  }
  const FAILED = [401, 'sign_in_failed']

  const call: TestCloud['call'] = (...args) => cloud.call(...args)
  const anyone = async (operation: string, body: Json = {}): Promise<Json> => {
    const answer = await call(null, operation, body)
    expect([operation, answer.status]).toEqual([operation, 200])
    return answer.body
  }

  /** Accepts an invitation with a password. */
  async function invited(email: string, role = 'manager', by = owner): Promise<{ userId: string; session: string }> {
    const { url, userId } = await cloud.ok(by, 'inviteUser', { email, role })
    const token = url.split('/').at(-1)
    const { sessionToken } = await anyone('acceptInvitation', { token, name: 'Jana', password: PASSWORD })
    return { userId, session: sessionToken }
  }
  async function register(session: string, name = 'Handy'): Promise<{ key: SoftwareAuthenticator; passkeyId: string }> {
    const key = new SoftwareAuthenticator()
    const { options } = await cloud.ok(session, 'beginPasskey')
    const { passkeyId } = await cloud.ok(session, 'registerPasskey', { name, credential: key.create(options) })
    return { key, passkeyId }
  }
  const challenge = async () => (await anyone('beginPasskeySignIn')).options
  const send = (credential: Json) => call(null, 'signInWithPasskey', { credential, device: 'Firefox' })
  const signIn = async (key: SoftwareAuthenticator, faults: Faults = {}) => send(key.sign(await challenge(), faults))

  it('are registered, listed, and sign an owner in with a second factor', async () => {
    const { session, userId } = await invited('chef@shop.example', 'owner')
    expect(await cloud.ok(session, 'fetchProfile')).toMatchObject({ mayUseLive: false })
    const { options } = await cloud.ok(session, 'beginPasskey')
    expect(options).toMatchObject({ rp: { id: 'shop.example' }, user: { name: 'chef@shop.example' } })
    const { key } = await register(session)
    expect(await cloud.ok(session, 'fetchProfile')).toMatchObject({ mayUseLive: true, hasAuthenticatorApp: false })
    const { body } = await signIn(key)
    expect(body).toMatchObject({ state: 'active', userId, role: 'owner' })
    expect(await cloud.ok(body.sessionToken, 'fetchProfile')).toMatchObject({ mayUseLive: true, hasSecondFactor: true })
    const listed = await cloud.ok(body.sessionToken, 'fetchPasskeys')
    expect(listed).toMatchObject({ available: true, passkeys: [{ name: 'Handy', backedUp: true }] })
    expect(listed.passkeys[0].lastUsedAt).toBeDefined()
    const log = await cloud.ok(owner, 'fetchAuditLog', { entityId: userId })
    expect(log.entries.map((e: Json) => e.operation).slice(-3)).toEqual([
      'beginPasskey',
      'registerPasskey',
      'signInWithPasskey',
    ])
  })

  it('sign in without the code of an authenticator app', async () => {
    const { session } = await invited('both@shop.example')
    const { secret } = await cloud.ok(session, 'beginSecondFactor')
    const code = new TOTP({ secret }).generate({ timestamp: platform.clock.wall() })
    await cloud.ok(session, 'confirmSecondFactor', { code })
    const { key } = await register(session)
    expect((await signIn(key)).body.state).toBe('active')
    const { body } = await call(null, 'signIn', { email: 'both@shop.example', password: PASSWORD })
    expect(body.state).toBe('pending')
  })

  it.each<[string, Faults]>([
    ['another origin', { origin: 'https://evil.example' }],
    ['another site', { rpId: 'evil.example' }],
    ['a user who was not verified', { isVerified: false }],
    ['a frame in a page of another origin', { topOrigin: 'https://evil.example' }],
    ['a frame in a page without an origin', { topOrigin: null }],
    ['another key', { credentialId: 'AAAA' }],
  ])('refuse a response with %s, with the same text', async (what, faults) => {
    const { session } = await invited(`${what.replaceAll(' ', '-')}@shop.example`)
    const { key } = await register(session)
    expect(await refusal(signIn(key, faults))).toEqual(FAILED)
    const { options } = await cloud.ok(session, 'beginPasskey')
    const credential = { ...new SoftwareAuthenticator().create(options, faults) }
    if (faults.credentialId !== undefined) credential['id'] = faults.credentialId
    expect(await refusal(call(session, 'registerPasskey', { name: 'x', credential }))).toEqual([
      409,
      'passkey_rejected',
    ])
    const [wrong, unknown] = [await signIn(key, { isVerified: false }), await signIn(key, { credentialId: 'BBBB' })]
    expect({ ...wrong.body, requestId: '' }).toEqual({ ...unknown.body, requestId: '' })
    expect((await signIn(key)).status).toBe(200)
  })

  it('refuse a challenge that was used or has expired', async () => {
    const { session } = await invited('challenge@shop.example')
    const { key } = await register(session)
    const used = await challenge()
    expect((await send(key.sign(used))).status).toBe(200)
    expect(await refusal(send(key.sign(used)))).toEqual(FAILED)
    const expired = await challenge()
    const { session: other } = await invited('challenge-2@shop.example')
    const { options } = await cloud.ok(other, 'beginPasskey')
    const rejected = [409, 'passkey_rejected']
    const registration = (by: string, of: Json) =>
      refusal(call(by, 'registerPasskey', { name: 'x', credential: new SoftwareAuthenticator().create(of) }))
    expect(await registration(session, options), 'the challenge of another user').toEqual(rejected)
    expect(await registration(session, { ...options, challenge: (await challenge()).challenge })).toEqual(rejected)
    const own = { rpId: 'shop.example', challenge: options.challenge }
    expect(await refusal(send(key.sign(own))), 'the challenge of a registration').toEqual(FAILED)
    forward(CHALLENGE_MS + 1_000)
    expect(await refusal(send(key.sign(expired)))).toEqual(FAILED)
    expect(await registration(other, options)).toEqual(rejected)
    await cloud.db.database.write((db) => pruneChallenges(db, platform.clock.wall()))
    const left = await cloud.db.database.reads.selectFrom('used_challenge').selectAll().execute()
    expect(left).toHaveLength(0)
    const sealed = (await challenge()).challenge as string
    const forged = { ...used, challenge: `${sealed.slice(0, -6)}AAAAAA` }
    expect(await refusal(send(key.sign(forged)))).toEqual(FAILED)
  })

  it('refuse the key of another user, and a key that is registered already', async () => {
    const [first, second] = [await invited('first@shop.example'), await invited('second@shop.example')]
    const { key } = await register(first.session)
    const handle = Buffer.from(second.userId).toString('base64url')
    expect(await refusal(signIn(key, { userHandle: handle }))).toEqual(FAILED)
    const { key: other } = await register(second.session)
    expect(await refusal(signIn(other, { credentialId: key.id })), 'a signature of another key').toEqual(FAILED)
    const { options } = await cloud.ok(second.session, 'beginPasskey')
    expect(options.excludeCredentials.map((c: Json) => c.id)).toEqual([other.id])
    const credential = other.create(options)
    expect(await refusal(call(second.session, 'registerPasskey', { name: 'x', credential }))).toEqual([
      409,
      'passkey_exists',
    ])
  })

  it('refuse an attestation with certificates', async () => {
    const { session } = await invited('certificates@shop.example')
    const { options } = await cloud.ok(session, 'beginPasskey')
    const attStmt = new Map<string, unknown>([['x5c', [new Uint8Array([1])]]])
    const credential = new SoftwareAuthenticator().create(options, { attestation: { fmt: 'packed', attStmt } })
    expect(await refusal(call(session, 'registerPasskey', { name: 'x', credential }))).toEqual([
      409,
      'passkey_rejected',
    ])
  })

  it('refuse a counter that does not rise', async () => {
    const { key } = await register((await invited('counter@shop.example')).session)
    expect((await signIn(key, { counter: 7 })).status).toBe(200)
    expect(await refusal(signIn(key, { counter: 7 }))).toEqual(FAILED)
    expect(await refusal(signIn(key, { counter: 3 }))).toEqual(FAILED)
    expect((await signIn(key, { counter: 8 })).status).toBe(200)
  })

  it('are locked out after too many failures', async () => {
    const { key } = await register((await invited('locked@shop.example')).session)
    for (let i = 0; i < FAILURE_LIMITS.user; i++) expect((await signIn(key, { isVerified: false })).status).toBe(401)
    expect(await refusal(signIn(key))).toEqual([429, 'too_many_sign_ins'])
  })

  it('are changed only by a session with a second factor', async () => {
    const email = 'factor@shop.example'
    const { session } = await invited(email, 'owner')
    const { key, passkeyId } = await register(session)
    const { sessionToken: weak } = await anyone('signIn', { email, password: PASSWORD })
    expect(await cloud.ok(weak, 'fetchProfile')).toMatchObject({ mayUseLive: false })
    for (const [name, body] of [
      ['beginPasskey', {}] as const,
      ['removePasskey', { passkeyId }] as const,
      ['beginSecondFactor', {}] as const,
      ['changePassword', { password: PASSWORD, newPassword: 'fünf andere Wörter ohne Sinn' }] as const,
    ])
      expect(await refusal(call(weak, name, body))).toEqual([403, 'second_factor_needed'])
    const { sessionToken: strong } = (await signIn(key)).body
    const { passkeyId: second } = await register(strong, 'Laptop')
    expect((await call(weak, 'fetchProfile')).status, 'a registration ends other sessions').toBe(401)
    await cloud.ok(strong, 'removePasskey', { passkeyId: second })
    expect(await cloud.ok(strong, 'fetchProfile')).toMatchObject({ hasSecondFactor: true })
    await cloud.ok(strong, 'removePasskey', { passkeyId })
    expect((await call(strong, 'fetchProfile')).status, 'the last second factor ends all sessions').toBe(401)
    expect(await refusal(signIn(key))).toEqual(FAILED)
  })

  it('end with the user, and with a new invitation of the user', async () => {
    const { session, userId } = await invited('leaver@shop.example')
    const { key } = await register(session)
    await cloud.ok(session, 'beginPasskey')
    await cloud.ok(owner, 'removeUser', { userId })
    expect(await refusal(signIn(key))).toEqual(FAILED)
    const { reads } = cloud.db.database
    for (const table of ['user_passkey', 'user_session'] as const)
      expect(await reads.selectFrom(table).selectAll().where('user_id', '=', userId).execute()).toEqual([])

    const email = 'lost@shop.example'
    const lost = await invited(email)
    const { key: lostKey } = await register(lost.session)
    const { accountId } = (await cloud.db.database.reads
      .selectFrom('console_user')
      .select('account_id as accountId')
      .where('user_id', '=', lost.userId)
      .executeTakeFirstOrThrow()) as { accountId: string }
    const rights = { role: 'manager', storeIds: null, sandboxOnly: false, invitedBy: 'test', mayReplace: true } as const
    const { token } = await cloud.db.database.write((db) =>
      invite(db, { accountId, email, name: 'Jana', ...rights }, platform),
    )
    await anyone('acceptInvitation', { token, name: 'Jana', password: PASSWORD })
    expect(await refusal(signIn(lostKey))).toEqual(FAILED)
  })

  it('are at most 10 for each user', async () => {
    const { session } = await invited('many@shop.example')
    for (let i = 0; i < PASSKEYS_LIMIT; i++) await register(session)
    expect(await refusal(call(session, 'beginPasskey'))).toEqual([409, 'too_many_passkeys'])
  })

  it('take no room before a sign-in succeeded, so that visitors cannot use it up', async () => {
    const { key } = await register((await invited('room@shop.example')).session)
    const { reads } = cloud.db.database
    const used = async () => (await reads.selectFrom('used_challenge').selectAll().execute()).length
    const before = await used()
    const options = await challenge()
    for (let i = 0; i < 20; i++) await challenge()
    for (const faults of [{ isVerified: false }, { credentialId: 'CCCC' }])
      expect(await refusal(send(key.sign(options, faults)))).toEqual(FAILED)
    expect(await used()).toBe(before)
    const credential = key.sign(options)
    expect((await send(credential)).status, 'a wrong response does not use the challenge up').toBe(200)
    expect(await used()).toBe(before + 1)
    expect(await refusal(send(credential))).toEqual(FAILED)
  })

  it('belong to one user of one account, although the person is a user of two', async () => {
    const stranger = await cloud.user('owner', { account: 'Fremd' })
    const email = 'two@shop.example'
    const [here, there] = [await invited(email), await invited(email, 'viewer', stranger)]
    const [a, b] = [await register(here.session), await register(there.session)]
    expect((await signIn(a.key)).body).toMatchObject({ userId: here.userId, role: 'manager' })
    expect((await signIn(b.key)).body).toMatchObject({ userId: there.userId, role: 'viewer' })
    expect((await call(there.session, 'removePasskey', { passkeyId: a.passkeyId })).status).toBe(404)
    expect((await cloud.ok(here.session, 'fetchPasskeys')).passkeys).toHaveLength(1)
  })
})

describe('the site of passkeys', () => {
  it.each([
    ['https://shop.example:8443', { id: 'shop.example', origin: 'https://shop.example:8443' }],
    ['http://127.0.0.1:8080', { id: 'localhost', origin: 'http://localhost:8080' }],
    ['http://localhost:8080', { id: 'localhost', origin: 'http://localhost:8080' }],
    ['http://shop.example', undefined],
    ['https://192.168.1.5', undefined],
    ['https://[fd00::1]', undefined],
  ])('of %s', (baseUrl, site) => expect(passkeySiteOf({ baseUrl })).toEqual(site))
})

describe('passkeys at an address where browsers allow none', () => {
  it('answer 409 with a reason', async () => {
    const cloud = await startTestCloud('sqlite', { config: { baseUrl: 'http://192.168.1.5:8080/api/v1' } })
    const session = await cloud.user('owner')
    const { call } = cloud
    for (const [key, name] of [[session, 'beginPasskey'] as const, [null, 'beginPasskeySignIn'] as const])
      expect(await call(key, name)).toMatchObject({ status: 409, body: { reason: 'passkeys_unavailable' } })
    expect(await cloud.ok(session, 'fetchPasskeys')).toMatchObject({ available: false })
    await cloud.stop()
  })
})
