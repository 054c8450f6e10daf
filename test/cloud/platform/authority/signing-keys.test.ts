import { afterAll, beforeAll, expect, it } from 'vitest'
import { runKeysRevoke } from '../../../../bin/commands/keys.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import { keysOf, loadKeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { createCloud, type Cloud } from '../../../../cloud/cloud.ts'
import { claimedKeyId, openDocument, signDocument } from '../../../../policy/documents/signed-document.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { keyRing, type KeyRecord, type Signer } from '../../../../policy/documents/keys.ts'
import type { KeySetClaims, PolicyClaims } from '../../../../policy/documents/store-documents.ts'
import { claimedReceipts } from '../../../../policy/receipts/receipt-token.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

const DAY = 86_400_000
const claimsOf = (jws: string) => JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
const kidOf = (token: string) => claimedKeyId(token, DOCUMENT_KINDS.authorization)

onEveryDatabase('signing keys', (kind) => {
  let platform: VirtualPlatform
  let shop: Shop
  let agent: TestAgent
  let admin: string
  /** A second process on the same database. */
  let other: Cloud
  let accountId: string

  beforeAll(async () => {
    platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
    shop = await openShop(kind, { platform })
    agent = await enrolTestAgent(shop)
    admin = await shop.cloud.key('admin', 'live')
    const [first] = await shop.cloud.db.database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.storeId)
      .execute()
    accountId = (first?.tenant ?? '').split('.')[0] ?? ''
    const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }
    const keyFiles = await loadKeyFiles(keysOf(shop.cloud.keyFolder), secretFiles, platform.random)
    other = await createCloud({
      config: shop.cloud.cloud.services.config,
      platform,
      log: quiet,
      database: shop.cloud.db.database,
      keyFiles,
      images: shop.cloud.cloud.services.images,
      outgoing: shop.cloud.cloud.services.outgoing,
    })
    await other.services.authority.ready(`${accountId}.test`)
  })
  afterAll(async () => {
    await other.stop()
    await shop.stop()
  })

  const rotate = (body: Json) => shop.cloud.ok(admin, 'rotateSigningKey', { mode: 'test', ...body })
  const states = async (use: string): Promise<Json> => {
    const rows = await shop.cloud.db.database.reads
      .selectFrom('signing_key')
      .select(['kid', 'state', 'iss'])
      .where('key_use', '=', use as 'token')
      .execute()
    return Object.fromEntries(
      rows
        .filter((row) => row.iss.endsWith('.test') || row.iss === 'installation')
        .map(({ kid, state }) => [kid, state]),
    )
  }
  const documents = async (have: Json = {}): Promise<string[]> =>
    (await agent.call('fetchSignedDocuments', { have })).body.documents
  const ofKind = (all: string[], typ: string) =>
    all.find((jws) => JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()).typ === typ) ?? ''
  const keySet = async (): Promise<KeySetClaims> => claimsOf(ofKind(await documents(), 'keys+jwt'))
  const advanceKeys = () => shop.cloud.db.database.write((db) => shop.cloud.cloud.services.authority.advance(db))
  const grant = async () => {
    const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    return shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: shop.devices.pos_deactivator,
    })
  }
  const redeem = (authorizationToken: string) =>
    shop.call('redeemProtectionAuthorization', {
      authorizationToken,
      deviceId: shop.devices.pos_deactivator,
      redemptionId: authorizationToken.slice(-20),
    })

  it('are published before rotateSigningKey activates them, and verify until their documents expire', async () => {
    const before = await keySet()
    const { authorizationToken: old } = await grant()
    const next = before.keys.find((key) => key.use === 'token' && key.state === 'next')
    const { kid } = await rotate({ use: 'token' })
    expect(kid).toBe(next?.kid)
    const after = await keySet()
    expect(after).toMatchObject({ epoch: before.epoch, ver: before.ver + 1 })
    expect(
      after.keys
        .filter((key) => key.use === 'token')
        .map((key) => key.state)
        .toSorted(),
    ).toEqual(['active', 'next', 'retiring'])
    const { authorizationToken: fresh } = await grant()
    expect(kidOf(fresh)).toBe(kid)
    expect(claimsOf(fresh).kv).toBe(after.ver)
    expect((await redeem(old)).status).toBe(200)
    platform.sleep(12 * 60_000)
    await advanceKeys()
    expect((await states('token'))[kidOf(old) ?? '']).toBe('retired')
    expect((await keySet()).keys.find((key: KeyRecord) => key.kid === kidOf(old))?.state).toBe('retired')
  })

  it('are revoked at once in every process: their tokens are rejected, the next key signs', async () => {
    const { authorizationToken } = await grant()
    const before = await keySet()
    const { kid } = await rotate({ use: 'token', revoke: true })
    expect(kid).not.toBe(kidOf(authorizationToken))
    expect((await redeem(authorizationToken)).body).toMatchObject({
      code: 'failed-precondition',
      reason: 'token_revoked',
    })
    const answer = await other.app.request('/api/v1/redeemProtectionAuthorization', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${shop.key}` },
      body: JSON.stringify({
        authorizationToken,
        deviceId: shop.devices.pos_deactivator,
        redemptionId: 'at-the-other',
      }),
    })
    expect(await answer.json()).toMatchObject({ reason: 'token_revoked' })
    const after = await keySet()
    expect(after.ver).toBeGreaterThan(before.ver)
    expect(after.keys.find((key: KeyRecord) => key.kid === kidOf(authorizationToken))?.state).toBe('revoked')
    // A repeated revocation changes nothing, and an unknown key returns 404.
    expect((await rotate({ use: 'token', revoke: kidOf(authorizationToken) })).kid).toBe(kid)
    expect((await keySet()).ver).toBe(after.ver)
    expect((await shop.cloud.call(admin, 'rotateSigningKey', { use: 'receipt', revoke: kid })).status).toBe(404)
    expect((await shop.cloud.call(admin, 'rotateSigningKey', { use: 'token', revoke: 'nothing-' })).status).toBe(404)
    expect((await shop.cloud.call(admin, 'rotateSigningKey', { use: 'token', accountId: 'acc_x' })).status).toBe(404)
    expect((await shop.call('rotateSigningKey', { use: 'token' })).status).toBe(403)
  })

  it('are all revoked at once: the one that signs, the next and the former one', async () => {
    const { keys: rotated } = await rotate({ use: 'token' })
    const issuers = rotated.map((key: Json) => key.iss as string)
    const tokenKeys = () =>
      shop.cloud.db.database.reads
        .selectFrom('signing_key')
        .select(['kid', 'state'])
        .where('key_use', '=', 'token')
        .where('iss', 'in', issuers)
        .execute()
    const trusted = (await tokenKeys()).filter(({ state }) => ['active', 'next', 'retiring'].includes(state))
    expect(new Set(trusted.map(({ state }) => state)).size).toBe(3)
    const { keys } = await rotate({ use: 'token', revoke: 'all' })
    const after = new Map((await tokenKeys()).map(({ kid, state }) => [kid, state]))
    for (const { kid } of trusted) expect(after.get(kid)).toBe('revoked')
    for (const { kid } of keys) expect(after.get(kid)).toBe('active')
    const { transactionId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const { authorizationToken } = await shop.ok('verifySecurityTagDeactivation', {
      purchaseId: transactionId,
      deviceId: shop.devices.pos_deactivator,
    })
    expect(keys.map((key: Json) => key.kid)).toContain(kidOf(authorizationToken))
    expect((await redeem(authorizationToken)).body).toMatchObject({ success: true })
  })

  it('a stored token is not returned again after its key was revoked', async () => {
    const { transactionId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const verifyPurchase = () =>
      shop.ok('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId: shop.devices.pos_deactivator })
    const first = await verifyPurchase()
    expect((await verifyPurchase()).authorizationToken).toBe(first.authorizationToken)
    const { kid } = await rotate({ use: 'token', revoke: true })
    const again = await verifyPurchase()
    expect(kidOf(again.authorizationToken)).toBe(kid)
    expect((await redeem(again.authorizationToken)).body).toMatchObject({ success: true })
  })

  it('that are retired verify receipts until these expire; revoked keys do not', async () => {
    const receiptOf = async () => {
      const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
      return (await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })).url as string
    }
    const old = await receiptOf()
    await rotate({ use: 'receipt' })
    const fetchReceipt = () => shop.cloud.get(`/api/v1/getReceiptFromToken?token=${encodeURIComponent(old)}`)
    const verifyReceipt = () =>
      shop.ok('verifySecurityTagDeactivation', { receiptToken: old, deviceId: shop.devices.pos_deactivator })
    expect(await verifyReceipt()).toMatchObject({ deactivationAuthorized: true })
    platform.sleep(DAY + 2 * 60_000)
    await advanceKeys()
    expect((await states('receipt'))[claimedReceipts(old)[0]?.kid ?? '']).toBe('retired')
    expect((await fetchReceipt()).status).toBe(200)
    await rotate({ use: 'receipt', revoke: claimedReceipts(old)[0]?.kid })
    expect((await fetchReceipt()).status).toBe(404)
    expect(
      (await shop.call('verifySecurityTagDeactivation', { receiptToken: old, deviceId: shop.devices.pos_deactivator }))
        .body,
    ).not.toMatchObject({ deactivationAuthorized: true })
  })

  it('re-sign policies when the policy key changes, in a new epoch after a revocation', async () => {
    await agent.login()
    const first = claimsOf(ofKind(await documents(), 'policy+jwt')) as PolicyClaims
    await rotate({ use: 'policy' })
    const policyKid = async () => {
      const jws = ofKind(await documents({ policy: [first.epoch, first.ver] }), 'policy+jwt')
      const keys = keyRing((await keySet()).keys)
      expect(openDocument<PolicyClaims>(jws, DOCUMENT_KINDS.policy, { keys, audience: shop.storeId })).toMatchObject({
        ok: true,
      })
      return [claimedKeyId(jws, DOCUMENT_KINDS.policy), claimsOf(jws)] as const
    }
    const [rotated, second] = await policyKid()
    expect(second).toMatchObject({ epoch: first.epoch, ver: first.ver + 1 })
    const { kid } = await rotate({ use: 'policy', revoke: true })
    const [revoked, third] = await policyKid()
    expect([rotated, revoked]).toEqual([expect.not.stringMatching(kid), kid])
    expect(third.epoch).toBe(first.epoch + 1)
    expect(claimsOf(ofKind(await documents(), 'fresh+jwt')).policy).toMatchObject({
      epoch: third.epoch,
      ver: third.ver,
    })
    const { kid: freshKid } = await rotate({ use: 'freshness', revoke: true })
    expect(claimedKeyId(ofKind(await documents(), 'fresh+jwt'), DOCUMENT_KINDS.fresh)).toBe(freshKid)
    const { time } = (await shop.cloud.get('/api/v1/time?nonce=0123456789abcdef')).body
    expect(claimedKeyId(time, DOCUMENT_KINDS.time)).toBe(freshKid)
  })

  it('rotate after 30 days to a key that was published for 7 days', async () => {
    const before = Object.entries(await states('token')).find(([, state]) => state === 'active')
    platform.sleep(31 * DAY)
    await advanceKeys()
    expect((await states('token'))[before?.[0] ?? '']).toBe('retiring')
    await advanceKeys()
    expect(Object.values(await states('token')).filter((state) => state === 'active')).toHaveLength(1)
  })

  // On SQLite the command opens the cloud's own file; test/bin/cloud-keys.test.ts uses two processes.
  if (kind === 'postgres')
    it('rotate at once by command line while the cloud runs', async () => {
      const { authorizationToken } = await grant()
      const place = {
        data: shop.cloud.keyFolder,
        databaseUrl: 'url' in shop.cloud.db.location ? shop.cloud.db.location.url : undefined,
        json: true,
      }
      const written: string[] = []
      const { write } = process.stdout
      process.stdout.write = ((text: string) => written.push(text) > 0) as typeof process.stdout.write
      try {
        await runKeysRevoke({
          ...place,
          keysDir: undefined,
          masterKeyFile: undefined,
          rootKeyFile: undefined,
          databasePooling: 'session',
          keyId: undefined,
          use: 'token',
          account: 'Hafenkante',
          mode: 'test',
          kid: undefined,
        })
      } finally {
        process.stdout.write = write
      }
      expect(JSON.parse(written.join('')).keys).toHaveLength(1)
      expect((await redeem(authorizationToken)).body).toMatchObject({ reason: 'token_revoked' })
    })

  it('sign the key set again long before it expires, even without changes', async () => {
    agent = await enrolTestAgent(shop)
    // Due signatures come first.
    await advanceKeys()
    const before = await keySet()
    expect(before.exp - before.iat).toBe(400 * 86_400)
    const setAge = async (days: number) => {
      await shop.cloud.db.database.write(async (db) => {
        await db
          .updateTable('signed_document')
          .set({ iat: Math.floor(platform.clock.wall() / 1_000) - days * 86_400 })
          .where('kind', '=', 'keys')
          .where('aud', '=', `${accountId}.test`)
          .execute()
      })
      await advanceKeys()
      return keySet()
    }
    expect((await setAge(339)).ver).toBe(before.ver)
    const renewed = await setAge(341)
    expect(renewed).toMatchObject({ epoch: before.epoch, ver: before.ver + 1, keys: before.keys })
    expect(renewed.exp).toBe(Math.floor(platform.clock.wall() / 1_000) + 400 * 86_400)
    // An agent with the former key set gets the new one with its next request.
    expect(claimsOf(ofKind(await documents({ keys: [before.epoch, before.ver] }), 'keys+jwt')).ver).toBe(renewed.ver)
  })

  it('are revoked again by a key set that an agent sends, if the root key signed it', async () => {
    const sendRevocations = async (...revocations: string[]) => {
      const { status } = await agent.call('fetchSignedDocuments', { revocations })
      expect(status).toBe(200)
      return states('token')
    }
    const before = await states('token')
    const doomed = Object.keys(before).find((kid) => before[kid] === 'active') ?? ''
    const { iat: _, ...set } = await keySet()
    const root = (await loadKeyFiles(keysOf(shop.cloud.keyFolder), secretFiles, platform.random)).root.signer
    const signed = (by: Signer, change: Partial<KeySetClaims> = {}) => {
      const keys = set.keys.map((key) => (key.kid === doomed ? { ...key, state: 'revoked' as const } : key))
      return signDocument(DOCUMENT_KINDS.keys, { ...set, iat: set.exp - 400 * 86_400, keys, ...change }, by)
    }
    const strange = [
      {
        kid: 'AAAAAAAA',
        alg: 'EdDSA' as const,
        x: agent.x,
        use: 'token' as const,
        iss: set.aud,
        state: 'revoked' as const,
      },
    ]
    expect(
      await sendRevocations(
        'nonsense',
        signed(agent.signer),
        signed(root, { aud: 'acc_other.test' }),
        signed(root, { keys: strange }),
      ),
    ).toEqual(before)
    const after = await sendRevocations(signed(root), signed(root))
    expect(after[doomed]).toBe('revoked')
    expect(Object.values(after).toSorted()).toEqual([...Object.values(before), 'revoked'].toSorted())
    expect(await sendRevocations(signed(root))).toEqual(after)
    expect(
      (await agent.call('fetchSignedDocuments', { revocations: Array.from({ length: 5 }, () => signed(root)) })).status,
    ).toBe(400)
  })
})
