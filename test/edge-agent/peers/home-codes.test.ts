import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { newSecret } from '../../../edge-agent/identity/identity.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { createSigner, newKey, type Signer } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { SoldCode } from '../../../policy/documents/till-notice.ts'
import { receiptCodeHash, saleKeyOf, TillSale } from '../../../policy/till-sale.ts'
import type { Json } from '../../support/cloud.ts'
import { lanStore, type LanAgent } from '../../support/lan-store.ts'
import { until } from '../../support/receiver.ts'

/** An agent that lacks a sale gets it from the receipt home, by the hash of its code (ADR till-sales). */
const s = lanStore()

/** These agents may record sales; then the cloud is cut. */
async function openTills(agents: readonly LanAgent[] = s.nodes): Promise<void> {
  const { storeId } = s.shop
  const { policy } = await s.shop.ok('fetchProtectionPolicy', { storeId })
  const named = agents.map(({ agent }) => agent.identity.agentId)
  await s.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales: { agents: named } } })
  for (const { agent } of s.nodes)
    await until('the policy', async () => {
      await agent.link.poll()
      const { policy: known, agents: peers = [] } = agent.trust.policy ?? {}
      const isReachable = s.nodes.every((node) => peers.some((peer) => peer.url?.endsWith(`:${node.port}`)))
      return known?.tillSales.agents.length === named.length && isReachable
    })
  await s.cutCloud()
}

const loseNotices = (...to: LanAgent[]) =>
  void (s.onLan = (url) => (to.some(({ port }) => url.endsWith(`:${port}/v1/till-notices`)) ? 'cut' : 'pass'))

let number = 0
/** A till reports a sale with a new code. */
async function sell(node: LanAgent, fields: Json = {}): Promise<{ code: string; saleId: string }> {
  const code = `C-${newSecret('pair', s.platform.random)}`
  const sale = {
    saleId: `h${++number}`,
    occurredAt: new Date(s.platform.clock.wall()).toISOString(),
    lines: [{ name: 'Milch', quantity: 1, priceUnit: 99, vat: 7 }],
    receiptCodes: [code],
    ...fields,
  }
  await node.agent.sales.sell(TillSale.parse(sale))
  return { code, saleId: sale.saleId }
}

const find = (node: LanAgent, code: string) => node.agent.lanes.saleOfCode('gate', code, true)
async function leave(node: LanAgent, code: string): Promise<boolean | string> {
  const found = await find(node, code)
  if (found.kind !== 'sale') return found.kind === 'none' ? found.why : found.kind
  const { deviceId } = node
  const request = { deviceId, action: 'authorize_exit' as const, identifiers: {}, sale: found.sale }
  return (await node.agent.lanes.request(request)).authorized
}

const nowS = () => Math.floor(s.platform.clock.wall() / 1_000)
const signerOf = ({ agent: { identity } }: LanAgent) =>
  createSigner(identity.x, Buffer.from(identity.secret, 'base64url'))
/** A notice of an agent about one code. */
function noticeOf(by: LanAgent, code: string, fields: Json = {}, signer: Signer = signerOf(by)): string {
  const { storeId } = s.shop
  const sold: SoldCode = {
    code: receiptCodeHash(storeId, code),
    sale: saleKeyOf(storeId, { saleId: `x${++number}` }),
    exp: nowS() + 86_400,
    riskClass: 0,
    goods: '',
  }
  const claims = { aud: storeId, iat: nowS(), exp: nowS() + 60, iss: by.agent.identity.agentId }
  return signDocument(DOCUMENT_KINDS.tillNotice, { ...claims, tags: [], codes: [sold], pieces: [], ...fields }, signer)
}

it('opens once by the code of a sale of the receipt home, whose notice was lost', async () => {
  await openTills()
  loseNotices(s.other)
  const { code } = await sell(s.home)
  expect(await leave(s.other, code)).toBe(true)
  expect(await leave(s.home, code)).toBe(false)
  expect(await leave(s.other, code)).toBe(false)
  expect(await leave(s.other, 'unknown-code')).toBe('needs_connection')
  expect(s.home.moved + s.other.moved).toBe(1)
  // The other agent is online, but the cloud does not have the sale yet.
  s.home.isCutOff = true
  s.isUp = true
  await until('the cloud', async () => (await s.other.agent.link.poll(), s.other.agent.link.isOnline))
  const later = await sell(s.home)
  expect(await leave(s.other, later.code)).toBe(true)
  expect(await leave(s.other, 'unknown-code')).toBe('unknown_code')
})

it('opens by the code of a sale of an agent that has been switched off since', async () => {
  const { deviceId } = await s.shop.ok('registerDevice', { storeId: s.shop.storeId, deviceType: 'exit_gate' })
  const third = await s.addAgent(deviceId)
  await openTills()
  loseNotices(third)
  const { code } = await sell(s.other)
  await until('the sale at the home', async () => (await find(s.home, code)).kind === 'sale')
  await s.kill(s.other)
  expect(await leave(third, code)).toBe(true)
  expect(await leave(s.home, code)).toBe(false)
  await s.kill(s.home)
  await s.run(s.home)
  await s.ready(s.home)
  expect(s.home.agent.tillNotices.noticesOf(receiptCodeHash(s.shop.storeId, code))).toHaveLength(1)
})

it('opens nothing for a sale that is over, that two sales share, or while the receipt home is away', async () => {
  await openTills()
  loseNotices(s.other)
  const gone = await sell(s.home)
  await s.home.agent.sales.void({ saleId: gone.saleId }, undefined)
  expect(await leave(s.other, gone.code)).toBe('needs_connection')
  const { code } = await sell(s.home)
  await sell(s.home, { receiptCodes: [code] })
  expect(await leave(s.other, code)).toBe('needs_staff')
  const late = await sell(s.home)
  s.onLan = () => 'cut'
  expect(await leave(s.other, late.code)).toBe('needs_connection')
  expect(s.other.moved).toBe(0)
})

it('waits a second at most for a receipt home that does not answer', async () => {
  await openTills()
  await s.kill(s.home)
  const silent = await listen({ host: '127.0.0.1', port: s.home.port, flag: 'port' })
  let requests = 0
  silent.serve(
    new Hono().post('/v1/home/code', () => {
      requests++
      return new Promise(() => undefined)
    }),
  )
  const beganMs = s.platform.clock.elapsed()
  expect(await leave(s.other, 'code-of-the-home')).toBe('needs_connection')
  expect([requests, s.platform.clock.elapsed() - beganMs < 3_000]).toEqual([1, true])
  await silent.close()
  await s.run(s.home)
})

it('is answered only to agents of the store, and by the receipt home', async () => {
  await openTills()
  const { code } = await sell(s.home)
  const claims = {
    aud: s.home.agent.identity.agentId,
    iat: nowS(),
    exp: nowS() + 60,
    iss: s.other.agent.identity.agentId,
  }
  const request = { ...claims, code: receiptCodeHash(s.shop.storeId, code) }
  const send = async (node: LanAgent, sent: typeof request, signer = signerOf(s.other)) => {
    const answer = await fetch(`http://127.0.0.1:${node.port}/v1/home/code`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ question: signDocument(DOCUMENT_KINDS.homeCodeRequest, sent, signer) }),
    })
    const body = (await answer.json()) as Json
    return body.code ?? body.notices.length
  }
  expect(await send(s.home, request)).toBe(1)
  expect(await send(s.home, { ...request, code: '0'.repeat(32) })).toBe(0)
  const { x, secret } = newKey(s.platform.random)
  expect(await send(s.home, request, createSigner(x, secret))).toBe('not_home')
  expect(await send(s.home, { ...request, iat: nowS() - 3_600, exp: nowS() - 3_540 })).toBe('not_home')
  expect(await send(s.home, { ...request, iss: 'agt_unknown' })).toBe('not_home')
  const own = { ...request, aud: s.other.agent.identity.agentId, iss: s.home.agent.identity.agentId }
  expect(await send(s.other, own, signerOf(s.home))).toBe('not_home')
  const answers = await Promise.all(Array.from({ length: 25 }, () => send(s.home, request)))
  expect(answers).toContain('too_many_questions')
})

it('a lying receipt home forwards no sale that an agent of the policy did not announce itself', async () => {
  await openTills([s.other])
  const { deviceId } = await s.shop.ok('registerDevice', { storeId: s.shop.storeId, deviceType: 'exit_gate' })
  s.isUp = true
  const third = await s.addAgent(deviceId)
  await openTills([s.other])
  const { tillNotices, ledger } = third.agent
  const forward = async (notice: string, code: string) => {
    await tillNotices.receive(notice, true)
    return ledger.till.salesWithCode(receiptCodeHash(s.shop.storeId, code), nowS()).length
  }
  const yesterday = { iat: nowS() - 90_000, exp: nowS() - 89_940 }
  expect(await forward(noticeOf(s.home, 'code-home'), 'code-home')).toBe(0)
  expect(await forward(noticeOf(s.other, 'code-forged', {}, signerOf(s.home)), 'code-forged')).toBe(0)
  expect(await forward(noticeOf(s.other, 'code-old', yesterday), 'code-old')).toBe(0)
  expect(await forward(noticeOf(s.other, 'code-store', { aud: 'st_other' }), 'code-store')).toBe(0)
  expect(await forward(noticeOf(s.other, 'code-other'), 'code-asked')).toBe(0)
  // Hours later its tags may have changed, so they do not count.
  const tag = { name: `E${'3'.repeat(24)}`, status: 'paid', rank: 9, epoch: 0, ver: null, sale: null }
  const earlier = { iat: nowS() - 3_600, exp: nowS() - 3_540, tags: [tag] }
  const genuine = noticeOf(s.other, 'code-true', earlier)
  expect(await tillNotices.receive(genuine)).toMatchObject({ kind: 'refused' })
  expect(await forward(genuine, 'code-true')).toBe(1)
  expect(ledger.till.tag(tag.name)).toBeUndefined()
})
