import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { hashSecret } from '../../../edge-agent/identity/identity.ts'
import { openStoreKeys } from '../../../edge-agent/identity/store-keys.ts'
import { storeKeyId } from '../../../policy/operator-verifiers.ts'
import type { Json } from '../../support/cloud.ts'
import { addAgent } from '../../support/second-agent.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

/** Tests the store key of an agent: its delivery at login, restarts, and its change. */

let store: TestStore
let isOpen = false
afterEach(async () => {
  if (isOpen) await store.stop()
  isOpen = false
})

const ok = (operation: string, body: Json) => store.drive(store.shop.ok(operation, body))
const keyFile = () => join(store.dataDir, 'store-keys.json')
const policyKey = () => store.agent.trust.policy?.storeKey

async function open(options: Parameters<typeof openStore>[0] = {}): Promise<Json> {
  store = await openStore(options)
  isOpen = true
  const operator = await ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' })
  await store.until('the operator', () => store.agent.trust.policy?.operators.length === 1)
  await store.until('the operator can sign in', async () => (await signIn(operator)).status === 200)
  return operator
}

const signIn = ({ operatorId }: Json, pin = '471108') =>
  store.local('/v1/operator', { method: 'POST', body: { operatorId, pin } })

/** Revokes another agent of the store while this one is online. */
async function revokeAnother(): Promise<void> {
  const { agentId } = await store.drive(enrolTestAgent(store.shop))
  await ok('revokeAgent', { agentId })
}

it.each([true, false])(
  'receives the new store key within seconds after another agent was revoked (broker: %s)',
  async (broker) => {
    const operator = await open({ broker })
    const before = policyKey()
    const offline: string[] = []
    await revokeAnother()
    await store.until(
      'the new policy',
      () => {
        if (!store.agent.link.isOnline) offline.push('offline')
        return policyKey() !== before
      },
      20_000,
    )
    await store.until('the sign-in', async () => (await signIn(operator)).status === 200, 1_000)
    expect(offline).toEqual([])
    expect((await signIn(operator, '000000')).status).toBe(401)
  },
)

it('signs operators in after an offline restart, with the key from a private file', async () => {
  const operator = await open()
  expect(statSync(keyFile()).mode & 0o777).toBe(0o600)
  store.network(false)
  await store.restart()
  expect(store.agent.link.isOnline).toBe(false)
  expect((await signIn(operator)).status).toBe(200)
  expect((await store.local('/v1/operator', { method: 'POST', body: { badge: operator.badge } })).status).toBe(200)
  expect((await signIn(operator, '471109')).status).toBe(401)
})

it('answers that the key is missing while the login fails, counts no wrong PIN, stays online and recovers', async () => {
  const operator = await open({ broker: true })
  const before = policyKey()
  store.onFetch((url) => !url.endsWith('/agentLogin'))
  await revokeAnother()
  await store.until('the new policy', () => policyKey() !== before, 20_000)
  for (let i = 0; i < 30; i++)
    expect(await signIn(operator, i % 2 ? '000000' : '471108')).toMatchObject({
      status: 503,
      body: { code: 'no_store_key' },
    })
  const badge = await store.local('/v1/scan', {
    method: 'POST',
    body: { deviceId: store.shop.devices.pos_deactivator, text: operator.badge },
  })
  expect(badge.body).toEqual({ kind: 'not_understood', why: 'no_store_key' })
  expect(store.agent.link.isOnline).toBe(true)
  store.onFetch(() => true)
  await store.until('the sign-in', async () => (await signIn(operator)).status === 200, 6_000)
  expect(store.agent.link.isOnline).toBe(true)
})

it('keeps the former key until a policy names the new one, also after a restart', async () => {
  const operator = await open()
  const before = policyKey()
  store.onFetch((url) => !url.endsWith('/fetchSignedDocuments'))
  await revokeAnother()
  // The login delivers the new key, but the agent cannot fetch the documents.
  await store.until('the new key', () => JSON.parse(readFileSync(keyFile(), 'utf8')).keys.length === 2, 20 * 60_000)
  expect(policyKey()).toBe(before)
  expect((await signIn(operator)).status).toBe(200)
  store.network(false)
  await store.restart()
  expect((await signIn(operator)).status).toBe(200)
  store.network(true)
  store.onFetch(() => true)
  await store.until('the new policy', () => policyKey() !== before, 60_000)
  expect((await signIn(operator)).status).toBe(200)
})

it.each([
  ['missing', () => rmSync(keyFile())],
  ['damaged', () => writeFileSync(keyFile(), '{"keys":[')],
  ['of another store', () => writeFileSync(keyFile(), JSON.stringify({ keys: ['A'.repeat(43)] }))],
])('fetches the key again if its file is %s', async (_, spoil) => {
  const operator = await open()
  store.network(false)
  await store.restart(spoil)
  expect((await signIn(operator)).status).toBe(503)
  store.network(true)
  await store.until('the sign-in', async () => (await signIn(operator)).status === 200, 20_000)
})

it('uses the former policy while offline, and receives the new key with the next login', async () => {
  const operator = await open()
  const second = await addAgent(store, [])
  const fetchedKey = second.agent.trust.policy?.storeKey
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  await ok('revokeAgent', { agentId: second.agent.identity.agentId })
  expect((await signIn(operator)).status).toBe(200)
  store.network(true)
  await store.until('the new policy', () => policyKey() !== fetchedKey, 60_000)
  expect((await signIn(operator)).status).toBe(200)
  await second.stop()
})

it('counts sign-in errors per paired program, and a typed badge for the page instead of the scanner', async () => {
  const operator = await open()
  const [first, second] = ['a', 'b'].map((letter) => {
    const credential = `untag_pair_${letter.repeat(32)}`
    store.agent.ledger.pairings.addProgram(hashSecret(credential), letter, store.world.clock.wall())
    return { authorization: `Bearer ${credential}` }
  })
  const deviceId = store.shop.devices.pos_deactivator
  const send = (path: string, body: Json, headers = {}) => store.local(path, { method: 'POST', body, headers })
  const status = async (pin: string, headers = {}) =>
    (await send('/v1/operator', { operatorId: operator.operatorId, pin }, headers)).status
  for (let i = 0; i < 5; i++) expect(await status('000000', first)).toBe(401)
  expect(await status('471108', first)).toBe(429)
  expect(await status('471108', second)).toBe(200)
  expect(await status('471108')).toBe(200)
  const forged = operator.badge.replace(/.(?=.{9}$)/, (c: string) => (c === 'A' ? 'B' : 'A'))
  const scan = async (text: string) => (await send('/v1/scan', { deviceId, text }, second)).body
  for (let i = 0; i < 5; i++) expect(await scan(forged)).toMatchObject({ why: 'wrong_badge' })
  expect(await scan(operator.badge)).toMatchObject({ why: 'locked' })
  await store.drive(store.scanners.station.scan(operator.badge))
  await store.until('the badge at the scanner', () => store.agent.lanes.operatorAt(deviceId) === 'Frau Petersen')
})

it('signs operators in on a full disk, and logs that the key was not stored', () => {
  const warnings: string[] = []
  const keys = openStoreKeys({
    dataDir: '/nowhere',
    files: {
      read: () => undefined,
      write: () => {
        throw new Error('ENOSPC')
      },
    },
    log: { info: () => undefined, warn: (_, text) => void warnings.push(text), error: () => undefined },
  })
  const [first, second, third] = ['A', 'B', 'C'].map((letter) => letter.repeat(43))
  for (const given of [undefined, 4, '', 'short', {}, `${first}!`]) keys.store(given)
  expect(warnings).toEqual([])
  for (const key of [first, first, second, third]) keys.store(key)
  expect(warnings).toHaveLength(3)
  const held = [first, second, third].map((key) => keys.find(storeKeyId(key ?? '')))
  expect(held).toEqual([undefined, second, third])
  expect(keys.find(undefined)).toBeUndefined()
})
