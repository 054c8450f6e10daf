import { afterEach, describe, expect, it } from 'vitest'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

describe('a release with an unknown outcome', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, release, synced, offline, product } = atLanes(() => store)

  /** Causes an unknown outcome of an online release: the board does not answer, or the power fails. */
  async function unknown(how: 'mute' | 'power cut' = 'mute') {
    store = await openStore()
    const { operatorId } = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.until('the operator', () => store.agent.trust.policy?.operators.length === 1)
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    if (how === 'mute') {
      store.boards.station.stick(0, false)
      const off = store.boards.station.faults.on({ kind: 'mute', functions: [5] })
      expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'unknown', offline: false })
      off()
      store.boards.station.stick(0, null)
    } else {
      const { ledger } = store.agent
      // The agent dies while the board gets the command.
      ledger.settle = () => new Promise(() => undefined)
      void store.agent.lanes.request({
        deviceId: device('station'),
        action: 'deactivate_label',
        receipt,
        identifiers: {},
      })
      await store.until('the pulse', () => store.pulses('station') === 1)
      await store.world.advance(2_000)
      store.agent.lanes.settled = () => Promise.resolve()
      await store.restart()
    }
    await synced()
    await store.until(
      'the board',
      () => store.agent.link.isOnline && store.agent.status().devices.every((d) => d.state === 'ready'),
    )
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    const [exception] = (
      await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId, kind: 'outcome_unknown' }))
    ).exceptions as Json[]
    const staffSay = (outcome: string) =>
      store.drive(store.shop.ok('resolveRedemption', { redemptionId: exception?.subject, outcome, operatorId }))
    const signIn = async () => ({
      'x-untag-operator': (await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '471108' } }))
        .body.session as string,
    })
    return { purchase, receipt, operatorId, staffSay, signIn }
  }
  const by = (receipt: string, headers: Record<string, string>) =>
    store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', receipt }, headers)

  it.each(['mute', 'power cut'] as const)('is retried once by a signed-in operator (%s)', async (how) => {
    const { receipt, signIn } = await unknown(how)
    const staff = await signIn()
    expect(await by(receipt, staff)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
    expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await offline()
    expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('is retried offline by an operator, and the cloud learns the outcome later', async () => {
    const { purchase, receipt, signIn } = await unknown()
    await offline()
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
    const staff = await signIn()
    expect(await by(receipt, staff)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: true })
    expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    store.network(true)
    await store.until('all told', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
    expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
    const { exceptions } = await store.drive(
      store.shop.ok('fetchExceptions', { storeId: store.shop.storeId, kind: 'double_redeem' }),
    )
    expect(exceptions).toEqual([])
  })

  it('is free for everyone once staff have resolved at the cloud that the tag is still on', async () => {
    const { receipt, staffSay } = await unknown()
    await staffSay('failed')
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('stays used once staff have resolved that the tag is off, also for offline operators', async () => {
    const { receipt, staffSay, signIn } = await unknown()
    await staffSay('confirmed')
    await store.until('the denial', () => !store.agent.trust.isBehind)
    await store.world.advance(20_000)
    const staff = await signIn()
    expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await offline()
    expect(await by(receipt, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('is repeated with a token that an operator approved for a program', async () => {
    const { purchase, operatorId } = await unknown()
    await store.world.advance(3_000)
    const given = await store.drive(
      store.shop.ok('verifySecurityTagDeactivation', {
        purchaseId: purchase.transactionId,
        deviceId: device('station'),
        operatorId,
      }),
    )
    expect(
      await store.authorize({
        deviceId: device('station'),
        protectionAction: 'deactivate_label',
        token: given.authorizationToken,
      }),
    ).toMatchObject({ authorized: true, outcome: 'confirmed' })
  })
})
