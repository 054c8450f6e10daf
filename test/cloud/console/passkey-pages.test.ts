import { afterAll, beforeAll, expect, it } from 'vitest'
import { SoftwareAuthenticator } from '../../support/authenticator.ts'
import { startTestCloud, type TestCloud } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'

const ORIGIN = 'https://shop.example'

onEveryDatabase('passkeys in the console', (kind) => {
  let cloud: TestCloud
  let cookie: string
  const key = new SoftwareAuthenticator()
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    cookie = `__Host-untag_session=${await cloud.user('owner')}`
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  const send = async (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    cloud.cloud.app.request(`${ORIGIN}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        host: 'shop.example',
        origin: ORIGIN,
        ...headers,
      },
      body: new URLSearchParams(fields).toString(),
    })
  const profile = async () => (await cloud.get('/console/profile?lang=en', { cookie })).text
  async function act(action: string, fields: Record<string, string>, id = action): Promise<Response> {
    const text = await profile()
    const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''
    const hidden = Object.fromEntries(['_csrf', '_mode', '_store'].map((name) => [name, field(name)]))
    return send('/console/profile', { ...hidden, _action: action, _form: id, ...fields }, { cookie })
  }
  const unescape = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&')

  it('are added in two steps, shown in the profile, and removed', async () => {
    const begun = await (await act('beginPasskey', {})).text()
    const options = JSON.parse(unescape(/data-options="([^"]*)"/.exec(begun)?.[1] ?? ''))
    expect(options).toMatchObject({ rp: { id: 'shop.example' }, attestation: 'none' })
    const credential = JSON.stringify(key.create(options, { isVerified: false }))
    const rejected = await act('registerPasskey', { name: 'Handy', credential })
    expect([rejected.status, await rejected.text()]).toEqual([
      409,
      expect.stringContaining('The passkey was not added'),
    ])
    const next = JSON.parse(
      unescape(/data-options="([^"]*)"/.exec(await (await act('beginPasskey', {})).text())?.[1] ?? ''),
    )
    expect((await act('registerPasskey', { name: 'Handy', credential: JSON.stringify(key.create(next)) })).status).toBe(
      303,
    )
    const shown = await profile()
    for (const text of ['Handy', 'not used yet', 'copied to your other devices']) expect(shown).toContain(text)
    expect(shown, 'hidden until the script shows it').toMatch(/data-passkey="begin" hidden/)
  })

  it('sign in by a form that a script fills, and return to the page', async () => {
    const page = (await cloud.get('/console/agents')).text
    expect(page).toMatch(/data-passkey="get" data-origin="https:\/\/shop\.example" hidden/)
    const { call } = cloud
    const { body } = await call(null, 'beginPasskeySignIn')
    const credential = JSON.stringify(key.sign(body.options))
    const answer = await send('/console/sign-in/passkey', { credential, to: '/console/agents' })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/console/agents'])
    const session = (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    expect((await cloud.get('/console', { cookie: session })).text).not.toContain('name="password"')
    const again = await send('/console/sign-in/passkey?lang=de', { credential, to: '/console/agents' })
    const text = await again.text()
    expect([again.status, again.headers.get('set-cookie')?.includes('untag_us_') ?? false]).toEqual([401, false])
    expect(text).toContain('Dieser Passkey ist unbekannt')
    expect(text).toContain('value="/console/agents"')
    for (const broken of ['', '{', '[]'])
      expect((await send('/console/sign-in/passkey', { credential: broken })).status).toBe(400)
    expect((await send('/console/sign-in/passkey', { credential }, { origin: 'https://evil.example' })).status).toBe(
      403,
    )
  })

  it('removes a passkey, and htmx loads the sign-in page when that ends the session', async () => {
    const passkeyId = /psk_\w+/.exec(await profile())?.[0] ?? ''
    expect((await act('removePasskey', { passkeyId })).status).toBe(303)
    const part = await cloud.get('/console/profile', { cookie, 'hx-request': 'true' })
    expect([part.status, part.headers.get('hx-redirect'), part.text]).toEqual([
      200,
      '/console/sign-in?to=%2Fconsole%2Fprofile&ended',
      '',
    ])
  })
})

it('the console offers no passkeys at an address where browsers allow none', async () => {
  const cloud = await startTestCloud('sqlite', { config: { baseUrl: 'http://192.168.1.5:8080/api/v1' } })
  expect((await cloud.get('/console/sign-in')).text).not.toContain('data-passkey')
  const cookie = `untag_session=${await cloud.user('owner')}`
  const profile = (await cloud.get('/console/profile', { cookie })).text
  expect([profile.includes('id="name"'), profile.includes('data-passkey')]).toEqual([true, false])
  await cloud.stop()
})
