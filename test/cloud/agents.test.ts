import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyId, keyRing, newKey, publicJwk, signer } from '../../policy/documents/keys.ts'
import { openDocument } from '../../policy/documents/signed-document.ts'
import { AckClaims, enrolmentCodeHash } from '../../policy/documents/agent-messages.ts'
import { DenyClaims, FreshClaims, KeySetClaims, PolicyClaims } from '../../policy/documents/store-documents.ts'
import { retryUnapplied } from '../../cloud/agents/retry-unapplied.ts'
import { pruneCodes } from '../../cloud/agents/enrolment.ts'
import { itemsHead } from '../../cloud/agents/item-pages.ts'
import { deny, pruneDenied } from '../../cloud/protection/deny-list.ts'
import type { ProtectionEvent } from '../../policy/events.ts'
import type { Evidence } from '../../policy/journal.ts'
import { seededRandom } from '../../simulators/world/virtual-platform.ts'
import type { Json } from '../support/cloud.ts'
import { onEveryDatabase } from '../support/databases.ts'
import { newEpc, openShop, type Shop } from '../support/shop.ts'
import { enrolTestAgent, proofFor, type TestAgent } from '../support/test-agent.ts'

onEveryDatabase('agents', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const keyOf = (seed: number) => {
    const { x, secret } = newKey(seededRandom(seed))
    return { x, signer: signer(x, secret) }
  }
  const enrol = (code: string, key: ReturnType<typeof keyOf>, change: Json = {}) =>
    shop.cloud.call(null, 'enrolEdgeAgent', { code, publicJwk: publicJwk(key.x), proof: proofFor(shop, code, `led_${key.x.slice(0, 8)}`, key.signer), ...change })

  describe('enrolment', () => {
    it('gives the agent its store, the root and signed documents that verify down from it', async () => {
      const { code, expiresAt } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId, name: 'Kasse 1' })
      expect(code).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){6}[0-9A-HJKMNP-TV-Z]{4}$/)
      expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(900_000)
      const { body } = await enrol(code, keyOf(1))
      expect(body).toMatchObject({ storeId: shop.storeId, mqtt: { clientId: body.agentId, username: body.agentId } })
      const root = keyRing([{ kid: keyId(body.root.x), alg: 'EdDSA', x: body.root.x, use: 'root', iss: 'root', state: 'active' }])
      const [keys, policy, fresh] = body.documents
      const tenant = decodeJwt(keys).aud as string
      const keySet = openDocument<KeySetClaims>(keys, DOCUMENT_KINDS.keys, { keys: root, audience: tenant, now: Date.now() / 1_000 })
      expect(keySet.ok && KeySetClaims.parse(keySet.claims).keys.filter((k) => k.state === 'active').map((k) => k.use).sort()).toEqual(['freshness', 'policy', 'receipt', 'token'])
      const ring = keyRing(keySet.ok ? keySet.claims.keys : [])
      const opened = openDocument<PolicyClaims>(policy, DOCUMENT_KINDS.policy, { keys: ring, audience: shop.storeId, now: Date.now() / 1_000 })
      expect(opened.ok && PolicyClaims.parse(opened.claims).devices.length).toBe(4)
      const time = openDocument<FreshClaims>(fresh, DOCUMENT_KINDS.fresh, { keys: ring, audience: shop.storeId, now: Date.now() / 1_000 })
      expect(time.ok && FreshClaims.parse(time.claims).policy.ver).toBe(opened.ok && opened.claims.ver)
    })

    it('answers the same code with the same key again, and refuses it to another', async () => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const first = await enrol(code, keyOf(2))
      expect((await enrol(code.toLowerCase().replaceAll('-', ' '), keyOf(2), { proof: proofFor(shop, code, 'led_other', keyOf(2).signer) })).body.agentId).toBe(first.body.agentId)
      expect(await enrol(code, keyOf(3))).toMatchObject({ status: 409, body: { reason: 'code_used' } })
    })

    it('refuses a ledger that another agent tells of, and names that no ledger has', async () => {
      const ledger = (await enrolTestAgent(shop)).ledgerId
      const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
      const { stores } = await shop.cloud.ok(stranger, 'fetchStores')
      for (const [i, make] of [() => shop.ok('createEnrolmentCode', { storeId: shop.storeId }), () => shop.cloud.ok(stranger, 'createEnrolmentCode', { storeId: stores[0].storeId })].entries()) {
        for (const [n, bad] of [ledger, 'led_\0', '', 'led_x.1', 'led \ud800'].entries()) {
          const { code } = await make()
          const key = keyOf(9_000 + i * 10 + n)
          const answer = await enrol(code, key, { proof: proofFor(shop, code, bad, key.signer) })
          expect([bad, answer.status, answer.body.code]).toEqual([bad, bad === ledger ? 409 : 400, bad === ledger ? 'failed-precondition' : 'invalid-argument'])
        }
      }
    })

    it('forgets codes once they have ended', async () => {
      const { database } = shop.cloud.db
      const { code, expiresAt } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const left = async (afterMs: number) => {
        await database.write((db) => pruneCodes(db, Date.parse(expiresAt) + afterMs))
        return (await database.reads.selectFrom('enrolment_code').select('code_hash').where('code_hash', '=', enrolmentCodeHash(code)).execute()).length
      }
      expect([await left(-1), await left(0)]).toEqual([1, 0])
    })

    it('lets one of 16 keys win a race for one code', async () => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => enrol(code, keyOf(100 + i))))
      expect(answers.filter((a) => a.status === 200)).toHaveLength(1)
    })

    it('refuses a wrong code, a proof by another key, for another address, and after ten tries everything', async () => {
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
    ])('tells an agent whose clock is far %s that it is, and counts no try', async (_name, aheadS, seed) => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const proof = proofFor(shop, code, 'led_clock', keyOf(seed).signer, shop.cloud.baseUrl, aheadS)
      for (let i = 0; i < 12; i++) expect(await enrol(code, keyOf(seed), { proof })).toMatchObject({ status: 400, body: { details: [{ path: 'proof', code: 'clock_wrong' }] } })
      expect(await enrol(code, keyOf(seed))).toMatchObject({ status: 200 })
    })

    it.each([
      ['a point of small order', Buffer.alloc(32).toString('base64url')],
      ['a non-canonical point', Buffer.from('ff'.repeat(32), 'hex').toString('base64url')],
      ['no key at all', 'AAAA'],
    ])('refuses %s as a key', async (_name, x) => {
      const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
      const answer = await enrol(code, keyOf(6), { publicJwk: { kty: 'OKP', crv: 'Ed25519', x } })
      expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'publicJwk.x', code: 'weak_key' }] } })
    })
  })

  describe('login', () => {
    it('takes an assertion once, and only of the agent’s own key', async () => {
      const agent = await enrolTestAgent(shop)
      const { challenge } = (await shop.cloud.call(null, 'agentLogin', { agentId: agent.agentId })).body
      const assertion = agent.messages.assertion(challenge, Date.now())
      const send = (body: Json) => shop.cloud.call(null, 'agentLogin', body)
      expect((await send({ agentId: agent.agentId, assertion })).body.accessToken).toMatch(/^untag_agent_/)
      expect((await send({ agentId: agent.agentId, assertion })).status).toBe(401)
      const other = await enrolTestAgent(shop)
      const { challenge: mine } = (await send({ agentId: agent.agentId })).body
      expect((await send({ agentId: agent.agentId, assertion: other.messages.assertion(mine, Date.now()) })).status).toBe(401)
      expect((await send({ agentId: other.agentId, assertion: other.messages.assertion(mine, Date.now()) })).status).toBe(401)
      expect((await send({ agentId: 'agt_nobody', assertion })).status).toBe(401)
    })

    it('lets an agent do what agents may, in its own store', async () => {
      const agent = await enrolTestAgent(shop)
      expect((await agent.call('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate' })).status).toBe(403)
      expect((await agent.call('fetchPurchase', { transactionId: 'pur_x' })).status).toBe(403)
      const elsewhere = await enrolTestAgent(shop, shop.otherStoreId)
      expect((await elsewhere.call('reportDeviceHeartbeat', { deviceId: shop.devices.exit_gate })).status).toBe(404)
      expect((await elsewhere.call('verifyProtectedItem', { deviceId: shop.devices.exit_gate, protectionAction: 'verify_item_status', epc: 'AAAA' })).body).toMatchObject({ reason: 'device_unknown' })
    })
  })

  describe('documents', () => {
    it('come when they are newer than what the agent has, the freshness always', async () => {
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

    it('deny what was revoked, page by page', async () => {
      const agent = await enrolTestAgent(shop)
      await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.cabinet_unlocker })
      const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
      await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
      const { body } = await agent.call('fetchSignedDocuments', { have: { deny: [0, 0] } })
      const page = DenyClaims.parse(decodeJwt(body.documents.find((d: string) => decodeProtectedHeader(d).typ === 'deny+jwt')))
      expect(page).toMatchObject({ after: 0 })
      expect(page.entries.some((e) => e.kind === 'receipt')).toBe(true)
    })

    it('count as confirmed up to what was given, and not further: a refund waits for that', async () => {
      const agent = await enrolTestAgent(shop)
      const confirmed = async () => (await shop.ok('fetchAgents', { storeId: shop.storeId })).agents.find((a: Json) => a.agentId === agent.agentId).denyVersion
      const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
      await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
      await agent.call('fetchSignedDocuments', { have: { deny: [0, Number.MAX_SAFE_INTEGER] } })
      expect(await confirmed()).toBe(0)
      const { body } = await agent.call('fetchSignedDocuments', { have: { deny: [0, 0] } })
      const { ver } = decodeJwt<DenyClaims>(body.documents.find((d: string) => decodeProtectedHeader(d).typ === 'deny+jwt'))
      await agent.call('fetchSignedDocuments', { have: { deny: [0, ver] } })
      expect(await confirmed()).toBe(ver)
    })

    it('of items count as taken up to what was given, and not further: what shoppers are told rests on that', async () => {
      const agent = await enrolTestAgent(shop)
      await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ ean: shop.products[0].ean, tagId: 'HT-taken', epc: newEpc() }] })
      const { services } = shop.cloud.cloud
      const { epoch, ver } = await itemsHead(shop.cloud.db.database.reads, shop.storeId, services)
      const taken = async (seq: number) => {
        await agent.call('fetchSignedDocuments', { have: { items: [epoch, seq] } })
        return (await shop.cloud.db.database.reads.selectFrom('agent').select('item_seq').where('agent_id', '=', agent.agentId).executeTakeFirstOrThrow()).item_seq
      }
      expect([ver > 0, await taken(ver + 1), await taken(ver)]).toEqual([true, 0, ver])
    })

    it('deny nothing that has ended anyway: a new agent need not turn the pages of years, and the list does not grow for ever', async () => {
      const agent = await enrolTestAgent(shop)
      const { database } = shop.cloud.db
      const nowMs = shop.cloud.platform.clock.wall()
      const nowS = Math.floor(nowMs / 1_000)
      const call = { services: shop.cloud.cloud.services, afterCommit: () => undefined }
      const entry = (n: number, until: number) => ({ kind: 'nonce' as const, nonce: `${until}-${n}`, until })
      await database.write((db) => deny({ ...call, db }, shop.storeId, Array.from({ length: 700 }, (_, n) => entry(n, nowS - 15 * 86_400))))
      await database.write((db) => deny({ ...call, db }, shop.storeId, [entry(0, nowS - 60), entry(1, nowS + 600)]))
      const last = await database.write((db) => deny({ ...call, db }, shop.storeId, Array.from({ length: 700 }, (_, n) => entry(n, nowS - 1))))
      const page = async () => {
        const { body } = await agent.call('fetchSignedDocuments', { have: { deny: [0, 0] } })
        const { ver, entries } = decodeJwt<DenyClaims>(body.documents.find((d: string) => decodeProtectedHeader(d).typ === 'deny+jwt'))
        return { ver, more: body.nextCursor, nonces: entries.flatMap((e) => (e.kind === 'nonce' && e.nonce.startsWith(String(nowS + 600)) ? [e.nonce] : [])) }
      }
      const whole = { ver: last, more: undefined, nonces: [`${nowS + 600}-1`] }
      expect(await page()).toEqual(whole)
      await database.write((db) => pruneDenied(db, nowMs))
      expect(await page()).toEqual(whole)
      const kept = await database.reads.selectFrom('deny_entry').select('until_s').where('store_id', '=', shop.storeId).orderBy('until_s').execute()
      expect(kept[0]?.until_s).toBeGreaterThan(nowS - 14 * 86_400)
      expect(kept.filter(({ until_s }) => until_s <= nowS)).toHaveLength(701)
    })

    it('deny in pages that agents take, however many rights an entry holds', async () => {
      const agent = await enrolTestAgent(shop)
      const ordinals = Array.from({ length: 400 }, (_, n) => n)
      const { database } = shop.cloud.db
      const { deny_seq: first } = await database.reads.selectFrom('store').select('deny_seq').where('store_id', '=', shop.storeId).executeTakeFirstOrThrow()
      const entries = Array.from({ length: 300 }, (_, n) => ({ kind: 'right' as const, cti: n.toString(16).padStart(32, '0'), rightClass: 'release' as const, ordinals, until: 4_000_000_000 }))
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

    it('bind a device to the first agent that reports it, and make the first with an exit gate the home', async () => {
      const other = await openShop(kind)
      const [first, second] = [await enrolTestAgent(other), await enrolTestAgent(other)]
      expect((await first.call('reportDeviceHeartbeat', { deviceId: other.devices.exit_gate })).status).toBe(200)
      expect(await second.call('reportDeviceHeartbeat', { deviceId: other.devices.exit_gate })).toMatchObject({ status: 409, body: { reason: 'device_of_another_agent' } })
      const { policy, version } = await other.ok('fetchProtectionPolicy', { storeId: other.storeId })
      expect(policy).toMatchObject({ home: first.agentId, homeEpoch: 1 })
      expect(version).toBe(1)
      const { devices } = await other.ok('fetchDevices', { storeId: other.storeId })
      expect(devices.find((d: Json) => d.deviceId === other.devices.exit_gate)).toMatchObject({ agentId: first.agentId, lastSeenAt: expect.any(String) })
      await other.stop()
    })
  })

  describe('the journal', () => {
    let agent: TestAgent
    let gate: Shop
    beforeAll(async () => {
      gate = await openShop(kind)
      agent = await enrolTestAgent(gate)
      await agent.call('reportDeviceHeartbeat', { deviceId: gate.devices.pos_deactivator })
    })
    afterAll(() => gate.stop())

    const ackOf = (body: Json) => AckClaims.parse(decodeJwt(body.ack))
    const claim = (nonce: string, redemptionId: string, ordinals = [0]): Evidence => ({
      kind: 'claim',
      redemptionId,
      nonce,
      source: 'token',
      rightClass: 'release',
      ordinals,
      deviceId: gate.devices.pos_deactivator,
    })
    const grant = async () => {
      const purchase = await gate.buy([{ ean: gate.products[0].ean, quantity: 1 }])
      const { body } = await agent.call('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: gate.devices.pos_deactivator })
      return { purchase, nonce: body.replayProtectedNonce as string, rights: body.receiptRights }
    }

    it('binds the token to the agent’s ledger, and tells which rights of the receipt it covers', async () => {
      const { rights, nonce } = await grant()
      expect(rights).toMatchObject({ rightClass: 'release', ordinals: [0] })
      const row = await gate.cloud.db.database.reads.selectFrom('protection_authorization').select('ledger').where('nonce', '=', nonce).executeTakeFirst()
      expect(row?.ledger).toBe(`${agent.ledgerId}.1`)
    })

    it('is taken in once, in order, with an ack that is signed for this ledger', async () => {
      const { purchase, nonce } = await grant()
      const rows = [agent.row({ evidence: claim(nonce, 'red-1') }), agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-1', outcome: 'confirmed' } })]
      const first = await agent.report(rows)
      expect(first.body).toMatchObject({ accepted: 2, duplicates: 0 })
      expect(ackOf(first.body)).toMatchObject({ aud: agent.agentId, ledger: agent.ledgerId, generation: 1, seq: 2, head: rows[1]?.hash })
      const again = await agent.report(rows)
      expect(again.body).toMatchObject({ accepted: 0, duplicates: 2 })
      expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ securityTagStatus: 'deactivated' })
    })

    it('waits for what is missing', async () => {
      const [one, two] = [agent.row({}), agent.row({})]
      const early = await agent.report([two])
      expect(early.body).toMatchObject({ accepted: 0 })
      expect(ackOf(early.body).seq).toBe(one.seq - 1)
      expect((await agent.report([one, two])).body).toMatchObject({ accepted: 2 })
    })

    it('refuses an altered row, another chain, another agent’s batch, another generation', async () => {
      const row = agent.row({})
      expect((await agent.report([{ ...row, body: { ...row.body, atMs: row.body.atMs + 1 } }])).status).toBe(400)
      expect((await agent.report([row], 'x'.repeat(43))).status).toBe(400)
      const stranger = await enrolTestAgent(gate)
      const batch = agent.messages.batch(agent.hashBefore(row.seq), [row], Date.now())
      expect((await stranger.call('reportProtectionEvents', { batch })).status).toBe(400)
      expect((await gate.call('reportProtectionEvents', { batch })).status).toBe(403)
      expect((await agent.report([row])).body).toMatchObject({ accepted: 1 })
    })

    it('tells a second copy of the ledger', async () => {
      const last = agent.row({})
      await agent.report([last])
      const copy = { ...last, body: { atMs: 7 } }
      const { rowHash } = await import('../../policy/journal.ts')
      const forged = { ...copy, hash: rowHash(agent.hashBefore(last.seq), last.seq, JSON.stringify(copy.body)) }
      expect(await agent.report([forged])).toMatchObject({ status: 409, body: { reason: 'ledger_fork' } })
      const { events } = await gate.ok('fetchProtectionEvents', { storeId: gate.storeId, type: 'protection.exception.raised' })
      expect(events.map((e: Json) => e.reason)).toContain('agent_fork')
    })

    it('tells a second copy also by rows that lie before the last known one', async () => {
      const one = await enrolTestAgent(gate)
      const { rowHash, genesisHash } = await import('../../policy/journal.ts')
      const rows = [one.row({}), one.row({}), one.row({})]
      expect((await one.report(rows)).body).toMatchObject({ accepted: 3 })
      const body = { atMs: 7 }
      const copyOf = (seq: number) => ({ seq, body, hash: rowHash(seq === 1 ? genesisHash(one.ledgerId, 1) : one.hashBefore(seq), seq, JSON.stringify(body)) })
      // What is only late says nothing new.
      expect((await one.report(rows.slice(0, 2))).body).toMatchObject({ accepted: 0, duplicates: 2 })
      for (const seq of [1, 2]) expect(await one.report([copyOf(seq)], seq === 1 ? genesisHash(one.ledgerId, 1) : one.hashBefore(seq))).toMatchObject({ status: 409, body: { reason: 'ledger_fork' } })
    })

    it('keeps and acknowledges what cannot be applied: one event never blocks another', async () => {
      const { purchase, nonce } = await grant()
      const rows = [
        agent.row({ evidence: claim('A'.repeat(22), 'red-unknown') }),
        agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-nobody', outcome: 'confirmed' } }),
        agent.row({ evidence: claim(nonce, 'red-2') }),
        agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-2', outcome: 'confirmed' } }),
      ]
      expect((await agent.report(rows)).body).toMatchObject({ accepted: 4 })
      expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ securityTagStatus: 'deactivated' })
      const unapplied = await gate.cloud.db.database.reads.selectFrom('journal_row').select('seq').where('agent_id', '=', agent.agentId).where('applied', '=', 0).execute()
      expect(unapplied.map((r) => r.seq)).toEqual([rows[0]?.seq, rows[1]?.seq])
    })

    /** Tries the agent's unapplied rows again; how many could be applied. */
    async function retryOf(agentId: string): Promise<number> {
      let applied = 0
      const call = { services: gate.cloud.cloud.services, nowMs: Date.now(), emit: () => undefined, afterCommit: () => undefined }
      await retryUnapplied(agentId, (work) => gate.cloud.db.database.write(async (db) => void (applied += await work({ ...call, db }))))
      return applied
    }

    it('keeps and acknowledges rows that it cannot read whole, takes their evidence, and reads them after an upgrade', async () => {
      const { database } = gate.cloud.db
      const { purchase, nonce } = await grant()
      const told = (change: Json) => ({ type: 'protection.exception.raised', eventId: `evt-${nonce}-${JSON.stringify(change).length}`, occurredAt: new Date().toISOString(), storeId: gate.storeId, reason: 'gate_alarm', ...change }) as ProtectionEvent
      // More than one look tries again.
      for (let batch = 0; batch < 6; batch++) {
        const strange = Array.from({ length: 100 }, () => agent.row({ event: told({ epc: 'AB'.repeat(75) }) }))
        expect((await agent.report(strange)).body).toMatchObject({ accepted: 100 })
      }
      const rows = [
        agent.row({ event: told({ epc: 'AB'.repeat(75) }) }),
        agent.row({ evidence: claim(nonce, 'red-unread'), event: told({ colour: 'a field of a newer release' }) }),
        agent.row({ event: told({ detail: 'half a \ud83d character, and \0' }) }),
        agent.row({ evidence: { kind: 'forgotten' } as never }),
        agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-unread', outcome: 'confirmed' } }),
        agent.row({ event: told({ epc: 'AB'.repeat(62) }) }),
      ]
      expect((await agent.report(rows)).body).toMatchObject({ accepted: 6 })
      expect((await agent.report(rows)).body).toMatchObject({ accepted: 0, duplicates: 6 })
      expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ securityTagStatus: 'deactivated' })
      const kept = () => database.reads.selectFrom('journal_row').select(['seq', 'body', 'applied']).where('agent_id', '=', agent.agentId).where('seq', '>=', rows[0]?.seq ?? 0).orderBy('seq').execute()
      expect((await kept()).map((row) => [row.body, Boolean(row.applied)])).toEqual(rows.map((row, i) => [JSON.stringify(row.body), i > 3]))
      const about = async (subject: string) => ((await gate.ok('fetchExceptions', { storeId: gate.storeId, kind: 'unapplied', state: 'open' })).exceptions as Json[]).filter((each) => each.subject === subject)
      expect(await about('red-unread')).toEqual([expect.objectContaining({ detail: expect.stringContaining('colour') })])
      expect(await about(agent.agentId)).toEqual([expect.objectContaining({ detail: expect.stringContaining('epc') })])

      const retry = () => retryOf(agent.agentId)
      expect(await retry()).toBe(0)
      // A release that knows the field, so to speak.
      const { colour: _, ...event } = (rows[1]?.body.event ?? {}) as Json
      await database.write((db) => db.updateTable('journal_row').set({ body: JSON.stringify({ ...rows[1]?.body, event }) }).where('agent_id', '=', agent.agentId).where('seq', '=', rows[1]?.seq ?? 0).execute())
      expect(await retry()).toBe(1)
      expect(await about('red-unread')).toEqual([])
      const redeemed = await database.reads.selectFrom('redemption').select('redemption_id').where('nonce', '=', nonce).execute()
      expect(redeemed).toEqual([{ redemption_id: 'red-unread' }])
      expect((await gate.ok('fetchProtectionEvents', { storeId: gate.storeId, limit: 500 })).events.filter((each: Json) => each.eventId === event.eventId)).toHaveLength(1)
    })

    it('keeps evidence with names that no database has room for, and what comes behind it counts', async () => {
      const { purchase, nonce } = await grant()
      const rows = [
        agent.row({ evidence: { kind: 'void', nonce: 'a\0b' } }),
        agent.row({ evidence: { kind: 'outcome', redemptionId: 'a\0b', outcome: 'failed' } }),
        agent.row({ evidence: claim(nonce, 'red-\0') }),
        agent.row({ evidence: claim(nonce, 'red-behind') }),
        agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-behind', outcome: 'confirmed' } }),
      ]
      expect((await agent.report(rows)).body).toMatchObject({ accepted: 5 })
      expect(await gate.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({ securityTagStatus: 'deactivated' })
    })

    it('shows that an agent’s rows cannot be read until the last of them is', async () => {
      const { database } = gate.cloud.db
      const other = await enrolTestAgent(gate)
      await other.report([other.row({ evidence: { kind: 'forgotten' } as never }), other.row({ evidence: { kind: 'forgotten too' } as never })])
      const open = async () => ((await gate.ok('fetchExceptions', { storeId: gate.storeId, kind: 'unapplied', state: 'open' })).exceptions as Json[]).filter(({ subject }) => subject === other.agentId)
      const retry = () => retryOf(other.agentId)
      // A release that knows them, so to speak: one tells of nothing, the other of a token.
      const become = (seq: number, body: Json) => database.write((db) => db.updateTable('journal_row').set({ body: JSON.stringify({ atMs: Date.now(), ...body }) }).where('agent_id', '=', other.agentId).where('seq', '=', seq).execute())
      expect(await open()).toHaveLength(1)
      await become(1, {})
      expect(await retry()).toBe(1)
      expect(await open()).toHaveLength(1)
      await become(2, { evidence: { kind: 'void', nonce: (await grant()).nonce } })
      expect(await retry()).toBe(1)
      expect(await open()).toEqual([])
    })

    it('tells late, double and foreign redemptions without losing them', async () => {
      const reasons = async () => (await gate.ok('fetchProtectionEvents', { storeId: gate.storeId, type: 'protection.exception.raised', limit: 500 })).events.map((e: Json) => e.reason)
      const late = await grant()
      await agent.report([agent.row({ evidence: claim(late.nonce, 'red-late'), atMs: Date.now() + 400_000 })])
      expect(await reasons()).toContain('late_redeem')
      const double = await grant()
      await agent.report([agent.row({ evidence: claim(double.nonce, 'red-a') }), agent.row({ evidence: claim(double.nonce, 'red-b') })])
      expect(await reasons()).toContain('double_redeem')
      const foreign = await grant()
      const other = await enrolTestAgent(gate)
      await other.report([other.row({ evidence: claim(foreign.nonce, 'red-foreign') })])
      expect(await reasons()).toContain('foreign_evidence')
      const state = await gate.cloud.db.database.reads.selectFrom('redemption').select('redemption_id').where('nonce', '=', foreign.nonce).execute()
      expect(state).toEqual([])
    })

    it('does not free what something else has released as well, when the first try turns out to have failed', async () => {
      const { purchase, nonce } = await grant()
      await agent.report([
        agent.row({ evidence: claim(nonce, 'red-first') }),
        agent.row({ evidence: claim(nonce, 'red-second') }),
        agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-second', outcome: 'confirmed' } }),
        agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-first', outcome: 'failed' } }),
      ])
      const { body } = await agent.call('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: gate.devices.pos_deactivator })
      expect(body).toMatchObject({ deactivationAuthorized: false, authorizationToken: null, reason: 'already_redeemed' })
    })

    it('frees the lease of a token that the agent voids', async () => {
      const { purchase, nonce } = await grant()
      const kiosk = await gate.ok('registerDevice', { storeId: gate.storeId, deviceType: 'pos_deactivator' })
      const elsewhere = () => gate.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: kiosk.deviceId })
      expect(await elsewhere()).toMatchObject({ deactivationAuthorized: false, reason: 'authorization_outstanding', retryAfter: expect.any(Number) })
      await agent.report([agent.row({ evidence: { kind: 'void', nonce } })])
      expect(await elsewhere()).toMatchObject({ deactivationAuthorized: true })
    })

    it('completes an agent’s event with what only the cloud knows', async () => {
      const { purchase, nonce } = await grant()
      const event = {
        type: 'protection.action.completed' as const,
        eventId: `evt-${nonce}`,
        occurredAt: new Date().toISOString(),
        storeId: 'st_elsewhere',
        deviceId: gate.devices.pos_deactivator,
        replayProtectedNonce: nonce,
      }
      await agent.report([agent.row({ evidence: claim(nonce, 'red-3') }), agent.row({ event })])
      const { events } = await gate.ok('fetchProtectionEvents', { storeId: gate.storeId, purchaseId: purchase.transactionId, type: 'protection.action.completed' })
      expect(events).toEqual([expect.objectContaining({ eventId: event.eventId, storeId: gate.storeId, laneId: 'lane_1', deviceType: 'pos_deactivator', processedAt: expect.any(String) })])
    })

    it('tries what has become known again however much before it never does', async () => {
      const { database } = gate.cloud.db
      const other = await enrolTestAgent(gate)
      const unknown = (n: number) => other.row({ evidence: { kind: 'void', nonce: `nobody-knows-${n}` } })
      for (let page = 0; page < 6; page++) await other.report(Array.from({ length: 100 }, (_, n) => unknown(page * 100 + n)))
      const last = other.row({ evidence: { kind: 'forgotten' } as never })
      await other.report([last])
      const body = JSON.stringify({ atMs: Date.now(), evidence: { kind: 'void', nonce: (await grant()).nonce } })
      await database.write((db) => db.updateTable('journal_row').set({ body }).where('agent_id', '=', other.agentId).where('seq', '=', last.seq).execute())
      expect(await retryOf(other.agentId)).toBe(1)
      const unapplied = await database.reads.selectFrom('journal_row').select('seq').where('agent_id', '=', other.agentId).where('applied', '=', 0).execute()
      expect(unapplied).toHaveLength(600)
      expect(unapplied.map(({ seq }) => seq)).not.toContain(last.seq)
    })
  })

  it('signs the time for anyone, answering their own nonce', async () => {
    const nonce = 'n'.repeat(22)
    const { body } = await shop.cloud.get(`/api/v1/time?nonce=${nonce}`)
    expect(decodeJwt(body.time)).toMatchObject({ aud: nonce, timeMs: expect.any(Number) })
    expect((await shop.cloud.get('/api/v1/time?nonce=x')).status).toBe(400)
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
