import { afterEach, beforeEach, expect, it } from 'vitest'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import { createCloud, type Cloud } from '../../../../cloud/cloud.ts'
import type { SiblingMessage, Siblings } from '../../../../cloud/platform/foundation/ports.ts'
import { CONNECTED_MS } from '../../../../cloud/service/messaging/agent-messages.ts'
import type { Json } from '../../../support/cloud.ts'
import { stopInVirtualTime } from '../../../support/receiver.ts'
import { openStore, type TestStore } from '../../../support/store.ts'

/**
 * A push arrives within this time, ms of virtual time. The agent polls every 15 s, and jobs of the cloud run every 2 s.
 */
const AT_ONCE_MS = 200
/** Time after which all polls and jobs of the start have run, ms. No poll or job is due in the next second. */
const QUIET_MS = 5_000

/** The connections of two workers to each other, as the primary process provides them. */
function twoSiblings(): [Siblings, Siblings] {
  const handlers: ((message: SiblingMessage) => void)[][] = [[], []]
  const sibling = (own: 0 | 1): Siblings => ({
    send: (message) => handlers[1 - own]!.forEach((handle) => handle(message)),
    subscribe: (handle) => void handlers[own]!.push(handle),
  })
  return [sibling(0), sibling(1)]
}

let store: TestStore
/** A worker without the broker, on the database of the store's cloud. */
let worker: Cloud

beforeEach(async () => {
  const [holder, other] = twoSiblings()
  store = await openStore({ broker: true, others: { siblings: holder } })
  const { cloud } = store.shop
  const { config, log, images, outgoing } = cloud.cloud.services
  worker = await createCloud({
    config,
    log,
    images,
    outgoing,
    platform: store.world,
    database: cloud.db.database,
    keyFiles: await loadKeyFiles(keysOf(cloud.keyFolder), secretFiles, store.world.random),
    others: { siblings: other, isBrokerElsewhere: () => true },
  })
  const endMs = store.world.clock.elapsed() + QUIET_MS
  await store.until('quiet', () => store.world.clock.elapsed() >= endMs)
})
afterEach(async () => {
  await stopInVirtualTime(worker, store.world)
  await store.stop()
})

/** Calls an operation at the worker without the broker. */
async function call(operation: string, body: Json): Promise<Json> {
  const response = await worker.app.request(`/api/v1/${operation}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${store.shop.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as Json
  expect([operation, response.status, answer]).toMatchObject([operation, 200, {}])
  return answer
}

it('a worker without the broker sends changed documents to agents at once', async () => {
  const { storeId } = store.shop
  const before = store.agent.status().policyVersion
  const { policy } = await call('fetchProtectionPolicy', { storeId })
  await call('updateProtectionPolicy', { storeId, policy: { ...policy, requiresManualOverrideAboveValue: 77 } })
  await store.until('the policy', () => store.agent.status().policyVersion !== before, AT_ONCE_MS)
})

it('a worker without the broker sends commands to agents at once', async () => {
  let polls = 0
  store.onFetch((url) => {
    if (url.endsWith('/fetchSignedDocuments')) polls++
    return true
  })
  const { storeId, agentId } = store.identity
  worker.services.agents.sendCommand({ storeId, agentId }, { command: 'sync' })
  await store.until('a poll', () => polls > 0, AT_ONCE_MS)
})

it('a worker without the broker revokes an agent at once', async () => {
  await call('revokeAgent', { agentId: store.identity.agentId })
  await store.until('the revocation', () => !store.agent.link.isOnline, AT_ONCE_MS)
})

it('a worker without the broker knows which agents are connected, also after the end of the connection', async () => {
  const { agents } = worker.services
  const { agentId } = store.identity
  await store.until('the connection', () => agents.isConnected(agentId), 2 * CONNECTED_MS)
  await store.drive(store.agent.stop())
  await store.until('the end', () => !agents.isConnected(agentId), 2 * CONNECTED_MS)
})
