import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { listen, type HttpServer } from '../../bin/http-server.ts'
import { realPlatform } from '../../bin/platform.ts'
import { secretFiles } from '../../bin/secret-files.ts'
import { result, type ProtectionDevice } from '../../device-drivers/drivers/device.ts'
import { readConfig } from '../../edge-agent/config.ts'
import { localApp } from '../../edge-agent/http/local-app.ts'
import { enrol, keepFirstDocuments } from '../../edge-agent/link/enrol.ts'
import type { Fetch } from '../../edge-agent/link/http-client.ts'
import { startAgent, type Agent } from '../../edge-agent/runtime.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { signer } from '../../policy/documents/keys.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import { readIdentity, writeIdentity, type Identity } from '../../edge-agent/trust/identity.ts'
import { noteForked } from '../../edge-agent/trust/ledger-doubt.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { until } from '../support/receiver.ts'
import { openShop, type Shop } from '../support/shop.ts'

/** Agents of one store over real sockets, and a cloud that can be cut off. */
interface Node {
  agent: Agent
  folder: string
  deviceId: string
  port: number
  server: HttpServer
  /** What its actuator does. */
  outcome: 'confirmed' | 'failed' | 'unknown'
  moved: number
}

const platform = realPlatform()
const log = { info: () => undefined, warn: () => undefined, error: () => undefined }

describe('the home of a store’s receipts', () => {
  let shop: Shop
  let isUp = true
  let nodes: Node[] = []
  /** What passed between the agents, and whether it may. */
  let sent: { url: string; body: string; answer: string }[] = []
  let lost: string[] = []
  let onLan: (url: string) => 'pass' | 'lose answer' | 'cut' = () => 'pass'

  const fetchAll: Fetch = async (url, init) => {
    if (url.startsWith('https://shop.example')) {
      if (!isUp) throw new Error('the cloud is away')
      const answer = await shop.cloud.cloud.app.request(url.replace('https://shop.example', ''), { method: init.method, headers: init.headers, ...(init.body !== undefined && { body: init.body }) })
      return { status: answer.status, text: () => answer.text() }
    }
    const fate = onLan(url)
    if (fate === 'cut') {
      lost.push(init.body ?? '')
      throw new Error('no way there')
    }
    const answer = await fetch(url, init)
    const text = await answer.text()
    sent.push({ url, body: init.body ?? '', answer: text })
    if (fate === 'lose answer') throw new Error('the answer was lost')
    return { status: answer.status, text: () => Promise.resolve(text) }
  }

  async function run(node: Omit<Node, 'agent' | 'server'>): Promise<void> {
    const server = await listen({ host: '127.0.0.1', port: node.port, flag: 'port' })
    const checked = readConfig(JSON.stringify({ devices: [{ deviceId: node.deviceId, driver: 'modbus', link: { tcp: '127.0.0.1:1' }, output: 0 }] }))
    if (!checked.ok) throw new Error(checked.faults.join())
    const running = node as Node
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => (end = resolve))
    const device: ProtectionDevice = {
      connect: async () => undefined,
      identify: async () => ({ description: 'a gate' }),
      untilLost: () => new Promise(() => undefined),
      execute: async ({ kind }) => {
        if (kind === 'release') running.moved++
        const details = { failed: 'refused', unknown: 'answer_lost', confirmed: 'acknowledged' } as const
        return result(running.outcome, true, details[running.outcome])
      },
      events: (async function* () {
        await ended
        yield* []
      })(),
      close: async () => end(),
    }
    running.server = server
    running.port = server.port
    running.agent = startAgent({
      platform,
      dataDir: node.folder,
      identity: readIdentity(node.folder, secretFiles) as Identity,
      keepIdentity: (identity) => writeIdentity(node.folder, identity, secretFiles),
      config: checked.config,
      fetch: fetchAll,
      openLine: () => Promise.reject(new Error('no broker')),
      openLink: () => Promise.reject(new Error('no link')),
      openDevice: () => device,
      address: `http://127.0.0.1:${server.port}`,
      log,
      onFatal: () => undefined,
    })
    server.serve(localApp(running.agent, { hosts: () => [`127.0.0.1:${server.port}`], log }))
  }

  async function addAgent(deviceId: string): Promise<Node> {
    const folder = temporaryFolder('home')
    const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
    const enrolled = await enrol({ cloud: shop.cloud.baseUrl, code, platform, fetch: fetchAll })
    if (!enrolled.ok) throw new Error(enrolled.why)
    keepFirstDocuments(join(folder, 'ledger.db'), enrolled.identity, enrolled.documents, platform)
    writeIdentity(folder, enrolled.identity, secretFiles)
    const node = { folder, deviceId, port: 0, outcome: 'confirmed' as const, moved: 0 }
    await run(node)
    nodes.push(node as Node)
    await (node as Node).agent.ready(5_000)
    await ready(node as Node)
    return node as Node
  }
  const ready = (node: Node) => until('the device', async () => node.agent.status().devices.every((d) => d.state === 'ready'))
  const kill = async (node: Node) => {
    await node.server.close()
    await node.agent.stop()
  }
  const leave = async (node: Node, receipt: string, headers: Record<string, string> = {}): Promise<Json> => {
    const answer = await fetch(`http://127.0.0.1:${node.port}/v1/authorize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ deviceId: node.deviceId, protectionAction: 'authorize_exit', receipt }),
    })
    return answer.json()
  }
  const receipt = async () => {
    const { transactionId } = await shop.buy([{ ean: shop.products.toSorted((a, b) => a.price - b.price)[0].ean, quantity: 2 }])
    return { purchaseId: transactionId as string, text: (await shop.ok('generateReceiptQR', { purchaseId: transactionId })).url as string }
  }
  const play = (question: string) => fetch(`http://127.0.0.1:${home.port}/v1/home/redeem`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: question })
  const heard = (node: Node) => until('the home to have heard', async () => !node.agent.ledger.homeAsks.isWaiting && node.agent.ledger.homeAsks.open().length === 0, 15_000)
  const cutCloud = async () => {
    isUp = false
    for (const node of nodes) {
      await node.agent.link.look()
      await until('offline', async () => !node.agent.link.isOnline)
    }
  }

  let home: Node
  let other: Node
  beforeEach(async () => {
    isUp = true
    onLan = () => 'pass'
    sent = []
    lost = []
    nodes = []
    shop = await openShop('sqlite')
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, offline: { ...policy.offline, hardCount: 1 } } })
    const { deviceId } = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate' })
    home = await addAgent(shop.devices.exit_gate)
    other = await addAgent(deviceId)
    for (const node of nodes)
      await until('everybody known', async () => {
        await node.agent.link.look()
        const { agents, policy: known } = node.agent.trust.policy ?? {}
        return known?.home === home.agent.identity.agentId && agents?.filter((a) => a.url !== null).length === 2
      })
  })
  afterEach(async () => {
    for (const node of nodes) {
      await kill(node).catch(() => undefined)
      rmSync(node.folder, { recursive: true, force: true })
    }
    await shop.stop()
  })

  it('redeems one receipt once across two agents while the cloud is away, whoever asks first, and at the same time', async () => {
    const [first, second, third] = [await receipt(), await receipt(), await receipt()]
    await cutCloud()
    expect(await leave(other, first.text)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed', itemCount: 2 })
    expect(await leave(home, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await leave(other, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await leave(home, second.text)).toMatchObject({ authorized: true })
    expect(await leave(other, second.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    const both = await Promise.all([leave(home, third.text), leave(other, third.text), leave(other, third.text)])
    expect(both.filter((answer) => answer.authorized)).toHaveLength(1)
    // Not one of them was isolated: nothing was counted.
    expect(other.agent.ledger.claims.isolatedCount).toBe(0)
    isUp = true
    for (const node of nodes) await until('all told', async () => node.agent.link.isOnline && node.agent.ledger.journal.waiting === 0, 20_000)
    const { events } = await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, limit: 500 })
    expect(events.filter((e: Json) => e.purchaseId === first.purchaseId && e.type === 'protection.action.completed')).toHaveLength(1)
    expect(events.filter((e: Json) => e.type === 'protection.exception.raised').map((e: Json) => e.reason)).toEqual([])
  })

  it('gives a unit to each of two requests of one moment at one device, and none to a third', async () => {
    const station = await addAgent(shop.devices.pos_deactivator)
    await until('its home', async () => (await station.agent.link.look(), station.agent.home.isElsewhere))
    await until('known to the home', async () => (await home.agent.link.look(), home.agent.trust.policy?.agents?.some(({ agentId }) => agentId === station.agent.identity.agentId) === true))
    const { text } = await receipt()
    await cutCloud()
    const release = () => station.agent.lanes.request({ deviceId: station.deviceId, action: 'deactivate_label', receipt: text, identifiers: {} })
    const answers = await Promise.all([release(), release()])
    expect(answers).toMatchObject([{ authorized: true }, { authorized: true }])
    expect(await release()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect([station.moved, station.agent.ledger.claims.isolatedCount]).toEqual([2, 0])
  })

  it('gives the same answer to the same redemption, over a lost answer and a home that was killed, and takes back what failed', async () => {
    const [first, second] = [await receipt(), await receipt()]
    await cutCloud()
    onLan = () => 'lose answer'
    const { policy } = other.agent.trust
    expect(policy?.policy.offline.hardCount).toBe(1)
    const wish = { cti: 'ab'.repeat(16), rightClass: 'exit' as const, candidates: [0, 1], all: true, exp: 4_000_000_000, deviceId: other.deviceId }
    expect(await other.agent.home.ask(wish)).toMatchObject({ unreachable: true })
    await kill(home)
    await run(home)
    await ready(home)
    onLan = () => 'pass'
    const answer = await other.agent.home.ask(wish)
    expect(answer).toMatchObject({ ordinals: [0, 1], remaining: 0 })
    expect(await other.agent.home.ask(wish)).toEqual(answer)
    // Under another id, as another device would ask, they are gone.
    expect(await other.agent.home.ask({ ...wish, deviceId: 'dev_x' })).toMatchObject({ reason: 'already_redeemed' })
    other.outcome = 'failed'
    expect(await leave(other, first.text)).toMatchObject({ authorized: true, outcome: 'failed' })
    expect(await leave(home, first.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    other.outcome = 'confirmed'
    // A question that is shown again gives nothing back and nothing out.
    const failed = sent.filter(({ body }) => body.includes('question')).map(({ url, body }) => ({ url, body }))
    for (const { url, body } of failed) await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    expect(await leave(other, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await leave(other, second.text)).toMatchObject({ authorized: true })
  })

  it('hears what became of what it gave, however long it cannot be told, and then does not refuse what the cloud grants', async () => {
    const [first, second] = [await receipt(), await receipt()]
    await cutCloud()
    other.outcome = 'failed'
    let questions = 0
    onLan = () => (++questions === 1 ? 'pass' : 'cut')
    expect(await leave(other, first.text)).toMatchObject({ authorized: true, outcome: 'failed', offline: true })
    expect(await leave(home, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    // It is remembered over the end of a process.
    await kill(other)
    await run(other)
    await ready(other)
    onLan = () => 'pass'
    await heard(other)
    isUp = true
    await until('all told', async () => nodes.every((node) => node.agent.link.isOnline && node.agent.ledger.journal.waiting === 0), 30_000)
    expect(await leave(home, first.text)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
    expect(await leave(other, first.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await leave(home, second.text)).toMatchObject({ authorized: true })
  })

  it('is told when nobody goes on with what it gave, for its answer was lost; and not when it was used all the same', async () => {
    const [used, refused, late] = [await receipt(), await receipt(), await receipt()]
    await cutCloud()
    onLan = () => 'lose answer'
    expect(await leave(other, used.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(other.agent.ledger.claims.isolatedCount).toBe(1)
    expect(await leave(other, refused.text)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    for (const { text } of [used, refused]) expect(await leave(home, text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    // A question that arrives when nobody waits for its answer any more.
    onLan = () => 'cut'
    expect(await leave(other, late.text)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    const [question = ''] = lost
    onLan = () => 'pass'
    await heard(other)
    expect((await play(question)).status).toBe(403)
    expect(await leave(home, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await leave(home, refused.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await leave(home, late.text)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect([other.moved, home.moved]).toEqual([1, 2])
  })

  it('leaves what another agent does not know to staff', async () => {
    const { operatorId } = await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Petersen', pin: '4711' })
    for (const { agent } of nodes) await until('the operator', async () => (await agent.link.look(), agent.trust.policy?.operators.length === 1))
    const [{ text }, second] = [await receipt(), await receipt()]
    await cutCloud()
    other.outcome = 'unknown'
    expect(await leave(other, text)).toMatchObject({ authorized: true, outcome: 'unknown' })
    await heard(other)
    const signIn = async ({ port }: Node) => {
      const signedIn = await fetch(`http://127.0.0.1:${port}/v1/operator`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ operatorId, pin: '4711' }) })
      return { 'x-untag-operator': ((await signedIn.json()) as Json).session as string }
    }
    const [staff, theirs] = [await signIn(home), await signIn(other)]
    expect(await leave(home, text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await leave(other, text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await leave(home, text, staff)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    for (const at of [staff, theirs]) expect(await leave(at === staff ? home : other, text, at)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(home.moved).toBe(1)
    // Where it happened they may try again as well, and then nobody else.
    expect(await leave(other, second.text)).toMatchObject({ authorized: true, outcome: 'unknown' })
    await heard(other)
    other.outcome = 'confirmed'
    expect(await leave(other, second.text, theirs)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    for (const at of [staff, theirs]) expect(await leave(at === staff ? home : other, second.text, at)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect([home.moved, other.moved]).toEqual([1, 3])
  })

  it('claims nothing by the answer of a home that moved while it was asked', async () => {
    const { text } = await receipt()
    await cutCloud()
    const now = other.agent.trust.policy
    if (!now) throw new Error('no policy')
    const moved = vi.spyOn(other.agent.trust, 'policy', 'get')
    onLan = () => {
      moved.mockReturnValue({ ...now, policy: { ...now.policy, home: other.agent.identity.agentId, homeEpoch: now.policy.homeEpoch + 1 } })
      return 'pass'
    }
    expect(await leave(other, text)).toMatchObject({ authorized: false, reason: 'manual_assistance_required', offline: true })
    expect(other.moved).toBe(0)
    // Whoever gave it hears that it was not used, whether it is the home still or not.
    await heard(other)
    moved.mockRestore()
    expect(await leave(home, text)).toMatchObject({ authorized: true })
  })

  it('gives nothing for questions that are played back, and takes nothing from what may be asked', async () => {
    const [first, second, third] = [await receipt(), await receipt(), await receipt()]
    await cutCloud()
    const question = async (asks: () => Promise<unknown>) => {
      const before = sent.length
      await asks()
      return sent[before]?.body ?? ''
    }
    const given = await question(() => leave(other, first.text))
    const replies = await Promise.all(Array.from({ length: 200 }, () => play(given)))
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await leave(other, second.text)).toMatchObject({ authorized: true })
    // Refused because another has it, for whom it then fails: played back, the question takes nothing.
    const wish = { cti: 'cd'.repeat(16), rightClass: 'exit' as const, candidates: [0], all: true, exp: 4_000_000_000, deviceId: other.deviceId }
    const taken = { ...wish, agentId: 'agt_x', redemptionId: 'rdm_x', nowMs: home.agent.clock.now().nowMs }
    home.agent.ledger.commits.now(() => home.agent.ledger.homeGrants.grant(taken))
    const refused = await question(async () => expect(await other.agent.home.ask(wish)).toMatchObject({ reason: 'already_redeemed' }))
    home.agent.ledger.commits.now(() => home.agent.ledger.homeGrants.hear({ agentId: 'agt_x', redemptionId: 'rdm_x', outcome: 'failed', exp: wish.exp }))
    await kill(home)
    await run(home)
    await ready(home)
    expect(await home.agent.home.answer(JSON.parse(refused).question)).toMatchObject({ kind: 'answer' })
    expect(home.agent.ledger.claims.isFree(wish.cti, 'exit', 0, home.agent.clock.now().nowMs, false)).toBe(true)
    // Old ones that the home has forgotten, or an agent whose clock is wrong: some are answered, and those of now are not held up.
    const { agentId, x, secret } = readIdentity(other.folder, secretFiles) as Identity
    const iat = Math.floor(Date.now() / 1_000) - 7_200
    const claims = { aud: home.agent.identity.agentId, iat, exp: iat + 60, iss: agentId, homeEpoch: 1, rightClass: 'exit' as const, candidates: [0], all: true, receiptExp: iat + 86_400 }
    const old = Array.from({ length: 100 }, (_, i) => {
      const cti = (5_000 + i).toString(16).padStart(32, '0')
      return signDocument(DOCUMENT_KINDS.homeQuestion, { ...claims, jti: cti, redemptionId: `old-${i}`, cti }, signer(x, Buffer.from(secret, 'base64url')))
    })
    const kinds = (await Promise.all(old.map((text) => home.agent.home.answer(text)))).map(({ kind }) => kind)
    expect(kinds.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'answer'))
    expect(kinds).toContain('too_many_questions')
    expect(await leave(other, third.text)).toMatchObject({ authorized: true })
  })

  it('honours within the isolated limits when the home is out of reach, and believes no forged answer', async () => {
    const [first, second, third] = [await receipt(), await receipt(), await receipt()]
    await cutCloud()
    expect((await fetch(`http://127.0.0.1:${home.port}/v1/home/redeem`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ question: 'a.b.c' }) })).status).toBe(403)
    await leave(other, third.text)
    const old = sent.at(-1)?.answer ?? ''
    await kill(home)
    const rogue = await listen({ host: '127.0.0.1', port: home.port, flag: 'port' })
    const { Hono } = await import('hono')
    rogue.serve(new Hono().post('/v1/home/redeem', (c) => c.body(old, 200, { 'content-type': 'application/json' })))
    expect(await leave(other, first.text)).toMatchObject({ authorized: true, offline: true })
    expect(other.agent.ledger.claims.isolatedCount).toBe(1)
    expect(await leave(other, second.text)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    await rogue.close()
    await run(home)
    await ready(home)
    expect(await leave(other, second.text)).toMatchObject({ authorized: true })
  })

  it('decides nothing alone when the cloud says, while the home is asked, that there are two of the ledger', async () => {
    const { text } = await receipt()
    await cutCloud()
    onLan = () => {
      noteForked(other.agent.ledger, true)
      return 'cut'
    }
    expect(await leave(other, text)).toMatchObject({ authorized: false, reason: 'manual_assistance_required', offline: true })
    noteForked(other.agent.ledger, false)
    onLan = () => 'cut'
    expect(await leave(other, text)).toMatchObject({ authorized: true, offline: true })
  })

  it('moves with moveReceiptHome: the new home knows what was used, needs staff for older receipts until it does, and the former gives nothing more', async () => {
    const [used, free] = [await receipt(), await receipt()]
    expect(await leave(home, used.text)).toMatchObject({ authorized: true })
    await until('told', async () => home.agent.ledger.journal.waiting === 0)
    const moved = await shop.ok('moveReceiptHome', { storeId: shop.storeId, home: other.agent.identity.agentId })
    expect(moved).toMatchObject({ home: other.agent.identity.agentId, homeEpoch: 2 })
    expect(await shop.ok('moveReceiptHome', { storeId: shop.storeId, home: moved.home })).toMatchObject({ homeEpoch: 2 })
    expect((await shop.call('moveReceiptHome', { storeId: shop.storeId, home: 'agt_x' })).status).toBe(404)
    const { database } = shop.cloud.db
    await until('the former home to have told all', async () => {
      await home.agent.link.look()
      return (await database.reads.selectFrom('home_move_wait').selectAll().execute()).length === 0
    })
    // The policy has come, the used rights have not yet.
    const [{ deny_seq: last } = { deny_seq: 0 }] = await database.reads.selectFrom('home_move').select('deny_seq').execute()
    expect(last).toBeGreaterThan(0)
    await database.write((db) => db.updateTable('home_move').set({ deny_seq: last + 1_000 }).execute())
    await database.write((db) => db.updateTable('store').set((eb) => ({ document_version: eb('document_version', '+', 1) })).where('store_id', '=', shop.storeId).execute())
    await other.agent.link.look()
    await home.agent.link.look()
    expect(other.agent.trust.policy).toMatchObject({ policy: moved.policy ?? { home: moved.home }, homeMove: { denySeq: last + 1_000 } })
    await cutCloud()
    expect(await leave(other, free.text)).toMatchObject({ authorized: false, reason: 'manual_assistance_required', offline: true })
    expect(await leave(home, free.text)).toMatchObject({ authorized: false, reason: 'manual_assistance_required', offline: true })
    isUp = true
    await database.write((db) => db.updateTable('home_move').set({ deny_seq: last }).execute())
    await database.write((db) => db.updateTable('store').set((eb) => ({ document_version: eb('document_version', '+', 1) })).where('store_id', '=', shop.storeId).execute())
    for (const node of nodes) await until('the move complete', async () => node.agent.link.isOnline && node.agent.trust.policy?.homeMove?.denySeq === last && (node.agent.trust.have().deny?.[1] ?? 0) >= last, 20_000)
    await cutCloud()
    expect(await leave(other, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
    expect(await leave(home, free.text)).toMatchObject({ authorized: true, offline: true })
    expect(await leave(other, free.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(sent.at(-1)?.url).toContain(`:${other.port}/`)
  })

  it('is nobody before what a revoked home gave to others is told: it may be used', async () => {
    const third = await addAgent((await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate' })).deviceId)
    const [used, free] = [await receipt(), await receipt()]
    await cutCloud()
    expect(await leave(other, used.text)).toMatchObject({ authorized: true, offline: true })
    for (const node of [home, other]) await kill(node)
    isUp = true
    await shop.ok('revokeAgent', { agentId: home.agent.identity.agentId })
    await shop.ok('moveReceiptHome', { storeId: shop.storeId, home: third.agent.identity.agentId })
    const takenOver = () =>
      until('the new home', async () => {
        await third.agent.link.look()
        return third.agent.link.isOnline && third.agent.trust.policy?.policy.home === third.agent.identity.agentId
      })
    await takenOver()
    nodes = [third, other]
    rmSync(home.folder, { recursive: true, force: true })
    isUp = false
    const alone = () => until('offline', async () => (await third.agent.link.look(), !third.agent.link.isOnline))
    await alone()
    expect(await leave(third, used.text)).toMatchObject({ authorized: false, reason: 'manual_assistance_required', offline: true })
    isUp = true
    await run(other)
    await until('told', async () => other.agent.link.isOnline && other.agent.ledger.journal.waiting === 0)
    await takenOver()
    await until('all known', async () => {
      for (const node of nodes) await node.agent.link.look()
      return !third.agent.trust.isImporting(Date.now() / 1_000 + 60)
    }, 20_000)
    isUp = false
    await alone()
    expect(await leave(third, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
    expect(await leave(third, free.text)).toMatchObject({ authorized: true, offline: true })
  })

  it('bounds what one agent may ask, before it costs the home anything, and never holds up its own lanes', async () => {
    const [mine, theirs] = [await receipt(), await receipt()]
    await cutCloud()
    const { agentId, x, secret } = readIdentity(other.folder, secretFiles) as Identity
    const iat = Math.floor(Date.now() / 1_000)
    const claims = { aud: home.agent.identity.agentId, iat, exp: iat + 60, iss: agentId, homeEpoch: 1, rightClass: 'exit' as const, candidates: [0], all: true, receiptExp: iat + 3_600 }
    let asked = 0
    const newQuestions = (length: number) =>
      Array.from({ length }, () => {
        const cti = (asked++).toString(16).padStart(32, '0')
        return signDocument(DOCUMENT_KINDS.homeQuestion, { ...claims, jti: cti, redemptionId: `flood-${cti}`, cti }, signer(x, Buffer.from(secret, 'base64url')))
      })
    const questions = newQuestions(250)
    const flood = Promise.all(questions.map((question) => home.agent.home.answer(question)))
    const leaves = leave(home, mine.text)
    const kinds = (await flood).map(({ kind }) => kind)
    expect(kinds.slice(0, 60)).toEqual(Array.from({ length: 60 }, () => 'answer'))
    expect(kinds.filter((kind) => kind === 'too_many_questions').length).toBeGreaterThan(100)
    expect(await leaves).toMatchObject({ authorized: true, outcome: 'confirmed' })
    // It is told so over HTTP, and does not take it for a home that is away: nothing is claimed alone.
    let round = 0
    await until('it is told so', async () => {
      for (const question of newQuestions(100)) void home.agent.home.answer(question)
      const wish = { cti: (100_000 + round++).toString(16).padStart(32, '0'), rightClass: 'exit' as const, candidates: [0], all: true, exp: iat + 3_600, deviceId: other.deviceId }
      const told = await other.agent.home.ask(wish)
      return 'reason' in told && told.reason === 'limit_exceeded'
    })
    expect(sent.at(-1)?.answer).toContain('too_many_questions')
    expect(other.agent.ledger.claims.isolatedCount).toBe(0)
    await until('it may ask again', async () => (await leave(other, theirs.text)).authorized === true)
    // Who asks with no key of the store is sent away at last.
    const answers: number[] = []
    for (let i = 0; i < 60; i++) answers.push((await fetch(`http://127.0.0.1:${home.port}/v1/home/redeem`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ question: 'a.b.c' }) })).status)
    expect(answers.slice(0, 50)).toEqual(Array.from({ length: 50 }, () => 403))
    expect(answers).toContain(429)
  })
})
