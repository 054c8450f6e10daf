import { afterAll, beforeAll, expect, it } from 'vitest'
import { BrokerClaims } from '../../../../policy/documents/broker-document.ts'
import { decodeUnverifiedClaims } from '../../../../policy/documents/signed-document.ts'
import {
  AGENT_TOPICS,
  agentTopic,
  mayPublish,
  maySubscribe,
  STORE_TOPICS,
  storeTopic,
} from '../../../../policy/mqtt-topics.ts'
import type { Json } from '../../../support/cloud.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

const SECRET = 'secret-of-the-broker-0123456789'
const CLOUD = { username: 'untag-cloud', password: 'p@ss/word' }
let shop: Shop
let agent: TestAgent
let other: TestAgent
let password: string

beforeAll(async () => {
  const config = { mqttUrl: 'mqtts://emqx.example:8883', outsideBroker: { logins: { secret: SECRET, cloud: CLOUD } } }
  shop = await openShop('sqlite', { config })
  agent = await enrolTestAgent(shop)
  other = await enrolTestAgent(shop)
  password = await passwordOf(agent)
})
afterAll(() => shop.stop())

/** The password from the signed document of the agent. */
async function passwordOf({ call }: TestAgent): Promise<string> {
  const { body } = await call('fetchSignedDocuments', { broker: '' })
  return BrokerClaims.parse(decodeUnverifiedClaims(body.broker)).password ?? ''
}

/** Sends a request as EMQX 5 does with the configuration of docs/guides/brokers.md. */
async function ask(body: unknown, headers: Record<string, string> = {}): Promise<{ status: number; body: Json }> {
  const response = await shop.cloud.cloud.app.request('/broker/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${SECRET}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Json }
}
const loginOf = ({ agentId }: TestAgent, more: Json = {}) => ({
  username: agentId,
  password,
  clientid: agentId,
  ...more,
})
const DENIED = { status: 200, body: { result: 'deny' } }

/** True if EMQX would permit this by the rules of the answer. */
function isAllowed(acl: Json[], action: string, topic: string): boolean {
  const rule = acl.find((each) => {
    const prefix = String(each.topic).replace(/#$/, '')
    const matches = String(each.topic).endsWith('#') ? topic.startsWith(prefix) : topic === each.topic
    return matches && (each.action === 'all' || each.action === action)
  })
  return rule?.permission === 'allow'
}

it('admits an agent with the rights that the embedded broker gives it, for a day', async () => {
  const { status, body } = await ask(loginOf(agent))
  expect([status, body.result, body.is_superuser]).toEqual([200, 'allow', false])
  expect(body.expire_at - shop.cloud.platform.clock.wall() / 1_000).toBeCloseTo(86_400, -1)
  const address = { agentId: agent.agentId, storeId: shop.storeId }
  const stores = [shop.storeId, 'st_other', '+']
  const topics = ['#', 'untag/#', '$SYS/#', 'untag/v1/cloud/x/alive', '$share/g/untag/v1/+/+/events']
  for (const storeId of stores) {
    for (const name of STORE_TOPICS) topics.push(storeTopic(storeId, name))
    for (const agentId of [agent.agentId, other.agentId, '+', '#'])
      for (const name of AGENT_TOPICS) topics.push(agentTopic(storeId, agentId, name))
  }
  for (const topic of topics) {
    expect([topic, isAllowed(body.acl, 'publish', topic)]).toEqual([topic, mayPublish(address, topic)])
    expect([topic, isAllowed(body.acl, 'subscribe', topic)]).toEqual([topic, maySubscribe(address, topic)])
  }
})

it('admits the cloud with the login of --mqtt-url', async () => {
  const clientid = 'untag-cloud-0123456789abcdef'
  const { body } = await ask({ ...CLOUD, clientid })
  expect(body.acl).toEqual([
    { permission: 'allow', action: 'all', topic: 'untag/v1/#' },
    { permission: 'deny', action: 'all', topic: '#' },
  ])
  expect(await ask({ ...CLOUD, clientid, password })).toEqual(DENIED)
  expect(await ask({ ...CLOUD, clientid: agent.agentId })).toEqual(DENIED)
})

it('denies wrong passwords, other client ids, unknown names and wrong types', async () => {
  const wrong: Json[] = [
    { password: 'wrong' },
    { password: '' },
    { password: [password] },
    { password: null },
    { clientid: other.agentId },
    { clientid: '' },
    { clientid: { $ne: '' } },
    { username: other.agentId, clientid: other.agentId },
    { username: 'agt_06H0JCJ0000000000000000000', clientid: 'agt_06H0JCJ0000000000000000000' },
    { username: "' OR 1=1 --", clientid: "' OR 1=1 --" },
    { username: '__proto__', clientid: '__proto__' },
    { username: 'undefined', clientid: 'undefined', password: 'undefined' },
    { username: 'ä'.repeat(500), clientid: 'ä'.repeat(500) },
  ]
  for (const more of wrong) expect(await ask(loginOf(agent, more))).toEqual(DENIED)
  expect(await ask({})).toEqual(DENIED)
})

it('denies a revoked agent at once', async () => {
  const login = { ...loginOf(other), password: await passwordOf(other) }
  expect((await ask(login)).body.result).toBe('allow')
  await shop.ok('revokeAgent', { agentId: other.agentId })
  expect(await ask(login)).toEqual(DENIED)
})

it('answers only a broker with the secret, and refuses other bodies', async () => {
  for (const authorization of ['', 'Bearer', 'Bearer wrong', `Basic ${SECRET}`, `Bearer ${SECRET}x`])
    expect(await ask(loginOf(agent), { authorization })).toMatchObject({
      status: 401,
      body: { code: 'unauthenticated' },
    })
  expect((await ask('{')).status).toBe(400)
  expect((await ask('[]')).status).toBe(400)
  expect((await ask(`{"username":"${'x'.repeat(5_000)}"}`)).status).toBe(413)
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  expect((await ask(`username=${agent.agentId}`, form)).status).toBe(415)
})

it('does not exist for other brokers', async () => {
  const plain = await openShop('sqlite', { config: { outsideBroker: {} } })
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' }
  const response = await plain.cloud.cloud.app.request('/broker/login', { method: 'POST', headers, body: '{}' })
  expect(response.status).toBe(404)
  await plain.stop()
})
