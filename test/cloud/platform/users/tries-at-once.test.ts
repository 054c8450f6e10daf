import { TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FAILURE_LIMITS, FAILURE_PERIOD_MS } from '../../../../cloud/platform/users/sign-in-operations.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'

const PASSWORD = 'vier Wörter, die niemand rät'
const NEW_PASSWORD = 'ganz andere Wörter, auch lang'
const EMAIL = 'jana@shop.example'
const WRONG = 60

onEveryDatabase('tries of a secret that are sent at once', (kind) => {
  const { platform, forward } = movablePlatform()
  let cloud: TestCloud
  let session: string
  let app: TOTP
  beforeAll(async () => {
    cloud = await startTestCloud(kind, { platform, config: { trustedProxies: ['unknown'] } })
    const owner = await cloud.user('owner')
    const { url } = await cloud.ok(owner, 'inviteUser', { email: EMAIL, role: 'manager' })
    const token = String(url).split('/').at(-1)
    const { body } = await from(0, null, 'acceptInvitation', { token, name: 'Jana', password: PASSWORD })
    session = body.sessionToken
    app = new TOTP({ secret: (await cloud.ok(session, 'beginSecondFactor')).secret })
    await cloud.ok(session, 'confirmSecondFactor', { code: nextCode() })
    forward(60_000)
  })
  afterAll(() => cloud.stop())

  const nextCode = () => app.generate({ timestamp: platform.clock.wall() })
  /** Sends a call from a network of its own. */
  const from = (network: number, key: string | null, name: string, body: object) =>
    cloud.call(key, name, body, { 'x-forwarded-for': `2001:db8:${network.toString(16)}:1::1` })

  /** Sends wrong tries and then the right one. Returns their statuses. */
  async function statusesOf(send: (network: number, isRight: boolean) => ReturnType<typeof from>): Promise<number[]> {
    const sent = Array.from({ length: WRONG + 1 }, (_, n) => send(n, n === WRONG))
    return (await Promise.all(sent)).map(({ status }) => status)
  }

  it('are compared up to the limit: the right code of a sign-in behind it is refused', async () => {
    const { sessionToken } = (await from(0, null, 'signIn', { email: EMAIL, password: PASSWORD })).body
    const right = nextCode()
    const wrong = right === '000000' ? '000001' : '000000'
    const statuses = await statusesOf((network, isRight) =>
      from(network, null, 'confirmSignIn', { sessionToken, code: isRight ? right : wrong }),
    )
    expect(statuses.filter((status) => status === 401)).toHaveLength(FAILURE_LIMITS.user)
    expect(statuses.at(-1)).toBe(429)
    forward(FAILURE_PERIOD_MS + 1_000)
    expect(await from(1, null, 'confirmSignIn', { sessionToken, code: nextCode() })).toMatchObject({ status: 401 })
  })

  it('are compared up to the limit: the right password behind it is refused', async () => {
    forward(FAILURE_PERIOD_MS + 1_000)
    const statuses = await statusesOf((network, isRight) =>
      from(network, null, 'signIn', { email: EMAIL, password: isRight ? PASSWORD : 'wrong' }),
    )
    expect(statuses.filter((status) => status === 401)).toHaveLength(FAILURE_LIMITS.email)
    expect(statuses.at(-1)).toBe(429)
  })

  it('are not counted if nothing was compared', async () => {
    forward(FAILURE_PERIOD_MS + 1_000)
    const { body } = await from(0, null, 'signIn', { email: EMAIL, password: PASSWORD })
    const active = await from(1, null, 'confirmSignIn', { sessionToken: body.sessionToken, code: nextCode() })
    const change = (newPassword: string, password = PASSWORD) =>
      from(1, active.body.sessionToken, 'changePassword', { password, newPassword })
    for (let i = 0; i <= FAILURE_LIMITS.user; i++) expect(await change('password1234')).toMatchObject({ status: 400 })
    expect(await change(NEW_PASSWORD)).toMatchObject({ status: 200 })
  })

  it('are not counted if they were right', async () => {
    forward(FAILURE_PERIOD_MS + 1_000)
    for (let i = 0; i <= FAILURE_LIMITS.email; i++)
      expect(await from(1, null, 'signIn', { email: EMAIL, password: NEW_PASSWORD })).toMatchObject({ status: 200 })
    expect(await cloud.db.database.reads.selectFrom('sign_in_failure').selectAll().execute()).toEqual([])
  })
})
