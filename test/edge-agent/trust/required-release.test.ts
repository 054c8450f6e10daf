import { afterEach, describe, expect, it } from 'vitest'
import {
  requiredRelease,
  storeRequiredRelease,
  clearRequiredRelease,
} from '../../../edge-agent/trust/verify/open-claims.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import { UNTAG_VERSION } from '../../../policy/version.ts'
import type { Json } from '../../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'
import { policyKey, trustBench } from '../../support/trust-bench.ts'

const LATER = '99.0.0'

const t = trustBench()

describe('a policy that requires a later release', () => {
  const newer = (change: object) =>
    signDocument(DOCUMENT_KINDS.policy, { ...t.policyClaims({ ver: 2 }), ...change }, policyKey.signer)

  it('is rejected as `agent_too_old` before its other claims are validated', () => {
    t.all()
    const refused = t.trust.accept(newer({ minAgent: LATER, lockersOfTheFuture: [{}] }))
    expect(refused).toMatchObject({
      taken: false,
      why: 'refused',
      detail: `policy+jwt 0.2 needs release ${LATER}, this is ${UNTAG_VERSION}`,
      requiredRelease: { release: LATER, epoch: 0, ver: 2 },
    })
    expect(t.trust.policy?.ver).toBe(1)
    // Without `minAgent` the agent reports such a policy as invalid.
    expect(t.trust.accept(newer({ lockersOfTheFuture: [{}] }))).toMatchObject({ detail: 'policy+jwt: claims_invalid' })
  })

  it('is rejected for its signature first', () => {
    t.all()
    const [header, claims] = newer({ minAgent: LATER }).split('.')
    const forged = t.trust.accept(`${header}.${claims}.${'A'.repeat(86)}`)
    expect(forged).toMatchObject({ taken: false, why: 'refused' })
    expect(forged).not.toHaveProperty('requiredRelease')
  })

  it('is accepted by the required release and later ones', () => {
    t.all()
    expect(t.trust.accept(newer({ minAgent: UNTAG_VERSION }))).toEqual({ taken: true, kind: 'policy' })
    expect(t.trust.accept(newer({ ver: 3, minAgent: '0.0.1' }))).toEqual({ taken: true, kind: 'policy' })
    expect(t.trust.policy).toMatchObject({ ver: 3, minAgent: '0.0.1' })
  })
})

it('reports no required release for a replayed older policy', () => {
  t.all()
  storeRequiredRelease(t.ledger, { release: LATER, epoch: 0, ver: 1 })
  expect(requiredRelease(t.ledger)).toBeUndefined()
  storeRequiredRelease(t.ledger, { release: LATER, epoch: 0, ver: 2 })
  expect(requiredRelease(t.ledger)).toBe(LATER)
  t.reopen()
  expect(requiredRelease(t.ledger)).toBe(LATER)
  clearRequiredRelease(t.ledger)
  expect(requiredRelease(t.ledger)).toBeUndefined()
})

describe('an agent below the required release', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const require = async (minAgent?: string) => {
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    const { minAgent: _before, ...rest } = policy
    return store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...rest, ...(minAgent !== undefined && { minAgent }) },
      }),
    )
  }
  const agent = async (): Promise<Json> =>
    (await store.shop.ok('fetchAgents', { storeId: store.shop.storeId })).agents[0]
  const raised = async () =>
    ((await store.shop.ok('fetchExceptions', { storeId: store.shop.storeId })).exceptions as Json[]).filter(
      ({ kind }) => kind === 'agent_too_old',
    )
  const look = () => store.drive(store.agent.link.poll())

  it('keeps its policy, reports the required release, also after a restart, and accepts the next suitable policy', async () => {
    store = await openStore()
    await store.until('seen', async () => (await agent()).release === UNTAG_VERSION, 90_000)
    const before = store.agent.status().policyVersion
    const { policy } = await require(LATER)
    expect(policy.minAgent).toBe(LATER)
    await look()
    expect(store.agent.status()).toMatchObject({
      policyVersion: before,
      release: UNTAG_VERSION,
      neededRelease: LATER,
      stage: 'fresh',
    })
    await store.until('told', async () => (await raised()).length === 1, 30_000)
    expect((await raised())[0]?.detail).toContain(`needs release ${LATER}, this is ${UNTAG_VERSION}`)
    await store.until('shown', async () => (await agent()).policyVersion === before, 90_000)
    expect(await agent()).toMatchObject({ release: UNTAG_VERSION, neededRelease: LATER, policyVersion: before })

    // The held policy stays valid, online and offline.
    const [first, second] = [
      await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }]),
      await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }]),
    ]
    const deviceId = store.shop.devices[LANES.station]
    expect(
      await store.authorize({ deviceId, protectionAction: 'deactivate_label', receipt: first.receipt }),
    ).toMatchObject({ authorized: true })
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    await store.restart()
    expect(store.agent.status()).toMatchObject({ policyVersion: before, neededRelease: LATER })
    expect(
      await store.authorize({ deviceId, protectionAction: 'deactivate_label', receipt: second.receipt }),
    ).toMatchObject({ authorized: true, offline: true })
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)

    // The freshness no longer confirms the held policy, so it becomes stale although the agent is online.
    await store.world.advance(16 * 60_000)
    expect(store.agent.status()).toMatchObject({ stage: 'stale', online: true })
    await require()
    await store.until(
      'the accepted policy',
      () => store.agent.status().neededRelease === null && store.agent.status().policyVersion !== before,
      30_000,
    )
    await look()
    expect(store.agent.status().stage).toBe('fresh')
    expect(await agent()).not.toHaveProperty('neededRelease')
  })

  it.each(['1.0', 'next', '1.2.3-rc.1'])('rejects %s as `minAgent`', async (minAgent) => {
    store = await openStore()
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    expect(
      await store.shop.call('updateProtectionPolicy', { storeId: store.shop.storeId, policy: { ...policy, minAgent } }),
    ).toMatchObject({ status: 400 })
  })
})
