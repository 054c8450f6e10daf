import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realPlatform } from '../../../../host/platform.ts'
import { networkOf } from '../../../../cloud/platform/foundation/waiting-connections.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'

describe('the network that counts as one caller', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['64:ff9b::203.0.113.7', '64:ff9b:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['unknown', 'unknown'],
    ['', ''],
  ])('of %j is %j', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})

describe('rate limits by address', () => {
  let cloud: TestCloud
  beforeAll(async () => {
    const platform = realPlatform()
    // The clock stops, so that used requests do not become free again.
    cloud = await startTestCloud('sqlite', {
      config: { rateLimit: 50, publishableRateLimit: 10, trustedProxies: ['10.0.0.1'] },
      platform: { ...platform, clock: { ...platform.clock, elapsed: () => 1_000 } },
    })
  })
  afterAll(() => cloud.stop())

  const ask = async (from: string, operation: string, body: object, headers: Record<string, string> = {}) => {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }
    return (
      await cloud.cloud.app.request(`/api/v1/${operation}`, init, { incoming: { socket: { remoteAddress: from } } })
    ).status
  }

  it('cover all addresses of an IPv6 network, directly and through a proxy', async () => {
    const statuses = async (from: (n: number) => [string, Record<string, string>?]) => {
      const all = []
      for (let n = 0; n < 40; n++) {
        const [peer, headers] = from(n)
        all.push(await ask(peer, 'agentLogin', { agentId: 'agt_x' }, headers))
      }
      return all.filter((status) => status === 200).length
    }
    expect(await statuses((n) => [`2001:db8:1:2::${n.toString(16)}`])).toBe(30)
    expect(await statuses((n) => ['10.0.0.1', { 'x-forwarded-for': `2001:db8:1:3:${n.toString(16)}::1` }])).toBe(30)
    expect(await ask('2001:db8:1:4::1', 'agentLogin', { agentId: 'agt_x' })).toBe(200)
  })

  it('count a page of the console as one request, whatever it reads, apart from the API', async () => {
    const cookie = `__Host-untag_session=${await cloud.user('owner')}`
    const statuses: number[] = []
    for (let n = 0; n < 61; n++) statuses.push((await cloud.get('/console?mode=test&store=all', { cookie })).status)
    expect(statuses).toEqual([...Array.from({ length: 60 }, () => 200), 429])
    // Another user is not affected.
    const other = `__Host-untag_session=${await cloud.user('manager')}`
    expect((await cloud.get('/console?mode=test', { cookie: other })).status).toBe(200)
  })

  it('of one shopper do not use up the limit of a publishable key', async () => {
    const authorization = `Bearer ${await cloud.key('publishable')}`
    const look = (from: string) => ask(from, 'fetchStores', {}, { authorization })
    for (let n = 0; n < 4_200; n++) await look('203.0.113.66')
    expect(await look('203.0.113.66')).toBe(429)
    expect(await look('203.0.113.67')).toBe(200)
  })
})
