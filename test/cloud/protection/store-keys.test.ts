import { afterAll, beforeAll, expect, it } from 'vitest'
import { sql } from 'kysely'
import { addSealingKey, keysOf, loadKeyFiles } from '../../../cloud/platform/authority/key-files.ts'
import { resealAll, sealer } from '../../../cloud/platform/authority/sealing.ts'
import { secretFiles } from '../../../host/secret-files.ts'
import { PolicyClaims } from '../../../policy/documents/store-documents.ts'
import { findCardIndex, matchesVerifier, parseBadge, storeKeyId } from '../../../policy/operator-verifiers.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../support/test-agent.ts'

onEveryDatabase('the store key', (kind) => {
  let shop: Shop
  let agent: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind)
    agent = await enrolTestAgent(shop)
  })
  afterAll(() => shop.stop())

  async function documentsOf(reader: TestAgent): Promise<string[]> {
    const { body } = await reader.call('fetchSignedDocuments', { have: {} })
    return body.documents
  }
  async function policyFor(reader: TestAgent): Promise<PolicyClaims> {
    const claims = (await documentsOf(reader)).map((jws) =>
      JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()),
    )
    return PolicyClaims.parse(claims.find((each: Json) => 'operators' in each))
  }
  let registered = 0
  const register = (fields: Json): Promise<Json> =>
    shop.ok('registerOperator', { storeId: shop.storeId, name: `Frau Petersen ${++registered}`, ...fields })
  const recordOf = (policy: PolicyClaims, operatorId: string) => {
    const record = policy.operators.find((each) => each.operatorId === operatorId)
    if (!record) throw new Error('the policy does not contain the operator')
    return record
  }
  const operatorRow = (operatorId: string) =>
    shop.cloud.db.database.reads
      .selectFrom('operator')
      .selectAll()
      .where('operator_id', '=', operatorId)
      .executeTakeFirstOrThrow()

  it('is sent with the first login, before the policy contains an operator', async () => {
    const { storeKey } = await agent.login()
    expect(storeKey).toMatch(/^[\w-]{43}$/)
    expect(await policyFor(agent)).not.toHaveProperty('storeKey')
    await register({ name: 'Frau Anders' })
    expect((await policyFor(agent)).storeKey).toBe(storeKeyId(storeKey))
  })

  it('is sent with the login of an agent; documents contain only its id', async () => {
    const { operatorId, badge } = await register({ pin: '471108', card: '04A2B3C4D5E680' })
    const { storeKey } = await agent.login()
    const policy = await policyFor(agent)
    expect(policy.storeKey).toBe(storeKeyId(storeKey))
    expect((await documentsOf(agent)).join()).not.toContain(storeKey)
    const record = recordOf(policy, operatorId)
    const [read] = parseBadge(badge)
    expect(record.pin && matchesVerifier(record.pin, '471108', storeKey)).toBe(true)
    expect(record.pin && matchesVerifier(record.pin, '471109', storeKey)).toBe(false)
    expect(matchesVerifier(record.badge, read?.secret ?? '', storeKey)).toBe(true)
    expect(findCardIndex([record.card], '04A2B3C4D5E680', storeKey)).toBe(0)
    const elsewhere = await enrolTestAgent(shop, shop.otherStoreId)
    expect((await elsewhere.login())['storeKey']).not.toBe(storeKey)
  })

  it('changes when an agent is revoked: the former key fits no new policy; PINs, badges and cards stay valid', async () => {
    const { operatorId, badge } = await register({ name: 'Herr Asmussen', pin: '990011', card: '0499887766' })
    const thief = await enrolTestAgent(shop)
    const { storeKey: stolen } = await thief.login()
    const before = await policyFor(agent)
    await shop.ok('revokeAgent', { agentId: thief.agentId })
    expect(await thief.login()).not.toHaveProperty('storeKey')
    const { storeKey } = await agent.login()
    expect(storeKey).not.toBe(stolen)
    const policy = await policyFor(agent)
    expect(policy.ver).toBeGreaterThan(before.ver)
    expect(policy.storeKey).toBe(storeKeyId(storeKey))
    const record = recordOf(policy, operatorId)
    const secret = parseBadge(badge)[0]?.secret ?? ''
    const opens = (key: string) => [
      record.pin && matchesVerifier(record.pin, '990011', key),
      matchesVerifier(record.badge, secret, key),
      findCardIndex([record.card], '0499887766', key) === 0,
    ]
    expect(opens(storeKey)).toEqual([true, true, true])
    expect(opens(stolen)).toEqual([false, false, false])
    expect(
      await shop.call('registerOperator', { storeId: shop.storeId, name: 'Neu', card: '0499887766' }),
    ).toMatchObject({ status: 409 })
  })

  it('is sealed in the database like base verifiers, which are removed with the operator', async () => {
    const { operatorId } = await register({ name: 'Frau Lund', pin: '314159' })
    const { storeKey } = await agent.login()
    const { database } = shop.cloud.db
    const row = await operatorRow(operatorId)
    const record = recordOf(await policyFor(agent), operatorId)
    expect(JSON.parse(row.verifiers)).toEqual({ pin: record.pin, badge: record.badge })
    expect(row.sealed).toMatch(/^k[0-9a-f]{12}\./)
    const { rows } = await sql<{ sealed: string }>`SELECT sealed FROM store_key`.execute(database.reads)
    expect(rows.map(({ sealed }) => sealed).join()).not.toContain(storeKey)
    const keys = addSealingKey(keysOf(shop.cloud.keyFolder), secretFiles, shop.cloud.platform.random)
    await resealAll(database, sealer(keys, shop.cloud.platform.random))
    expect((await operatorRow(operatorId)).sealed).not.toBe(row.sealed)
    await shop.cloud.restart()
    expect((await agent.login())['storeKey']).toBe(storeKey)
    await shop.ok('removeOperator', { operatorId })
    expect(await operatorRow(operatorId)).toMatchObject({ verifiers: '{}', sealed: null })
    expect(
      (await loadKeyFiles(keysOf(shop.cloud.keyFolder), secretFiles, shop.cloud.platform.random)).sealingKeys,
    ).toHaveLength(2)
  })

  it('registerOperator rejects PINs that do not have 6 to 12 digits', async () => {
    for (const pin of ['4711', '47110', 'abcdef', '1234567890123'])
      expect(await shop.call('registerOperator', { storeId: shop.storeId, name: 'Kurz', pin })).toMatchObject({
        status: 400,
        body: { error: expect.stringContaining('must be 6 to 12 digits') },
      })
  })

  it('is the same for concurrent registrations, also during a revocation', async () => {
    const storeId = shop.otherStoreId
    const other = await enrolTestAgent(shop, storeId)
    const thief = await enrolTestAgent(shop, storeId)
    const names = ['eins', 'zwei', 'drei', 'vier']
    const [, ...registered] = await Promise.all([
      shop.ok('revokeAgent', { agentId: thief.agentId }),
      ...names.map((name) => shop.ok('registerOperator', { storeId, name })),
    ])
    const { storeKey } = await other.login()
    const policy = await policyFor(other)
    expect(policy.operators).toHaveLength(names.length)
    for (const { operatorId, badge } of registered)
      expect(matchesVerifier(recordOf(policy, operatorId).badge, parseBadge(badge)[0]?.secret ?? '', storeKey)).toBe(
        true,
      )
  })
})
