import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../../edge-agent/identity/identity.ts'
import { localApp } from '../../../../edge-agent/http/local-app.ts'
import type { Fetch } from '../../../../edge-agent/link/wire/http-client.ts'
import type { Agent } from '../../../../edge-agent/runtime.ts'
import { encodeSgtin, splitGtin14 } from '../../../../policy/gs1/sgtin.ts'
import { atLanes } from '../../../support/at-lanes.ts'
import type { Json } from '../../../support/cloud.ts'
import { fakeReader } from '../../../support/fake-reader.ts'
import { addAgent } from '../../../support/second-agent.ts'
import { openStore, type TestStore } from '../../../support/store.ts'

/**
 * Each paid piece lets one tag leave, whichever way: by a receipt at the gate, after a release at a lane, or for a piece
 * of a till's sale. The same receipt may be shown at all of them, in any order.
 */

const ADDRESS = 'http://gate.lan:8090'
const FAR_ADDRESS = 'http://far.lan:8090'
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }

let store: TestStore
/** Agents of the store, by address. */
const agents = new Map<string, () => Agent>()
const { device, detach, release, product } = atLanes(() => store)

const lan: Fetch = async (url, init) => {
  const { origin, host } = new URL(url)
  const agent = agents.get(origin)?.()
  if (!agent) throw new Error('no such agent')
  const app = localApp(agent, { hosts: () => [host], log: quiet, credential: () => undefined })
  const body = init.body ?? ''
  const headers = { ...init.headers, host, 'content-length': String(Buffer.byteLength(body)) }
  const answer = await app.request(url, { method: init.method, headers, body })
  return { status: answer.status, text: () => answer.text() }
}

async function open(): Promise<void> {
  const reader = fakeReader()
  store = await openStore({
    reader: { device: reader.device, antennas: { inside: [1], outside: [3] } },
    parts: { address: ADDRESS },
    lan,
  })
  agents.set(ADDRESS, () => store.agent)
}
beforeEach(open)
afterEach(() => store.stop())

let serial = 0
async function newTag(): Promise<string> {
  const parts = splitGtin14(`0${product().ean}`, 7)
  const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: String(++serial) })
  if (!encoded?.ok) throw new Error('no SGTIN')
  await store.drive(store.shop.newItem(product(), { epc: encoded.hex }))
  await store.until('the item', () => store.agent.items.find('epc', encoded.hex) !== undefined)
  return encoded.hex
}

async function offline(): Promise<void> {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
}

const at = (epc: string, antenna: number) =>
  store.agent.gates.onReads(device('gate'), 'gate-scanner', [
    { tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() },
  ])

/** Carries a tag out. Returns true if the gate is silent. */
async function leaves(epc: string): Promise<boolean> {
  const counts = () => ({ passed: 0, alarms: 0, ...store.agent.gates.counts().get(device('gate')) })
  const before = counts()
  at(epc, 1)
  for (let i = 0; i < 3; i++) {
    await store.world.advance(260)
    at(epc, 3)
  }
  await store.world.advance(400)
  const after = counts()
  expect(after.passed + after.alarms).toBe(before.passed + before.alarms + 1)
  return after.alarms === before.alarms
}

const showAtGate = (receipt: string) =>
  store.authorize({ deviceId: device('gate'), protectionAction: 'authorize_exit', receipt })

/** A second agent, with a pad and a gate without inside and outside antennas. */
async function openFarAgent() {
  const register = (deviceType: string) =>
    store.drive(store.shop.ok('registerDevice', { storeId: store.shop.storeId, deviceType }))
  const pad = (await register('pos_deactivator')).deviceId
  const farGate = (await register('exit_gate')).deviceId
  const other = await addAgent(store, [pad, farGate], { lan, address: FAR_ADDRESS })
  agents.set(FAR_ADDRESS, () => other.agent)
  await store.until(
    'both know',
    () =>
      [store.agent, other.agent].every(
        ({ trust }) =>
          trust.policy?.agents?.filter(({ url }) => url !== null).length === 2 &&
          trust.policy.devices.some((each) => each.deviceId === pad && each.agentId === other.agent.identity.agentId),
      ),
    120_000,
  )
  return { pad, farGate, other }
}

/** Carries a tag through a gate without sides. Returns true if the gate is silent. */
async function passesFar(other: Awaited<ReturnType<typeof addAgent>>, farGate: string, epc: string): Promise<boolean> {
  const alarms = () => other.agent.gates.counts().get(farGate)?.alarms ?? 0
  const before = alarms()
  for (let i = 0; i < 3; i++) {
    other.agent.gates.onReads(farGate, farGate, [{ tag: { epc }, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
    await store.world.advance(300)
  }
  await store.world.advance(2_000)
  return alarms() === before
}

const NETWORKS = ['online', 'offline'] as const
const TAG_IS = ['near', 'away'] as const
const WAITS = { at_once: 1_000, after_two_minutes: 120_000 }

describe('a receipt that was shown at the gate and then at a lane', () => {
  for (const network of NETWORKS)
    for (const tagIs of TAG_IS)
      for (const [wait, waitMs] of Object.entries(WAITS))
        it(`lets one tag leave: ${network}, the tag ${tagIs}, ${wait}`, async () => {
          const tags = [await newTag(), await newTag(), await newTag()]
          const [first = '', second = '', third = ''] = tags
          const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
          if (network === 'offline') await offline()
          if (tagIs === 'near') at(first, 1)
          await store.world.advance(300)
          expect((await showAtGate(receipt)).authorized).toBe(true)
          expect(await leaves(first)).toBe(true)
          await store.world.advance(waitMs)
          expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
          await store.world.advance(2_000)
          expect(await leaves(second)).toBe(false)
          expect((await detach({ receipt, epc: third })).authorized).toBe(false)
          expect(await leaves(third)).toBe(false)
        })
})

describe('a receipt that was shown at the gate before a lane released a named tag', () => {
  for (const network of NETWORKS)
    for (const waitMs of [500, 28_000])
      it(`lets no second tag leave: ${network}, after ${waitMs} ms`, async () => {
        const [first = '', second = ''] = [await newTag(), await newTag()]
        const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
        if (network === 'offline') await offline()
        expect((await showAtGate(receipt)).authorized).toBe(true)
        await store.world.advance(500)
        expect((await detach({ receipt, epc: first })).authorized).toBe(true)
        await store.world.advance(waitMs)
        expect(await leaves(second)).toBe(false)
      })
})

describe('a unit of a receipt', () => {
  for (const network of NETWORKS) {
    it(`that a lane released lets no second tag leave that is near when the receipt is shown: ${network}`, async () => {
      const [first, second] = [await newTag(), await newTag()]
      const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
      if (network === 'offline') await offline()
      expect((await release(receipt)).authorized).toBe(true)
      expect(await leaves(first)).toBe(true)
      await store.world.advance(15_000)
      at(second, 1)
      await store.world.advance(300)
      await showAtGate(receipt)
      expect(await leaves(second)).toBe(false)
    })

    for (const [hours, restart] of [
      [0, false],
      [1.1, true],
    ] as const)
      it(`whose hard tag was taken off lets no other tag leave: ${network}, ${hours} h later`, async () => {
        const [first, second] = [await newTag(), await newTag()]
        const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
        if (network === 'offline') await offline()
        expect((await detach({ receipt, epc: first })).authorized).toBe(true)
        await store.world.advance(hours * 3_600_000 + 60_000)
        if (restart) await store.restart()
        if (restart) await store.world.advance(70_000)
        at(second, 1)
        await store.world.advance(300)
        await showAtGate(receipt)
        expect(await leaves(second)).toBe(false)
      })

    it(`is released again for the tag that left, and for no other one: ${network}`, async () => {
      const [first, second] = [await newTag(), await newTag()]
      const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
      if (network === 'offline') await offline()
      at(first, 1)
      await store.world.advance(300)
      expect((await showAtGate(receipt)).authorized).toBe(true)
      expect(await leaves(first)).toBe(true)
      await store.world.advance(600_000)
      expect((await detach({ receipt, epc: second })).authorized).toBe(false)
      expect((await detach({ receipt, epc: first })).authorized).toBe(true)
    })

    it(`leaves the goods of another receipt alone: ${network}`, async () => {
      const [first, second, third] = [await newTag(), await newTag(), await newTag()]
      const receipts = [1, 2].map(async () => (await store.buy([{ ean: product().ean, quantity: 1 }])).receipt)
      const [one = '', two = ''] = await Promise.all(receipts)
      if (network === 'offline') await offline()
      expect((await release(one)).authorized).toBe(true)
      await store.world.advance(5_000)
      expect((await showAtGate(two)).authorized).toBe(true)
      expect(await leaves(first)).toBe(true)
      expect(await leaves(second)).toBe(true)
      expect(await leaves(third)).toBe(false)
    })
  }

  for (const network of NETWORKS)
    it(`that a receipt names by its tag is not released after the tag has left: ${network}`, async () => {
      const [first, second] = [await newTag(), await newTag()]
      const { receipt } = await store.buy([{ ean: product().ean, quantity: 2, epcs: [first, second] }])
      await store.until('paid', () => store.agent.items.find('epc', second)?.status === 'paid')
      if (network === 'offline') await offline()
      expect(await leaves(first)).toBe(true)
      await store.world.advance(5_000)
      expect((await release(receipt)).authorized).toBe(true)
      await store.world.advance(5_000)
      expect((await release(receipt)).authorized).toBe(false)
    })

  it('that was bound to a tag online lets no other tag leave offline', async () => {
    const [first, second] = [await newTag(), await newTag()]
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    expect((await detach({ receipt, epc: first })).authorized).toBe(true)
    await store.world.advance(5_000)
    await offline()
    expect(await leaves(first)).toBe(true)
    await store.world.advance(400_000)
    at(second, 1)
    await store.world.advance(300)
    await showAtGate(receipt)
    expect(await leaves(second)).toBe(false)
  })

  it('is used up for each tag near the gate, also while the cloud is slow', async () => {
    const tags: string[] = []
    for (let i = 0; i < 4; i++) tags.push(await newTag())
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 4 }])
    let isSlow = true
    store.onFetch(async (url) => {
      if (isSlow && /verify|authoriz/i.test(url))
        await new Promise<void>((resolve) => void store.world.timers.after(1_900, resolve))
      return true
    })
    for (const tag of tags) at(tag, 1)
    await store.world.advance(300)
    expect((await showAtGate(receipt)).authorized).toBe(true)
    for (const tag of tags) expect(await leaves(tag)).toBe(true)
    isSlow = false
    await store.world.advance(90_000)
    expect((await release(receipt)).authorized).toBe(false)
  })
})

describe('a receipt that released a label without its tag', () => {
  for (const network of NETWORKS)
    for (const [hours, restart] of [
      [0, false],
      [0, true],
      [2, true],
    ] as const)
      it(`covers one tag: ${network}, ${hours} hours later${restart ? ', after a restart' : ''}`, async () => {
        const [first, second] = [await newTag(), await newTag()]
        const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
        if (network === 'offline') await offline()
        expect((await release(receipt)).authorized).toBe(true)
        expect(await leaves(first)).toBe(true)
        await store.world.advance(hours * 3_600_000 + 40_000)
        if (restart) await store.restart()
        if (restart) await store.world.advance(70_000)
        await showAtGate(receipt)
        expect(await leaves(second)).toBe(false)
      })

  it('lets two tags of two pieces leave, each way', async () => {
    const tags = [await newTag(), await newTag(), await newTag()]
    const [first = '', second = '', third = ''] = tags
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 2 }])
    await offline()
    expect((await release(receipt)).authorized).toBe(true)
    expect(await leaves(first)).toBe(true)
    await store.world.advance(60_000)
    expect((await showAtGate(receipt)).authorized).toBe(true)
    expect(await leaves(second)).toBe(true)
    expect(await leaves(third)).toBe(false)
  })

  for (const network of NETWORKS)
    it(`covers one tag at the gates of two agents: ${network}`, async () => {
      const { pad, farGate, other } = await openFarAgent()
      const tags = [await newTag(), await newTag()]
      await store.until('items', () => tags.every((epc) => other.agent.items.find('epc', epc) !== undefined), 120_000)
      const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
      if (network === 'offline') {
        await offline()
        other.network(false)
        await other.agent.link.poll()
      }
      expect((await other.authorize({ deviceId: pad, action: 'deactivate_label', receipt })).authorized).toBe(true)
      await store.until('the notice', () => other.agent.notices.waiting === 0)
      expect(await leaves(tags[0] ?? '')).toBe(true)
      await store.until('the notice of the exit', () => store.agent.notices.waiting === 0)
      expect(await passesFar(other, farGate, tags[1] ?? '')).toBe(false)
      await other.stop()
    })

  for (const network of NETWORKS)
    it(`whose tag left at a gate without sides is released for no other one, at any agent: ${network}`, async () => {
      const { pad, farGate, other } = await openFarAgent()
      const [first = '', second = ''] = [await newTag(), await newTag()]
      await store.until('the item', () => other.agent.items.find('epc', second) !== undefined, 120_000)
      const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
      if (network === 'offline') {
        await offline()
        other.network(false)
        await other.agent.link.poll()
      }
      expect((await other.authorize({ deviceId: farGate, action: 'authorize_exit', receipt })).authorized).toBe(true)
      expect(await passesFar(other, farGate, first)).toBe(true)
      await store.world.advance(900_000)
      expect((await detach({ receipt, epc: second })).authorized).toBe(false)
      const label = await other.authorize({ deviceId: pad, action: 'deactivate_label', receipt })
      expect(label.authorized).toBe(false)
      await other.stop()
    })
})

describe('a piece that a till sold by product', () => {
  let credential = ''
  beforeEach(async () => {
    credential = newSecret('pair', store.world.random)
    store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', store.world.clock.wall(), [
      'sales',
      'returns',
    ])
    const { storeId } = store.shop
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
    const tillSales = { agents: [store.identity.agentId], passByProduct: 15 }
    await store.drive(store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } }))
    await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.passByProduct === 15)
  })

  it('leaves the second one to the receipt, after the minutes of the first', async () => {
    const [first, second, third] = [await newTag(), await newTag(), await newTag()]
    const receipt = await sell(2)
    await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
    expect(await leaves(first)).toBe(true)
    await store.world.advance(20 * 60_000)
    expect((await release(receipt)).authorized).toBe(true)
    expect(await leaves(second)).toBe(true)
    expect(await leaves(third)).toBe(false)
    expect((await release(receipt)).authorized).toBe(false)
  })

  let number = 0
  async function sell(quantity = 1): Promise<string> {
    const body = {
      saleId: `p${++number}`,
      tillId: 'till-1',
      occurredAt: new Date(store.world.clock.wall()).toISOString(),
      lines: [{ ean: product().ean, quantity, priceUnit: 990, vat: 19 }],
    }
    const headers = { authorization: `Bearer ${credential}` }
    const answer = await store.local('/v1/sales', { method: 'POST', body, headers })
    expect(answer.status).toBe(200)
    return answer.body.receiptToken
  }

  const STEPS: Record<string, (receipt: string, tag: string) => Promise<Json | boolean>> = {
    release: (receipt) => release(receipt),
    gate: (receipt) => showAtGate(receipt),
    leaves: (_receipt, tag) => leaves(tag),
  }
  const ORDERS = [
    ['release', 'leaves', 'leaves'],
    ['leaves', 'release', 'leaves'],
    ['release', 'leaves', 'gate', 'leaves'],
    ['leaves', 'gate', 'leaves'],
    ['gate', 'leaves', 'release', 'leaves'],
    ['gate', 'release', 'leaves', 'leaves'],
  ]
  for (const network of NETWORKS)
    for (const [wait, waitMs] of Object.entries({ at_once: 0, after_forty_seconds: 40_000 }))
      for (const order of ORDERS)
        it(`lets one tag leave: ${order.join(', ')}; ${network}, ${wait}`, async () => {
          const tags = [await newTag(), await newTag()]
          const receipt = await sell()
          await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
          if (network === 'offline') await offline()
          const silent: boolean[] = []
          for (const step of order) {
            const result = await STEPS[step]?.(receipt, tags[silent.length] ?? '')
            if (typeof result === 'boolean') silent.push(result)
            await store.world.advance(waitMs + 1_000)
          }
          expect(silent).toEqual([true, false])
        })
})
