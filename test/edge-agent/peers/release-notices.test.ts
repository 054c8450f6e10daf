import { afterEach, describe, expect, it } from 'vitest'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import { verifyRelease } from '../../../edge-agent/lanes/gate/released-units.ts'
import type { Fetch } from '../../../edge-agent/link/wire/http-client.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { newKey, createSigner } from '../../../policy/documents/keys.ts'
import {
  RELEASE_NOTICE_LIFE,
  type AnnouncedRelease,
  type ReleaseNotice,
} from '../../../policy/documents/home-messages.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { extractReceiptToken } from '../../../policy/receipts/receipt-token.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { addAgent, type SecondAgent } from '../../support/second-agent.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { fakeReader } from '../../support/fake-reader.ts'

/** Tests that goods which were released offline pass the gates of the store (docs/guides/gate.md). */

const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }
const ADDRESS = 'http://gate.lan:8090'

let store: TestStore
let reader: ReturnType<typeof fakeReader>
let other: SecondAgent | undefined
let lanIsUp = true
/** Requests between the agents. */
let sent: { url: string; body: string }[] = []

afterEach(async () => {
  await other?.stop()
  other = undefined
  lanIsUp = true
  sent = []
  await store.stop()
})
const noticesSent = () => sent.filter(({ url }) => url.endsWith('/v1/releases'))
const { device, detach, release, product } = atLanes(() => store)

const lan: Fetch = async (url, init) => {
  if (!lanIsUp) throw new Error('the network of the store is cut')
  sent.push({ url, body: init.body ?? '' })
  const app = localApp(store.agent, {
    hosts: () => ['gate.lan:8090'],
    log: quiet,
    credential: () => undefined,
  })
  const answer = await app.request(url, {
    method: init.method,
    headers: { ...init.headers, host: 'gate.lan:8090', 'content-length': String(Buffer.byteLength(init.body ?? '')) },
    body: init.body ?? '',
  })
  return { status: answer.status, text: () => answer.text() }
}

async function open(): Promise<void> {
  reader = fakeReader()
  store = await openStore({
    reader: { device: reader.device, antennas: { inside: [1], outside: [2] } },
    parts: { address: ADDRESS },
  })
}

let serial = 0
/** Registers an item whose EPC contains the number of its product. */
const newItem = async (of: Json = product()): Promise<string> => {
  const ean = String(of.ean)
  const epc = parseEpc(`urn:epc:id:sgtin:${ean.slice(0, 7)}.0${ean.slice(7, 12)}.${++serial}77`)?.hex ?? ''
  await store.drive(store.shop.newItem(of, { epc }))
  await store.until('the replica', () => store.agent.items.find('epc', epc) !== undefined)
  return epc
}
/** Cuts the agents off from the cloud, so that the replica of the gate does not get later payments. */
async function offline(): Promise<void> {
  store.network(false)
  other?.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  await other?.agent.link.poll()
}
const see = (epc: string, antenna: number) =>
  reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
const leaves = async (epc: string) => {
  see(epc, 1)
  for (let i = 0; i < 3; i++) {
    await store.world.advance(260)
    see(epc, 2)
  }
  await store.world.advance(60)
}
const lit = (coil: number) => store.boards.gate.log.some((change) => change.coil === coil && change.on)
/** True if neither the siren nor the amber lamp was on. */
const isSilent = () => !lit(1) && !lit(2)
const alarms = async (epc: string) => {
  const { alarms: before } = store.agent.gates.counts().get(device('gate')) ?? { alarms: 0 }
  await leaves(epc)
  return (store.agent.gates.counts().get(device('gate'))?.alarms ?? 0) > before
}

describe('a gate of the releasing agent', () => {
  it('lets only the units pass that were detached by receipt and EPC, within a second', async () => {
    await open()
    const [bought, alsoBought, stolen] = [await newItem(), await newItem(), await newItem()]
    await offline()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 2, epcs: [bought, alsoBought] }])
    for (const epc of [bought, alsoBought]) {
      expect(await detach({ receipt, epc })).toMatchObject({ authorized: true, outcome: 'confirmed', offline: true })
      expect(await alarms(epc)).toBe(false)
    }
    expect(isSilent()).toBe(true)
    expect(await alarms(stolen)).toBe(true)
  })

  it('records no alarm if a program asks for the exit of a released tag, and lights amber', async () => {
    await open()
    const [bought, stolen] = [await newItem(), await newItem()]
    await offline()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [bought] }])
    expect(await detach({ receipt, epc: bought })).toMatchObject({ authorized: true })
    const request = { deviceId: device('gate'), protectionAction: 'authorize_exit' }
    const answer = { authorized: false, reason: 'item_not_paid', itemStatus: 'sellable' }
    expect(await store.authorize({ ...request, epc: bought })).toMatchObject(answer)
    await store.world.advance(100)
    expect([lit(1), lit(2)]).toEqual([false, true])
    expect(await store.authorize({ ...request, epc: stolen })).toMatchObject(answer)
    await store.world.advance(100)
    expect(lit(1)).toBe(true)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
    const { alarms: recorded } = await store.drive(store.shop.ok('fetchAlarms', { storeId: store.shop.storeId }))
    expect((recorded as Json[]).map(({ epc }) => epc as string)).toEqual([stolen])
  })

  it('lets one tag of the product pass for each unit released without an EPC', async () => {
    await open()
    const [first, second, third] = [await newItem(), await newItem(), await newItem()]
    await offline()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 2 }])
    expect(await release(receipt)).toMatchObject({ authorized: true, remaining: 1, offline: true })
    expect(await alarms(first)).toBe(false)
    expect(await alarms(second)).toBe(true)
    await store.world.advance(11_000)
    expect(await release(receipt)).toMatchObject({ authorized: true, remaining: 0 })
    expect(await alarms(third)).toBe(false)
    // A released tag may pass the gate several times.
    await store.world.advance(70_000)
    expect(await alarms(first)).toBe(false)
  })

  it('counts a released unit once if its receipt is shown at the gate too', async () => {
    await open()
    const [first, second, third] = [await newItem(), await newItem(), await newItem()]
    await offline()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 2 }])
    for (let n = 0; n < 2; n++) await release(receipt)
    expect(await alarms(first)).toBe(false)
    await store.authorize({ deviceId: device('gate'), protectionAction: 'authorize_exit', receipt })
    expect(await alarms(second)).toBe(false)
    expect(await alarms(third)).toBe(true)
  })

  it('keeps released units after a restart', async () => {
    await open()
    const [named, unnamed] = [await newItem(), await newItem()]
    await offline()
    const [one, two] = [
      await store.buy([{ ean: product().ean, quantity: 1, epcs: [named] }]),
      await store.buy([{ ean: product().ean, quantity: 1 }]),
    ]
    expect(await detach({ receipt: one.receipt, epc: named })).toMatchObject({ outcome: 'confirmed' })
    expect(await release(two.receipt)).toMatchObject({ outcome: 'confirmed' })
    await store.world.advance(1_100)
    await store.restart()
    expect(await alarms(named)).toBe(false)
    expect(await alarms(unnamed)).toBe(false)
  })

  it('uses the item status again after the cloud has updated the item', async () => {
    await open()
    const [returned, kept] = [await newItem(), await newItem()]
    await offline()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 2, epcs: [returned, kept] }])
    for (const epc of [returned, kept]) await detach({ receipt, epc })
    expect(await alarms(kept)).toBe(false)
    const { storeId } = store.shop
    for (const itemStatus of ['returned', 'sellable'])
      await store.drive(store.shop.ok('updateItemStatus', { storeId, epc: returned, itemStatus }))
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline && !store.agent.items.isBehind)
    expect(await alarms(returned)).toBe(true)
  })

  it('lets a tag pass that alarmed a moment before its release', async () => {
    await open()
    const epc = await newItem()
    await offline()
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    expect(await alarms(epc)).toBe(true)
    await detach({ receipt, epc })
    await store.until('the end of the alarm', () => store.boards.gate.log.findLast((c) => c.coil === 3)?.on === true)
  })
})

describe('a gate of another agent', () => {
  let detacher: string

  async function openBoth(): Promise<void> {
    await open()
    const registered = await store.drive(
      store.shop.ok('registerDevice', { storeId: store.shop.storeId, deviceType: 'self_checkout_detacher' }),
    )
    detacher = registered.deviceId
    other = await addAgent(store, [detacher], { lan })
    await store.until(
      'both know each other',
      () => {
        const known = [store.agent, other?.agent].map((agent) => agent?.trust.policy)
        return known.every(
          (policy) =>
            policy?.agents?.length === 2 &&
            policy.agents.some(({ url }) => url === ADDRESS) &&
            policy.devices.some(
              ({ deviceId, agentId }) => deviceId === detacher && agentId === other?.agent.identity.agentId,
            ),
        )
      },
      120_000,
    )
  }
  const detachThere = (receipt: string, epc?: string) =>
    other!.authorize({
      deviceId: detacher,
      action: 'detach_hard_tag',
      receipt,
      ...(epc !== undefined && { identifiers: { epc } }),
    })
  const bought = async (epcs: string[], quantity = epcs.length) =>
    store.buy([{ ean: product().ean, quantity, ...(epcs.length > 0 && { epcs }) }])
  const nowS = () => Math.floor(store.world.clock.wall() / 1_000)

  /** Passes a notice of the second agent to the gate's agent, with these claims and signed by this key. */
  function announce(claims: Partial<ReleaseNotice> & Pick<AnnouncedRelease, 'proof'>, by = keyOf(other!)) {
    const iat = claims.iat ?? nowS()
    const notice: ReleaseNotice = {
      aud: store.shop.storeId,
      iat,
      exp: iat + RELEASE_NOTICE_LIFE,
      iss: other!.agent.identity.agentId,
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      releasedS: nowS(),
      ...claims,
    }
    return store.agent.notices.receive(signDocument(DOCUMENT_KINDS.release, notice, by))
  }
  const keyOf = ({ agent }: { agent: SecondAgent['agent'] }) =>
    createSigner(agent.identity.x, Buffer.from(agent.identity.secret, 'base64url'))

  const proof = (receipt: string, ordinal = 0) => ({ receipt: extractReceiptToken(receipt) ?? '', ordinal })
  /** Opens a second agent with a detacher, and buys an item while both agents are offline. */
  async function paidOffline(named: 'with its tag' | 'by its product' = 'with its tag') {
    await openBoth()
    const [epc, another] = [await newItem(), await newItem()]
    await offline()
    const { receipt } = await bought(named === 'with its tag' ? [epc] : [], 1)
    return { epc, another, receipt }
  }

  it('learns within a second of a release by receipt and EPC, and stays silent for that tag only', async () => {
    const { epc, another, receipt } = await paidOffline('by its product')
    const from = store.world.clock.elapsed()
    expect(await detachThere(receipt, epc)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: true })
    await store.until(
      'the answer to the notice',
      () => noticesSent().length === 1 && other?.agent.notices.waiting === 0,
    )
    expect(store.world.clock.elapsed() - from).toBeLessThan(1_000)
    expect(await alarms(another)).toBe(true)
    expect(await alarms(epc)).toBe(false)
  })

  it('lets one tag of the product pass for a unit released without an EPC', async () => {
    const { epc, another, receipt } = await paidOffline('by its product')
    expect(announce({ proof: proof(receipt) })).toEqual({ kind: 'taken' })
    expect(await alarms(epc)).toBe(false)
    expect(await alarms(another)).toBe(true)
  })

  it('learns of a release by a token for one item, by any identifier of the item', async () => {
    await openBoth()
    const [epc, another] = [await newItem(), await newItem()]
    await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    await offline()
    const { authorizationToken: token } = await store.drive(
      store.shop.ok('verifyProtectedItem', { epc, deviceId: detacher, protectionAction: 'detach_hard_tag' }),
    )
    expect(await other!.authorize({ deviceId: detacher, action: 'detach_hard_tag', token })).toMatchObject({
      outcome: 'confirmed',
      offline: true,
    })
    await store.until(
      'the answer to the notice',
      () => noticesSent().length === 1 && other?.agent.notices.waiting === 0,
    )
    expect(store.agent.items.find('epc', epc)?.status).toBe('sellable')
    expect(await alarms(epc)).toBe(false)
    expect(await alarms(another)).toBe(true)
  })

  it('receives missed notices after a network failure in the store, and no release waits for them', async () => {
    const { epc, receipt } = await paidOffline()
    lanIsUp = false
    expect(await detachThere(receipt, epc)).toMatchObject({ outcome: 'confirmed' })
    await store.world.advance(20_000)
    expect(other?.agent.notices.waiting).toBe(1)
    lanIsUp = true
    await store.until('the notice', () => other?.agent.notices.waiting === 0, 16_000)
    expect(await alarms(epc)).toBe(false)
  })

  it('receives no notice of a failed release', async () => {
    const { epc, receipt } = await paidOffline()
    await detachThere(receipt, epc)
    await store.until(
      'the answer to the notice',
      () => noticesSent().length === 1 && other?.agent.notices.waiting === 0,
    )
    expect(await detachThere(receipt, epc)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await store.world.advance(2_000)
    expect(noticesSent()).toHaveLength(1)
  })

  it('applies a replayed notice once, and rejects an old one', async () => {
    const { epc, receipt } = await paidOffline('by its product')
    const third = await newItemOffline()
    expect(announce({ proof: proof(receipt), epc })).toEqual({ kind: 'taken' })
    expect(announce({ proof: proof(receipt), epc: third })).toEqual({ kind: 'taken' })
    expect(announce({ proof: proof(receipt) })).toEqual({ kind: 'taken' })
    expect(await alarms(epc)).toBe(false)
    expect(await alarms(third)).toBe(true)
    expect(announce({ proof: proof(receipt), iat: nowS() - 200 })).toMatchObject({ kind: 'refused' })
    expect(announce({ proof: proof(receipt), releasedS: nowS() - 3_601 })).toMatchObject({ kind: 'refused' })
    expect(announce({ proof: proof(receipt), iat: nowS() + 100 })).toMatchObject({ kind: 'refused' })
  })

  /** Returns the EPC of an item that is not registered in this store. The EPC contains the number of its product. */
  function newItemOffline(): Promise<string> {
    const ean = String(product().ean)
    return Promise.resolve(
      parseEpc(`urn:epc:id:sgtin:${ean.slice(0, 7)}.0${ean.slice(7, 12)}.${++serial}77`)?.hex ?? '',
    )
  }

  it('rejects a notice of an unknown sender, of another key, for another store or of unknown form', async () => {
    const { epc, receipt } = await paidOffline()
    const { x, secret } = newKey(store.world.random)
    const good = { proof: proof(receipt), epc }
    expect(announce(good, createSigner(x, secret))).toEqual({ kind: 'not_genuine' })
    expect(announce({ ...good, iss: 'agt_nobody' })).toEqual({ kind: 'not_genuine' })
    expect(announce({ ...good, iss: store.identity.agentId })).toEqual({ kind: 'not_genuine' })
    expect(announce({ ...good, aud: store.shop.otherStoreId })).toEqual({ kind: 'not_genuine' })
    expect(announce({ ...good, note: 'x' } as typeof good)).toMatchObject({ kind: 'refused' })
    // A device of the gate's own agent, and one that releases nothing.
    expect(announce({ ...good, deviceId: device('detacher') })).toMatchObject({
      kind: 'refused',
      why: /own the device/,
    })
    expect(announce({ ...good, protectionAction: 'deactivate_label' })).toMatchObject({ kind: 'refused' })
    expect(announce({ ...good, deviceId: 'dev_nowhere' })).toMatchObject({ kind: 'refused' })
    expect(store.agent.notices.receive('a.b.c')).toEqual({ kind: 'not_genuine' })
    expect(await alarms(epc)).toBe(true)
  })

  it('rejects a notice whose receipt or token does not prove the unit and the tag', async () => {
    const { epc, another, receipt } = await paidOffline()
    const elsewhere = await (async () => {
      const { otherStoreId: storeId } = store.shop
      const ok = (operation: string, body: Json) => store.drive(store.shop.ok(operation, body))
      const [{ ean }] = (await ok('fetchProducts', { storeId, limit: 1 })).products
      const { sessionId } = await ok('checkIn', { storeId, userId: 'shopper-2' })
      const { transactionId } = await ok('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })
      await ok('completeTestCheckout', { transactionId })
      return (await ok('generateReceiptQR', { purchaseId: transactionId })).url as string
    })()
    const text = extractReceiptToken(receipt) ?? ''
    const refusals = [
      announce({ proof: proof(receipt), epc: another }),
      announce({ proof: proof(receipt, 1), epc }),
      announce({ proof: proof(elsewhere), epc }),
      announce({
        proof: { receipt: text.slice(0, -8) + text.slice(-8).split('').reverse().join(''), ordinal: 0 },
        epc,
      }),
      announce({ proof: { receipt: 'NO RECEIPT', ordinal: 0 }, epc }),
      announce({ proof: { token: 'a.b.c' }, epc }),
      announce({ proof: proof(receipt), epc: epc.toLowerCase() }),
    ]
    for (const refusal of refusals) expect(refusal).toMatchObject({ kind: 'refused' })
    expect(await alarms(epc)).toBe(true)
  })

  it('rejects a release older than one hour, with an expired receipt, or without trusted time', async () => {
    const { epc, receipt } = await paidOffline()
    const at = (hours: number, ageS = 0, trust: 'signed' | 'none' = 'signed') => {
      const nowMs = store.world.clock.wall() + hours * 3_600_000
      const { trust: known, ledger } = store.agent
      const parts = { agentId: store.identity.agentId, storeId: store.shop.storeId, trust: known, ledger }
      return verifyRelease(
        { ...parts, clock: { now: () => ({ nowMs, trust }) } },
        {
          deviceId: detacher,
          protectionAction: 'detach_hard_tag',
          releasedS: Math.floor(nowMs / 1_000) - ageS,
          epc,
          proof: proof(receipt),
        },
        other!.agent.identity.agentId,
      )
    }
    expect(at(0, 3_500)).toMatchObject({ ok: true, unit: { tag: epc } })
    expect(at(0, 3_600)).toMatchObject({ ok: false })
    expect(at(25)).toMatchObject({ ok: false, why: 'the receipt is expired' })
    expect(at(0, 0, 'none')).toMatchObject({ ok: false, why: 'this agent has no trusted time' })
  })

  it('limits the notices of one agent, and forged notices per address', async () => {
    const { epc, receipt } = await paidOffline()
    const kinds = Array.from({ length: 80 }, () => announce({ proof: proof(receipt), epc }).kind)
    expect(kinds.filter((kind) => kind === 'taken').length).toBe(60)
    expect(kinds.at(-1)).toBe('too_many')
    const app = localApp(store.agent, { hosts: () => ['gate.lan:8090'], log: quiet, credential: () => undefined })
    const codes: string[] = []
    for (let n = 0; n < 60; n++) {
      const body = JSON.stringify({ notice: `a.b.${n}` })
      const headers = { host: 'gate.lan:8090', 'content-type': 'application/json', 'content-length': `${body.length}` }
      const answer = await app.request(`${ADDRESS}/v1/releases`, { method: 'POST', headers, body })
      codes.push(((await answer.json()) as Json).code)
    }
    expect(codes[0]).toBe('notice_not_genuine')
    expect(codes.at(-1)).toBe('too_many_questions')
  })
})
