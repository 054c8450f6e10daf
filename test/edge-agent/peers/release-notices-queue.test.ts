import { expect, it } from 'vitest'
import { ReleaseNotices } from '../../../edge-agent/peers/release-notices.ts'
import { decodeUnverifiedClaims } from '../../../policy/documents/signed-document.ts'
import { newKey, createSigner } from '../../../policy/documents/keys.ts'
import type { AnnouncedRelease } from '../../../policy/documents/home-messages.ts'
import type { PolicyClaims } from '../../../policy/documents/store-documents.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'

/** How notices of releases wait for agents of the store that do not answer. */

type Device = Pick<PolicyClaims['devices'][number], 'deviceType' | 'agentId' | 'revoked'>

function openQueue(devices: Device[] = [{ deviceType: 'exit_gate', agentId: 'agt_gate', revoked: false }]) {
  const world = virtualPlatform({ seed: 2 })
  const { x, secret } = newKey(world.random)
  const network = { isUp: true, status: 200, hangs: false }
  /** Numbers of the releases that arrived, by the address of their receiver. */
  const arrived: { at: string; ordinal: number }[] = []
  let tries = 0
  const policy = {
    agents: ['agt_own', 'agt_gate', 'agt_other'].map((agentId) => ({ agentId, keys: [x], url: `http://${agentId}` })),
    devices,
  } as unknown as PolicyClaims
  const trust: { policy: PolicyClaims | undefined } = { policy }
  const notices = new ReleaseNotices({
    platform: world,
    agentId: 'agt_own',
    storeId: 'sto_1',
    trust,
    clock: { now: () => ({ nowMs: world.clock.wall(), trust: 'signed' }) },
    signer: () => createSigner(x, secret),
    async fetch(url, { body = '', signal }) {
      tries++
      if (network.hangs)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('no answer'))))
      if (!network.isUp) throw new Error('no way there')
      const { notice } = JSON.parse(body) as { notice: string }
      const { proof } = decodeUnverifiedClaims(notice) as unknown as { proof: { ordinal: number } }
      if (network.status === 200) arrived.push({ at: new URL(url).host, ordinal: proof.ordinal })
      const text = network.status === 200 ? '{}' : '{"error":"no","code":"no"}'
      return { status: network.status, text: () => Promise.resolve(text) }
    },
    log: { info: () => undefined, warn: () => undefined, error: (fields) => expect(fields).toBeUndefined() },
    onNotice: () => undefined,
  })
  const release = (ordinal: number): AnnouncedRelease => ({
    deviceId: 'dev_1',
    protectionAction: 'detach_hard_tag',
    releasedS: Math.floor(world.clock.wall() / 1_000),
    proof: { receipt: 'RECEIPT', ordinal },
  })
  return { world, network, arrived, trust, notices, release, tries: () => tries }
}

const ordinalsOf = (arrived: readonly { ordinal: number }[]) => arrived.map(({ ordinal }) => ordinal)

it('sends each release notice to every agent with a gate, and to no other agent', async () => {
  const gate = (agentId: string | null, revoked = false): Device => ({ deviceType: 'exit_gate', agentId, revoked })
  const { world, arrived, notices, release } = openQueue([
    gate('agt_own'),
    gate('agt_gate'),
    gate('agt_gate'),
    gate('agt_other', true),
    gate('agt_stranger'),
    gate(null),
    { deviceType: 'pos_deactivator', agentId: 'agt_other', revoked: false },
  ])
  notices.send(release(1))
  await world.advance(10)
  expect(arrived).toEqual([{ at: 'agt_gate', ordinal: 1 }])
  expect(notices.waiting).toBe(0)
})

it('queues undelivered notices, sends a new one at once, and the newest first', async () => {
  const { world, network, arrived, notices, release } = openQueue()
  network.isUp = false
  for (const n of [1, 2, 3]) {
    notices.send(release(n))
    await world.advance(1_000)
  }
  network.isUp = true
  notices.send(release(4))
  await world.advance(50)
  expect(ordinalsOf(arrived)).toEqual([4, 3, 2, 1])
  expect(notices.waiting).toBe(0)
})

it('queues at most 500 notices for one agent, and drops the oldest', async () => {
  const { world, network, arrived, notices, release } = openQueue()
  network.isUp = false
  for (let n = 0; n < 600; n++) {
    notices.send(release(n))
    await world.advance(1)
  }
  expect(notices.waiting).toBeLessThanOrEqual(508)
  network.isUp = true
  await world.advance(30_000)
  expect(notices.waiting).toBe(0)
  expect(arrived.length).toBeGreaterThanOrEqual(500)
  expect(ordinalsOf(arrived)).toContain(599)
  expect(ordinalsOf(arrived)).not.toContain(0)
})

it('sends at most 8 notices at once to an agent that does not answer, each with a time limit', async () => {
  const { world, network, notices, release, tries } = openQueue()
  network.hangs = true
  for (let n = 0; n < 50; n++) notices.send(release(n))
  expect(tries()).toBe(8)
  await world.advance(999)
  expect(tries()).toBe(8)
  await world.advance(60_000)
  expect(tries()).toBeLessThan(40)
  expect(notices.waiting).toBe(50)
})

it('retries after 429, and drops notices that were rejected or whose receiver was revoked', async () => {
  const { world, network, arrived, trust, notices, release } = openQueue()
  network.status = 429
  notices.send(release(1))
  await world.advance(10)
  expect(notices.waiting).toBe(1)
  network.status = 200
  await world.advance(1_000)
  expect(ordinalsOf(arrived)).toEqual([1])
  network.status = 403
  notices.send(release(2))
  await world.advance(10)
  expect(notices.waiting).toBe(0)
  network.isUp = false
  notices.send(release(3))
  await world.advance(10)
  trust.policy = undefined
  await world.advance(1_000)
  expect(notices.waiting).toBe(0)
})

it('drops notices older than one hour', async () => {
  const { world, network, arrived, notices, release } = openQueue()
  network.isUp = false
  notices.send(release(1))
  await world.advance(3_600_000)
  network.isUp = true
  await world.advance(20_000)
  expect([notices.waiting, arrived]).toEqual([0, []])
})

it('sends nothing after it has stopped', async () => {
  const { world, network, notices, release, tries } = openQueue()
  network.isUp = false
  notices.send(release(1))
  await world.advance(10)
  notices.stop()
  const before = tries()
  await world.advance(60_000)
  expect(tries()).toBe(before)
})
