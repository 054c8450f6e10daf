import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { keyId, keyRing, newKey, publicJwk, createSigner } from '../../../../policy/documents/keys.ts'
import { openDocument } from '../../../../policy/documents/signed-document.ts'
import { enrolmentCodeHash } from '../../../../policy/documents/agent-messages.ts'
import { DenyClaims, FreshClaims, KeySetClaims, PolicyClaims } from '../../../../policy/documents/store-documents.ts'
import { OLDEST_AGENT, UNTAG_VERSION } from '../../../../policy/version.ts'
import { pruneCodes } from '../../../../cloud/protection/agents/enrolment/enrolment.ts'
import { itemsHead } from '../../../../cloud/protection/agents/documents/item-pages.ts'
import { deny, pruneDenied } from '../../../../cloud/protection/rights/deny-list.ts'
import { seededRandom } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, proofFor } from '../../../support/test-agent.ts'

onEveryDatabase('agents', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const keyOf = (seed: number) => {
    const { x, secret } = newKey(seededRandom(seed))
    return { x, signer: createSigner(x, secret) }
  }
  const enrol = (code: string, key: ReturnType<typeof keyOf>, change: Json = {}) =>
    shop.cloud.call(null, 'enrolEdgeAgent', {
      code,
      publicJwk: publicJwk(key.x),
      proof: proofFor(shop, code, `led_${key.x.slice(0, 8)}`, key.signer),
      ...change,
    })

  describe('enrolment', () => {
    it('returns the store, the root key and signed documents that verify with it', async () => {
      const { code, expiresAt } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId, name: 'Kasse 1' })
      expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){6}[0-9A-HJKMNP-TV-Z]{4}$/)
      expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(900_000)
      const { body } = await enrol(code, keyOf(1))
      expect(body).toMatchObject({ storeId: shop.storeId, mqtt: { clientId: body.agentId, username: body.agentId } })
      const root = keyRing([
        { kid: keyId(body.root.x), alg: 'EdDSA', x: body.root.x, use: 'root', iss: 'root', state: 'active' },
      ])
      const [keys, policy, fresh] = body.documents
      const tenant = decodeJwt(keys).aud as string
      const keySet = openDocument<KeySetClaims>(keys, DOCUMENT_KINDS.keys, {
        keys: root,
        audience: tenant,
        now: Date.now() / 1_000,
      })
      expect(
        keySet.ok &&
          KeySetClaims.parse(keySet.claims)
            .keys.filter((k) => k.state === 'active')
            .map((k) => k.use)
            .sort(),
      ).toEqual(['freshness', 'policy', 'receipt', 'token'])
      const ring = keyRing(keySet.ok ? keySet.claims.keys : [])
      const opened = openDocument<PolicyClaims>(policy, DOCUMENT_KINDS.policy, {
        keys: ring,
        audience: shop.storeId,
        now: Date.now() / 1_000,
      })
      expect(opened.ok && PolicyClaims.parse(opened.claims).devices.length).toBe(4)
      const time = openDocument<FreshClaims>(fresh, DOCUMENT_KINDS.fresh, {
        keys: ring,
        audience: shop.storeId,
        now: Date.now() / 1_000,
      })
      expect(time.ok && FreshClaims.parse(time.claims).policy.ver).toBe(opened.ok && opened.claims.ver)
    })

    it('repeats the response for the same code and key, and rejects another key', async () => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const first = await enrol(code, keyOf(2))
      expect(
        (
          await enrol(code.toLowerCase().replaceAll('-', ' '), keyOf(2), {
            proof: proofFor(shop, code, 'led_other', keyOf(2).signer),
          })
        ).body.agentId,
      ).toBe(first.body.agentId)
      expect(await enrol(code, keyOf(3))).toMatchObject({ status: 409, body: { reason: 'code_used' } })
    })

    it('rejects a ledger of another agent and invalid ledger ids', async () => {
      const ledger = (await enrolTestAgent(shop)).ledgerId
      const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
      const { stores } = await shop.cloud.ok(stranger, 'fetchStores')
      for (const [i, make] of [
        () => shop.ok('createEnrolmentCode', { storeId: shop.storeId }),
        () => shop.cloud.ok(stranger, 'createEnrolmentCode', { storeId: stores[0].storeId }),
      ].entries()) {
        for (const [n, bad] of [ledger, 'led_\0', '', 'led_x.1', 'led \ud800'].entries()) {
          const { code } = await make()
          const key = keyOf(9_000 + i * 10 + n)
          const answer = await enrol(code, key, { proof: proofFor(shop, code, bad, key.signer) })
          expect([bad, answer.status, answer.body.code]).toEqual([
            bad,
            bad === ledger ? 409 : 400,
            bad === ledger ? 'failed-precondition' : 'invalid-argument',
          ])
        }
      }
    })

    it('deletes expired enrolment codes', async () => {
      const { database } = shop.cloud.db
      const { code, expiresAt } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const remainingCodes = async (afterMs: number) => {
        await database.write((db) => pruneCodes(db, Date.parse(expiresAt) + afterMs))
        return (
          await database.reads
            .selectFrom('enrolment_code')
            .select('code_hash')
            .where('code_hash', '=', enrolmentCodeHash(code))
            .execute()
        ).length
      }
      expect([await remainingCodes(-1), await remainingCodes(0)]).toEqual([1, 0])
    })

    it('accepts one of 16 keys that are sent at once with the same code', async () => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => enrol(code, keyOf(100 + i))))
      expect(answers.filter((a) => a.status === 200)).toHaveLength(1)
    })

    it('rejects a wrong code and a wrong proof, and blocks the code after ten tries', async () => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      expect((await enrol('AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA', keyOf(4))).status).toBe(404)
      const proof = proofFor(shop, code, 'led_x', keyOf(5).signer)
      expect((await enrol(code, keyOf(4), { proof })).status).toBe(400)
      const elsewhere = proofFor(shop, code, 'led_x', keyOf(4).signer, 'https://evil.example/api/v1')
      for (let i = 0; i < 9; i++) expect((await enrol(code, keyOf(4), { proof: elsewhere })).status).toBe(400)
      expect(await enrol(code, keyOf(4))).toMatchObject({ status: 409, body: { reason: 'code_blocked' } })
    })

    it.each([
      ['behind', -20 * 365 * 86_400, 7],
      ['ahead', 3_600, 8],
    ])('reports that the agent’s clock is far %s, without counting a try', async (_name, aheadS, seed) => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const proof = proofFor(shop, code, 'led_clock', keyOf(seed).signer, shop.cloud.baseUrl, aheadS)
      for (let i = 0; i < 12; i++)
        expect(await enrol(code, keyOf(seed), { proof })).toMatchObject({
          status: 400,
          body: { details: [{ path: 'proof', code: 'clock_wrong' }] },
        })
      expect(await enrol(code, keyOf(seed))).toMatchObject({ status: 200 })
    })

    it.each([
      ['a point of small order', Buffer.alloc(32).toString('base64url')],
      ['a non-canonical point', Buffer.from('ff'.repeat(32), 'hex').toString('base64url')],
      ['no key at all', 'AAAA'],
    ])('rejects %s as a key', async (_name, x) => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const answer = await enrol(code, keyOf(6), { publicJwk: { kty: 'OKP', crv: 'Ed25519', x } })
      expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'publicJwk.x', code: 'weak_key' }] } })
    })
  })

  describe('login', () => {
    it('accepts an assertion once, and only if the agent’s key signed it', async () => {
      const agent = await enrolTestAgent(shop)
      const { challenge } = (await shop.cloud.call(null, 'agentLogin', { agentId: agent.agentId })).body
      const assertion = agent.messages.assertion(challenge, Date.now())
      const send = (body: Json) => shop.cloud.call(null, 'agentLogin', body)
      expect((await send({ agentId: agent.agentId, assertion })).body.accessToken).toMatch(/^untag_agent_/)
      expect((await send({ agentId: agent.agentId, assertion })).status).toBe(401)
      const other = await enrolTestAgent(shop)
      const { challenge: mine } = (await send({ agentId: agent.agentId })).body
      expect(
        (await send({ agentId: agent.agentId, assertion: other.messages.assertion(mine, Date.now()) })).status,
      ).toBe(401)
      expect(
        (await send({ agentId: other.agentId, assertion: other.messages.assertion(mine, Date.now()) })).status,
      ).toBe(401)
      expect((await send({ agentId: 'agt_nobody', assertion })).status).toBe(401)
    })

    it('rejects agents of a later step or of an unsupported release, but still revokes them', async () => {
      const agent = await enrolTestAgent(shop)
      const send = (body: Json) => shop.cloud.call(null, 'agentLogin', { agentId: agent.agentId, ...body })
      const login = async (release: string) => {
        const { challenge } = (await send({})).body
        return send({ assertion: agent.messages.assertion(challenge, Date.now()), release })
      }
      const [major = '', minor = ''] = UNTAG_VERSION.split('.')
      expect((await login(`${major}.${minor}.99`)).status).toBe(200)
      expect((await login(OLDEST_AGENT)).status).toBe(200)
      const later = `${major}.${Number(minor) + 1}.0`
      const refusal = {
        status: 409,
        body: {
          code: 'failed-precondition',
          reason: 'release_not_supported',
          error: `the agent has release ${later}, and the cloud ${UNTAG_VERSION}: upgrade the cloud`,
        },
      }
      expect(await login(later)).toMatchObject(refusal)
      // A later release may sign assertions in another form.
      expect(await send({ assertion: 'form.of.later', release: later })).toMatchObject(refusal)
      expect(await send({ assertion: 'form.of.later', release: UNTAG_VERSION })).toMatchObject({ status: 401 })
      expect(await login('0.0.1')).toMatchObject({
        status: 409,
        body: { reason: 'release_not_supported', error: expect.stringContaining('upgrade the agent') },
      })
      await shop.ok('revokeAgent', { agentId: agent.agentId })
      expect((await login(later)).body).toMatchObject({ revoked: expect.any(String) })
    })

    it('allows an agent only its operations in its own store', async () => {
      const agent = await enrolTestAgent(shop)
      expect((await agent.call('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate' })).status).toBe(403)
      expect((await agent.call('fetchPurchase', { transactionId: 'pur_x' })).status).toBe(403)
      const elsewhere = await enrolTestAgent(shop, shop.otherStoreId)
      expect((await elsewhere.call('reportDeviceHeartbeat', { deviceId: shop.devices.exit_gate })).status).toBe(404)
      expect(
        (
          await elsewhere.call('verifyProtectedItem', {
            deviceId: shop.devices.exit_gate,
            protectionAction: 'verify_item_status',
            epc: 'AAAA',
          })
        ).body,
      ).toMatchObject({ reason: 'device_unknown' })
    })
  })

  describe('signed documents', () => {
    it('are sent if they are newer than those of the agent; freshness is always sent', async () => {
      const agent = await enrolTestAgent(shop)
      const typs = (body: Json) => body.documents.map((d: string) => decodeProtectedHeader(d).typ)
      expect(typs((await agent.call('fetchSignedDocuments', {})).body)).toEqual(['keys+jwt', 'policy+jwt', 'fresh+jwt'])
      const { body } = await agent.call('fetchSignedDocuments', { have: {} })
      const policy = decodeJwt<PolicyClaims>(body.documents[1])
      const keys = decodeJwt<KeySetClaims>(body.documents[0])
      const have = { keys: [keys.epoch, keys.ver], policy: [policy.epoch, policy.ver], deny: [0, 0] }
      expect(typs((await agent.call('fetchSignedDocuments', { have })).body)).toEqual(['fresh+jwt'])
      await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'handheld_reader' })
      const newer = (await agent.call('fetchSignedDocuments', { have })).body
      expect(typs(newer)).toEqual(['policy+jwt', 'fresh+jwt'])
      expect(decodeJwt<PolicyClaims>(newer.documents[0]).ver).toBe(policy.ver + 1)
    })

    it('refresh no page of the console, because agents fetch them often', async () => {
      const agent = await enrolTestAgent(shop)
      const { changes } = shop.cloud.cloud.services
      const { tenant } = await shop.cloud.db.database.reads
        .selectFrom('store')
        .select('tenant')
        .where('store_id', '=', shop.storeId)
        .executeTakeFirstOrThrow()
      let count = 0
      const end = changes.subscribe({ tenant, topics: new Set(['agents']), storeIds: null }, () => count++)
      await agent.call('fetchSignedDocuments', {})
      expect(count).toBe(0)
      await shop.ok('createEnrolmentCode', { storeId: shop.storeId, name: 'second lane' })
      expect(count).toBe(1)
      end?.()
    })

    it('deny revoked tokens, page by page', async () => {
      const agent = await enrolTestAgent(shop)
      await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.cabinet_unlocker })
      const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
      await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
      const { body } = await agent.call('fetchSignedDocuments', { have: { deny: [0, 0] } })
      const page = DenyClaims.parse(
        decodeJwt(body.documents.find((d: string) => decodeProtectedHeader(d).typ === 'deny+jwt')),
      )
      expect(page).toMatchObject({ after: 0 })
      expect(page.entries.some((e) => e.kind === 'receipt')).toBe(true)
    })

    it('confirm only deny list versions that the cloud assigned; refunds wait for confirmed versions', async () => {
      const agent = await enrolTestAgent(shop)
      const denyVersion = async () =>
        (await shop.ok('fetchAgents', { storeId: shop.storeId })).agents.find((a: Json) => a.agentId === agent.agentId)
          .denyVersion
      const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
      await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
      await agent.call('fetchSignedDocuments', { have: { deny: [0, Number.MAX_SAFE_INTEGER] } })
      expect(await denyVersion()).toBe(0)
      const { body } = await agent.call('fetchSignedDocuments', { have: { deny: [0, 0] } })
      const { ver } = decodeJwt<DenyClaims>(
        body.documents.find((d: string) => decodeProtectedHeader(d).typ === 'deny+jwt'),
      )
      await agent.call('fetchSignedDocuments', { have: { deny: [0, ver] } })
      expect(await denyVersion()).toBe(ver)
    })

    it('confirm only item versions that the cloud assigned; the exit page uses confirmed versions', async () => {
      const agent = await enrolTestAgent(shop)
      await shop.ok('registerProtectedItems', {
        storeId: shop.storeId,
        items: [{ ean: shop.products[0].ean, tagId: 'HT-taken', epc: newEpc() }],
      })
      const { services } = shop.cloud.cloud
      const { epoch, ver } = await itemsHead(shop.cloud.db.database.reads, shop.storeId, services)
      const confirmItems = async (seq: number) => {
        await agent.call('fetchSignedDocuments', { have: { items: [epoch, seq] } })
        return (
          await shop.cloud.db.database.reads
            .selectFrom('agent')
            .select('item_seq')
            .where('agent_id', '=', agent.agentId)
            .executeTakeFirstOrThrow()
        ).item_seq
      }
      expect([ver > 0, await confirmItems(ver + 1), await confirmItems(ver)]).toEqual([true, 0, ver])
    })

    it('leave expired entries out of the deny list, so that its size is limited', async () => {
      const agent = await enrolTestAgent(shop)
      const { database } = shop.cloud.db
      const nowMs = shop.cloud.platform.clock.wall()
      const nowS = Math.floor(nowMs / 1_000)
      const call = { services: shop.cloud.cloud.services, afterCommit: () => undefined }
      const entry = (n: number, until: number) => ({ kind: 'nonce' as const, nonce: `${until}-${n}`, until })
      await database.write((db) =>
        deny(
          { ...call, db },
          shop.storeId,
          Array.from({ length: 700 }, (_, n) => entry(n, nowS - 15 * 86_400)),
        ),
      )
      await database.write((db) => deny({ ...call, db }, shop.storeId, [entry(0, nowS - 60), entry(1, nowS + 600)]))
      const last = await database.write((db) =>
        deny(
          { ...call, db },
          shop.storeId,
          Array.from({ length: 700 }, (_, n) => entry(n, nowS - 1)),
        ),
      )
      const page = async () => {
        const { body } = await agent.call('fetchSignedDocuments', { have: { deny: [0, 0] } })
        const { ver, entries } = decodeJwt<DenyClaims>(
          body.documents.find((d: string) => decodeProtectedHeader(d).typ === 'deny+jwt'),
        )
        return {
          ver,
          more: body.nextCursor,
          nonces: entries.flatMap((e) =>
            e.kind === 'nonce' && e.nonce.startsWith(String(nowS + 600)) ? [e.nonce] : [],
          ),
        }
      }
      const whole = { ver: last, more: undefined, nonces: [`${nowS + 600}-1`] }
      expect(await page()).toEqual(whole)
      while ((await database.write((db) => pruneDenied(db, nowMs))) > 0);
      expect(await page()).toEqual(whole)
      const storedEntries = await database.reads
        .selectFrom('deny_entry')
        .select('until_s')
        .where('store_id', '=', shop.storeId)
        .orderBy('until_s')
        .execute()
      expect(storedEntries[0]?.until_s).toBeGreaterThan(nowS - 14 * 86_400)
      expect(storedEntries.filter(({ until_s }) => until_s <= nowS)).toHaveLength(701)
    })

    it('split the deny list into pages that agents accept, however many rights an entry has', async () => {
      const agent = await enrolTestAgent(shop)
      const ordinals = Array.from({ length: 400 }, (_, n) => n)
      const { database } = shop.cloud.db
      const { deny_seq: first } = await database.reads
        .selectFrom('store')
        .select('deny_seq')
        .where('store_id', '=', shop.storeId)
        .executeTakeFirstOrThrow()
      const entries = Array.from({ length: 300 }, (_, n) => ({
        kind: 'right' as const,
        cti: n.toString(16).padStart(32, '0'),
        rightClass: 'release' as const,
        ordinals,
        until: 4_000_000_000,
      }))
      await database.write(async (db) => {
        await deny({ db, services: shop.cloud.cloud.services, afterCommit: () => undefined }, shop.storeId, entries)
      })
      let [held, taken] = [first, 0]
      for (let n = 0; n < 10 && held < first + entries.length; n++) {
        const { body } = await agent.call('fetchSignedDocuments', { have: { deny: [0, held] } })
        const text = body.documents.find((d: string) => decodeProtectedHeader(d).typ === 'deny+jwt') as string
        expect(text.length).toBeLessThanOrEqual(DOCUMENT_KINDS.deny.maxLength)
        const page = DenyClaims.parse(decodeJwt(text))
        expect(page.after).toBe(held)
        held = page.ver
        taken += page.entries.length
      }
      expect([held, taken]).toEqual([first + entries.length, entries.length])
    })

    it('bind a device to the first reporting agent, and a gate’s agent becomes receipt home', async () => {
      const other = await openShop(kind)
      const [first, second] = [await enrolTestAgent(other), await enrolTestAgent(other)]
      expect((await first.call('reportDeviceHeartbeat', { deviceId: other.devices.exit_gate })).status).toBe(200)
      expect(await second.call('reportDeviceHeartbeat', { deviceId: other.devices.exit_gate })).toMatchObject({
        status: 409,
        body: { reason: 'device_of_another_agent' },
      })
      const { policy, version } = await other.ok('fetchProtectionPolicy', { storeId: other.storeId })
      expect(policy).toMatchObject({ home: first.agentId, homeEpoch: 1 })
      expect(version).toBe(1)
      const { devices } = await other.ok('fetchDevices', { storeId: other.storeId })
      expect(devices.find((d: Json) => d.deviceId === other.devices.exit_gate)).toMatchObject({
        agentId: first.agentId,
        lastSeenAt: expect.any(String),
      })
      await other.stop()
    })
  })

  it('receive the signed time with their own nonce, without a login', async () => {
    const nonce = 'n'.repeat(22)
    const { body } = await shop.cloud.get(`/api/v1/time?nonce=${nonce}`)
    expect(decodeJwt(body.time)).toMatchObject({ aud: nonce, timeMs: expect.any(Number) })
    const refused = await shop.cloud.get('/api/v1/time?nonce=x')
    expect(refused).toMatchObject({
      status: 400,
      body: { code: 'invalid-argument', requestId: expect.stringMatching(/^req_/) },
    })
    expect(refused.headers.get('x-request-id')).toBe(refused.body.requestId)
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
