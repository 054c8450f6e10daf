import { afterAll, beforeAll, expect, it } from 'vitest'
import { decodeUnverifiedClaims } from '../../../policy/documents/signed-document.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { PolicyClaims } from '../../../policy/documents/store-documents.ts'
import { DEVICE_TYPES, PROTECTION_ACTIONS, WORKFLOW_TYPES } from '../../../policy/vocabulary.ts'
import type { Json } from '../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../support/test-agent.ts'

/** An agent rejects a policy beyond the size of a bundle, and every later one. */
inFullSizeOnEveryDatabase('the policy of a store', (kind) => {
  let shop: Shop
  let agent: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind)
    agent = await enrolTestAgent(shop)
  })
  afterAll(() => shop.stop())

  /** The agents' size check. */
  async function policy(): Promise<PolicyClaims> {
    const { documents } = (await agent.call('fetchSignedDocuments', {})).body
    const policies = documents.filter((jws: string) =>
      Buffer.from(jws.split('.')[0] ?? '', 'base64url')
        .toString()
        .includes(DOCUMENT_KINDS.policy.typ),
    )
    expect(policies).toHaveLength(1)
    expect(policies[0].length).toBeLessThanOrEqual(DOCUMENT_KINDS.policy.maxLength)
    return PolicyClaims.parse(decodeUnverifiedClaims(policies[0]))
  }

  async function copyDevice(times: number, fields: Json): Promise<void> {
    const { database } = shop.cloud.db
    const row = await database.reads
      .selectFrom('device')
      .selectAll()
      .where('device_id', '=', shop.devices.exit_gate)
      .executeTakeFirstOrThrow()
    const rows = Array.from({ length: times }, (_, n) => ({
      ...row,
      device_id: `dev_${fields.name}${String(n).padStart(24, '0')}`,
      ...fields,
    }))
    await database.write(async (db) => {
      for (let at = 0; at < rows.length; at += 500)
        await db
          .insertInto('device')
          .values(rows.slice(at, at + 500))
          .execute()
    })
  }

  it('leaves out long decommissioned devices, and contains recent ones', async () => {
    const { deviceId } = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: DEVICE_TYPES[0] })
    await copyDevice(1_500, { name: 'g', revoked_ms: 1 })
    await shop.ok('decommissionDevice', { deviceId })
    const { devices } = await policy()
    expect(devices.filter(({ revoked }) => revoked)).toHaveLength(50)
    expect(devices.find((device) => device.deviceId === deviceId)).toMatchObject({ revoked: true })
    expect(
      devices
        .filter(({ revoked }) => !revoked)
        .map((device) => device.deviceId)
        .sort(),
    ).toEqual(Object.values(shop.devices).sort())
  })

  it('is rejected before its rules make it too long for agents', async () => {
    const { policy: before, version } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    const entry = Object.fromEntries(PROTECTION_ACTIONS.map((action) => [action, [...WORKFLOW_TYPES]]))
    const allowedActionsByCategory = Object.fromEntries(
      Array.from({ length: 500 }, (_, n) => [`${String(n)}${'x'.repeat(100)}`, entry]),
    )
    expect(
      await shop.call('updateProtectionPolicy', {
        storeId: shop.storeId,
        policy: { ...before, allowedActionsByCategory },
      }),
    ).toMatchObject({ status: 409, body: { reason: 'policy_too_large' } })
    expect(await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })).toMatchObject({ policy: before, version })
    await policy()
  })

  it('is rejected before devices and operators make it too long; removals stay possible', async () => {
    await copyDevice(200, { name: 'x'.repeat(3) })
    const register = () =>
      shop.call('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate', name: 'x'.repeat(120) })
    let answer = await register()
    for (let n = 0; n < 200 && answer.status === 200; n++) answer = await register()
    expect(answer).toMatchObject({ status: 409, body: { reason: 'policy_too_large' } })
    const { devices } = await policy()
    expect(devices.length).toBeGreaterThan(250)
    expect(await shop.call('registerOperator', { storeId: shop.storeId, name: 'ü'.repeat(80) })).toMatchObject({
      status: 409,
      body: { reason: 'policy_too_large' },
    })
    const short = devices.find(({ name }) => name === 'xxx')
    expect(await shop.call('updateDevice', { deviceId: short?.deviceId, name: 'ü'.repeat(120) })).toMatchObject({
      status: 409,
      body: { reason: 'policy_too_large' },
    })
    for (const { deviceId } of devices.filter(({ name }) => name === 'xxx').slice(0, 60))
      await shop.ok('decommissionDevice', { deviceId })
    expect(await register()).toMatchObject({ status: 200 })
    await policy()
  })
})
