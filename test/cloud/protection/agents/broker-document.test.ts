import { afterAll, beforeAll, expect, it } from 'vitest'
import { BrokerClaims, brokerVersion } from '../../../../policy/documents/broker-document.ts'
import { decodeUnverifiedClaims } from '../../../../policy/documents/signed-document.ts'
import type { Json } from '../../../support/cloud.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

let shop: Shop
let agents: TestAgent[]
beforeAll(async () => {
  const config = { mqttUrl: 'mqtts://broker.example:8883', outsideBroker: { ca: 'PEM' } }
  shop = await openShop('sqlite', { config })
  agents = [await enrolTestAgent(shop), await enrolTestAgent(shop)]
})
afterAll(() => shop.stop())

const brokerOf = async (agent: TestAgent, have?: string): Promise<Json> => {
  const { body } = await agent.call('fetchSignedDocuments', have === undefined ? {} : { broker: have })
  return body.broker && BrokerClaims.parse(decodeUnverifiedClaims(body.broker))
}

it('gives each agent its own password for an outside broker, and the same one again', async () => {
  const [first, second] = [await brokerOf(agents[0]!, ''), await brokerOf(agents[1]!, '')]
  expect(first).toMatchObject({ url: 'mqtts://broker.example:8883', username: agents[0]!.agentId, ca: 'PEM' })
  expect(first.password).toMatch(/^[\w-]{32}$/)
  expect(second.password).not.toBe(first.password)
  expect((await brokerOf(agents[0]!, 'old')).password).toBe(first.password)
})

it('sends no document that the agent has, and none to agents that do not ask', async () => {
  const { aud: _aud, iat: _iat, exp: _exp, ...access } = await brokerOf(agents[0]!, '')
  expect(await brokerOf(agents[0]!, brokerVersion(access))).toBeUndefined()
  expect(await brokerOf(agents[0]!)).toBeUndefined()
})
