import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'

describe('pages of the cloud', () => {
  let cloud: TestCloud
  beforeAll(async () => {
    cloud = await startTestCloud('sqlite')
  })
  afterAll(() => cloud.stop())

  const get = (path: string) => cloud.cloud.app.request(path, { headers: { accept: 'text/html' } })

  it.each(['/docs', '/console', '/r/nothing', '/nothing'])(
    'have an icon that their policy allows: %s',
    async (path) => {
      const answer = await get(path)
      const href = /<link rel="icon" href="([^"]+)"/.exec(await answer.text())?.[1] ?? ''
      const icon = await get(href)
      expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
      expect(answer.headers.get('content-security-policy')).toMatch(/img-src 'self'/)
    },
  )

  it('lead from the bare host to the console, whose sign-in page leads to the reference', async () => {
    const target = async (headers: Record<string, string>) =>
      (await cloud.cloud.app.request('/', { headers })).headers.get('location')
    expect(await target({})).toBe('/console')
    expect(await (await get('/console')).text()).toContain('href="/docs"')
    expect(await target({ cookie: '__Host-untag_session=untag_us_x' })).toBe('/console')
  })

  it('have a /favicon.ico, and the same addresses with a slash at the end', async () => {
    expect((await get('/favicon.ico')).status).toBe(200)
    for (const path of ['/docs', '/console']) {
      const answer = await get(`${path}/`)
      expect([answer.status, answer.headers.get('location')]).toEqual([308, path])
    }
  })
})
