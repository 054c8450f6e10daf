import { TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { invite } from '../../../../cloud/platform/users/invitations.ts'
import { SoftwareAuthenticator } from '../../../support/authenticator.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'

const PASSWORD = 'vier Wörter, die niemand rät'
const NEXT_PASSWORD = 'fünf andere Wörter ohne Sinn'
const MINUTE = 60_000

/** Changes of credentials in two steps: a person begins, and finishes later. */
const STEPS = ['authenticator app', 'passkey', 'sign-in with a code', 'reset link'] as const
/** What may happen in between, in another session of the user or by an administrator. */
const CHANGES = [
  'confirmSecondFactor',
  'removeSecondFactor',
  'registerPasskey',
  'removePasskey',
  'changePassword',
  'endSessions',
  'updateUser',
  'removeUser',
  'reset',
] as const
type Step = (typeof STEPS)[number]
type Change = (typeof CHANGES)[number]

const NEEDS_APP: ReadonlySet<string> = new Set<Step | Change>(['removeSecondFactor', 'sign-in with a code'])
/** Pairs that cannot occur: a user has at most one authenticator app. */
const isPossible = (step: Step, change: Change) =>
  !(step === 'authenticator app' && change === 'removeSecondFactor') &&
  !(step === 'sign-in with a code' && change === 'confirmSecondFactor')
const PAIRS = STEPS.flatMap((step) =>
  CHANGES.filter((change) => isPossible(step, change)).map((c) => [step, c] as const),
)

inFullSizeOnEveryDatabase('two-step changes of credentials', (kind) => {
  const { platform, forward } = movablePlatform()
  let cloud: TestCloud
  let owner: string
  let people = 0
  beforeAll(async () => {
    cloud = await startTestCloud(kind, { platform })
    owner = await cloud.user('owner')
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  interface Person {
    readonly email: string
    readonly userId: string
    /** Sessions of the user. The first one begins, the other one changes something. */
    readonly sessions: readonly [string, string]
    readonly app: TOTP | undefined
    readonly passkeyId: string | undefined
    signIn(): Promise<string>
  }

  const call: TestCloud['call'] = (...args) => cloud.call(...args)
  const anyone = async (operation: string, body: Json): Promise<Json> => {
    const answer = await call(null, operation, body)
    expect([operation, answer.status, answer.body.error]).toEqual([operation, 200, undefined])
    return answer.body
  }
  const codeOf = (app: TOTP | undefined) => app?.generate({ timestamp: platform.clock.wall() }) ?? ''
  const appOf = ({ secret }: Json) => new TOTP({ secret })
  const tokenOf = (url: string) => url.split('/').at(-1) ?? ''
  const reasonOf = ({ status, body }: { status: number; body: Json }) => [status, body.reason ?? body.code]

  async function registerPasskey(session: string, key = new SoftwareAuthenticator()): Promise<string> {
    const { options } = await cloud.ok(session, 'beginPasskey')
    return (await cloud.ok(session, 'registerPasskey', { name: 'Handy', credential: key.create(options) })).passkeyId
  }

  async function newPerson({ hasApp = false, hasPasskey = false } = {}): Promise<Person> {
    const email = `person-${people++}@shop.example`
    const { url, userId } = await cloud.ok(owner, 'inviteUser', { email, role: 'manager' })
    const { sessionToken } = await anyone('acceptInvitation', { token: tokenOf(url), name: 'Jana', password: PASSWORD })
    const key = new SoftwareAuthenticator()
    const passkeyId = hasPasskey ? await registerPasskey(sessionToken, key) : undefined
    const app = hasApp ? appOf(await cloud.ok(sessionToken, 'beginSecondFactor')) : undefined
    if (app) await cloud.ok(sessionToken, 'confirmSecondFactor', { code: codeOf(app) })
    const signIn = async (): Promise<string> => {
      if (hasPasskey) {
        const { options } = await anyone('beginPasskeySignIn', {})
        return (await anyone('signInWithPasskey', { credential: key.sign(options) })).sessionToken
      }
      const begun = (await anyone('signIn', { email, password: PASSWORD })).sessionToken
      if (!app) return begun
      forward(MINUTE)
      return (await anyone('confirmSignIn', { sessionToken: begun, code: codeOf(app) })).sessionToken
    }
    return { email, userId, app, passkeyId, signIn, sessions: [await signIn(), await signIn()] }
  }

  const reset = async ({ userId, email }: Person): Promise<string> =>
    cloud.db.database.write(async (db) => {
      const { account_id } = await db
        .selectFrom('console_user')
        .select('account_id')
        .where('user_id', '=', userId)
        .executeTakeFirstOrThrow()
      const rights = { role: 'manager' as const, storeIds: null, sandboxOnly: false, invitedBy: 'command line' }
      return (await invite(db, { accountId: account_id, email, name: '', ...rights, mayReplace: true }, platform)).token
    })

  /** Begins a step. The result finishes it in a session. */
  async function begin(step: Step, person: Person): Promise<(session: string) => Promise<unknown[]>> {
    const [session] = person.sessions
    switch (step) {
      case 'authenticator app': {
        const app = appOf(await cloud.ok(session, 'beginSecondFactor'))
        return async (by) => reasonOf(await call(by, 'confirmSecondFactor', { code: codeOf(app) }))
      }
      case 'passkey': {
        const { options } = await cloud.ok(session, 'beginPasskey')
        const credential = new SoftwareAuthenticator().create(options)
        return async (by) => reasonOf(await call(by, 'registerPasskey', { name: 'x', credential }))
      }
      case 'sign-in with a code': {
        forward(MINUTE)
        const { sessionToken } = await anyone('signIn', { email: person.email, password: PASSWORD })
        return async () => reasonOf(await call(null, 'confirmSignIn', { sessionToken, code: codeOf(person.app) }))
      }
      case 'reset link': {
        const token = await reset(person)
        const fields = { token, name: 'Jana', password: PASSWORD }
        return async () => reasonOf(await call(null, 'acceptInvitation', fields))
      }
    }
  }

  async function change(name: Change, person: Person): Promise<unknown> {
    const { userId, app, passkeyId } = person
    // A reset ends the sessions that the person had, and the person signs in again.
    const isOpen = (await call(person.sessions[1], 'fetchProfile')).status === 200
    const session = isOpen ? person.sessions[1] : await person.signIn()
    switch (name) {
      case 'confirmSecondFactor':
        return cloud.ok(session, name, { code: codeOf(appOf(await cloud.ok(session, 'beginSecondFactor'))) })
      case 'removeSecondFactor':
        forward(MINUTE)
        return cloud.ok(session, name, { code: codeOf(app) })
      case 'registerPasskey':
        return registerPasskey(session)
      case 'removePasskey':
        return cloud.ok(session, name, { passkeyId })
      case 'changePassword':
        return cloud.ok(session, name, { password: PASSWORD, newPassword: NEXT_PASSWORD })
      case 'endSessions':
        return cloud.ok(session, name)
      case 'updateUser':
        return cloud.ok(owner, name, { userId, role: 'viewer' })
      case 'removeUser':
        return cloud.ok(owner, name, { userId })
      case 'reset':
        return reset(person)
    }
  }

  const newSession = async ({ email }: Person): Promise<string | undefined> => {
    for (const password of [PASSWORD, NEXT_PASSWORD]) {
      const { status, body } = await call(null, 'signIn', { email, password })
      if (status === 200 && body.state === 'active') return body.sessionToken as string
    }
    return undefined
  }

  /** What a session that signed in again gets: the begun step is gone, or the session lacks the second factor. */
  function refusalAfter(step: 'authenticator app' | 'passkey', name: Change): unknown[] {
    if (name === 'registerPasskey' || name === 'confirmSecondFactor') return [403, 'second_factor_needed']
    return [409, step === 'passkey' ? 'passkey_rejected' : 'second_factor_not_begun']
  }

  it.each(PAIRS)('refuse to finish: %s, after %s', async (step, name) => {
    const person = await newPerson({
      hasApp: NEEDS_APP.has(step) || NEEDS_APP.has(name),
      hasPasskey: name === 'removePasskey',
    })
    const finish = await begin(step, person)
    await change(name, person)
    const [first] = person.sessions
    if (step === 'sign-in with a code') return expect(await finish(first)).toEqual([401, 'sign_in_failed'])
    if (step === 'reset link') {
      // An administrator who changes the rights, or sessions that end, do not withdraw a link.
      const isLeft = name === 'updateUser' || name === 'endSessions'
      return expect(await finish(first)).toEqual(isLeft ? [200, undefined] : [404, 'not-found'])
    }
    expect((await finish(first))[0], 'the session has ended').toBe(401)
    const again = await newSession(person)
    if (again !== undefined) expect(await finish(again)).toEqual(refusalAfter(step, name))
    else expect(['confirmSecondFactor', 'removeUser']).toContain(name)
  })

  it.each(['authenticator app', 'passkey'] as const)('belong to one session, for 10 minutes: %s', async (step) => {
    const gone = [409, step === 'passkey' ? 'passkey_rejected' : 'second_factor_not_begun']
    const person = await newPerson()
    const [first, second] = person.sessions
    const finish = await begin(step, person)
    expect(await finish(second), 'in another session').toEqual(gone)
    forward(10 * MINUTE)
    expect(await finish(first), 'too late').toEqual(gone)
    expect((await (await begin(step, person))(first))[0]).toBe(200)
  })

  it.each([
    ['authenticator app', 'registerPasskey'],
    ['authenticator app', 'changePassword'],
    ['passkey', 'confirmSecondFactor'],
    ['passkey', 'changePassword'],
  ] as const)('are also cleared by a change in the same session: %s, %s', async (step, name) => {
    const person = await newPerson()
    const [first] = person.sessions
    const finish = await begin(step, person)
    await change(name, { ...person, sessions: [first, first] })
    expect(await finish(first)).toEqual([409, step === 'passkey' ? 'passkey_rejected' : 'second_factor_not_begun'])
  })

  it('need the right of the person who invited also when the invitation is accepted', async () => {
    const asks = async (by: string, email: string): Promise<Json> => {
      const { url, userId } = await cloud.ok(by, 'inviteUser', { email, role: 'manager' })
      const fields = { token: tokenOf(url), name: 'Kim', password: PASSWORD }
      return { userId, accept: async () => reasonOf(await call(null, 'acceptInvitation', fields)) }
    }
    const [removed, lowered, limited] = [await newPerson(), await newPerson(), await newPerson()]
    const first = await asks(removed.sessions[0], 'invited-1@shop.example')
    const second = await asks(lowered.sessions[0], 'invited-2@shop.example')
    const third = await asks(limited.sessions[0], 'invited-3@shop.example')
    const kept = await asks(limited.sessions[0], 'invited-4@shop.example')
    await cloud.ok(owner, 'removeUser', { userId: removed.userId })
    await cloud.ok(owner, 'updateUser', { userId: lowered.userId, role: 'associate' })
    const { stores } = await cloud.ok(owner, 'fetchStores')
    await cloud.ok(owner, 'updateUser', { userId: limited.userId, storeIds: [stores[0].storeId] })
    for (const { accept } of [first, second, third]) expect(await accept()).toEqual([404, 'not-found'])
    // An administrator who sets the rights takes the invitation over.
    await cloud.ok(owner, 'updateUser', { userId: kept.userId, role: 'admin' })
    expect(await kept.accept()).toEqual([200, undefined])
  })
})
