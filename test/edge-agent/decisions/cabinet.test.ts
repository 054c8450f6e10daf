import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const PIN = '471108'

/** Shoppers pay first, then open the cabinet with their receipt. The right `open` of each unit is used once. */
describe('a cabinet in self service', () => {
  let store: TestStore
  let board: RelayBoard
  let operatorId: string
  let badge: string
  afterEach(() => store.stop())
  const { offline, synced, product } = atLanes(() => store)
  const cabinet = () => store.shop.devices.cabinet_unlocker
  const ok = (operation: string, body: Json = {}): Promise<Json> =>
    store.drive(store.shop.ok(operation, { storeId: store.shop.storeId, ...body }))

  beforeEach(async () => {
    store = await openStore({
      extra: async (shop, world) => {
        board = new RelayBoard({ platform: world, locks: [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }] })
        const link = { tcp: '10.0.0.7:502' }
        const entry = { deviceId: shop.devices.cabinet_unlocker, driver: 'modbus', link, output: 0, confirmInput: 0 }
        return { entries: [entry], ports: { '10.0.0.7:502': board.serve } }
      },
    })
    const operator = await ok('registerOperator', { name: 'Frau Petersen', pin: PIN })
    operatorId = operator.operatorId
    badge = operator.badge
    await ok('updateDevice', { deviceId: cabinet(), workflowType: 'self_service', storeId: undefined })
    const { policy } = await ok('fetchProtectionPolicy')
    const allowedActionsByCategory = { '*': { unlock_fixture: ['self_service'] }, socken: {} }
    await ok('updateProtectionPolicy', {
      policy: { ...policy, allowedActionsByCategory, operatorOverridesPerHour: 3 },
    })
    await store.until(
      'operator and policy',
      () =>
        (store.agent.trust.policy?.operators.length ?? 0) === 1 &&
        store.agent.trust.policy?.policy.operatorOverridesPerHour === 3,
    )
  })

  const scan = async (text: string): Promise<Json> =>
    (await store.local('/v1/scan', { method: 'POST', body: { deviceId: cabinet(), text } })).body
  const open = (subject: Json, headers?: Record<string, string>) =>
    store.authorize({ deviceId: cabinet(), protectionAction: 'unlock_fixture', ...subject }, headers)
  const asStaff = async (subject: Json) => {
    const { body } = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: PIN } })
    return open(subject, { 'x-untag-operator': body.session })
  }
  let numbers = 0
  const sold = async (quantity = 1, fields: Json = {}) => {
    const tags = Array.from({ length: quantity }, () => ({ tagId: `V-${++numbers}` }))
    const { ean } = product()
    await ok('registerProtectedItems', { items: tags.map((tag) => ({ ...tag, ean, ...fields })) })
    const bought = await store.buy([{ ean, quantity, tagIds: tags.map(({ tagId }) => tagId) }])
    await store.until('the replica', () =>
      tags.every(({ tagId }) => store.agent.items.find('tagId', tagId)?.status === 'paid'),
    )
    return { ...bought, tag: tags[0] ?? { tagId: '' }, tags }
  }
  const online = async () => {
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await synced()
  }
  const kinds = async (): Promise<string[]> =>
    (await ok('fetchExceptions')).exceptions.map(({ kind }: Json) => kind as string)
  const opened = (isOffline: boolean) => ({ authorized: true, outcome: 'confirmed', offline: isOffline })
  const shut = (reason: string) => ({ authorized: false, reason, outcome: null })
  const pulses = () => board.log.filter((change) => change.coil === 0 && change.on).length

  it.each([
    ['online', false],
    ['offline', true],
  ])('opens once for each unit of a scanned receipt, %s', async (_network, isOffline) => {
    const { receipt, tags } = await sold(2)
    if (isOffline) await offline()
    for (let n = 0; n < 2; n++) expect(await scan(receipt)).toMatchObject({ answer: opened(isOffline) })
    expect(await scan(receipt)).toMatchObject({ answer: shut('already_redeemed') })
    for (const tag of tags) expect(await open({ receipt, ...tag })).toMatchObject(shut('already_redeemed'))
    expect(pulses()).toBe(2)
    if (isOffline) await online()
    for (const tag of tags) expect(await open(tag)).toMatchObject({ ...shut('already_redeemed'), offline: false })
    expect(await kinds()).toEqual([])
  })

  it('opens for the named unit only, and not for goods that the receipt does not cover', async () => {
    const { receipt, tag } = await sold()
    const unpaid = { tagId: 'V-unpaid' }
    await ok('registerProtectedItems', { items: [{ ...unpaid, ean: product().ean }] })
    await store.until('the item', () => store.agent.items.find('tagId', unpaid.tagId) !== undefined)
    for (const isOffline of [false, true]) {
      if (isOffline) await offline()
      expect(await open({ receipt, ...unpaid })).toMatchObject(shut('item_not_paid'))
      expect(await open(unpaid)).toMatchObject(shut('item_not_paid'))
    }
    expect(await open({ receipt, ...tag })).toMatchObject(opened(true))
    expect(pulses()).toBe(1)
  })

  it('applies the rules of the category, also to a receipt alone', async () => {
    const [socks, hidden] = [await sold(1, { category: 'socken' }), await sold(1, { category: 'socken' })]
    expect(await scan(socks.receipt)).toMatchObject({ answer: shut('action_not_allowed') })
    await offline()
    expect(await scan(hidden.receipt)).toMatchObject({ answer: shut('action_not_allowed') })
    expect(pulses()).toBe(0)
  })

  it('stays shut for goods on hold, and offline for a tag without a receipt', async () => {
    const [held, other] = [await sold(), await sold()]
    await ok('updateItemStatus', { ...held.tag, itemStatus: 'exception_hold' })
    await store.until('the hold', () => store.agent.items.find('tagId', held.tag.tagId)?.status === 'exception_hold')
    await offline()
    for (const subject of [{ receipt: held.receipt }, { receipt: held.receipt, ...held.tag }, held.tag])
      for (const request of [open, asStaff])
        expect(await request(subject)).toMatchObject({ authorized: false, outcome: null })
    expect(await open(other.tag)).toMatchObject(shut('manual_assistance_required'))
    expect(await asStaff(other.tag)).toMatchObject(opened(true))
    expect(pulses()).toBe(1)
  })

  it('opens again for staff, online and offline, counted, and raises no exception', async () => {
    const { receipt, tag } = await sold()
    expect(await scan(receipt)).toMatchObject({ answer: opened(false) })
    expect(await asStaff(tag)).toMatchObject(opened(false))
    await offline()
    expect(await open({ receipt })).toMatchObject(shut('already_redeemed'))
    expect(await asStaff({ receipt })).toMatchObject(opened(true))
    for (let n = 0; n < 2; n++) expect(await asStaff({ receipt, ...tag })).toMatchObject(opened(true))
    expect(await asStaff(tag)).toMatchObject(shut('limit_exceeded'))
    await online()
    expect(await open(tag)).toMatchObject(shut('already_redeemed'))
    expect(await asStaff(tag)).toMatchObject(opened(false))
    expect(await kinds()).toEqual([])
  })

  it('uses the right if staff open first, and the cloud learns of it', async () => {
    const { receipt, tag } = await sold()
    await offline()
    await scan(badge)
    expect(await scan(tag.tagId)).toMatchObject({ answer: opened(true) })
    expect(await open({ receipt, ...tag })).toMatchObject(shut('already_redeemed'))
    await online()
    expect(await open(tag)).toMatchObject({ ...shut('already_redeemed'), offline: false })
    expect(await asStaff(tag)).toMatchObject(opened(false))
    expect(await kinds()).toEqual([])
  })

  it('redeems a token of a program once', async () => {
    const { tag } = await sold()
    const request = { deviceId: cabinet(), protectionAction: 'unlock_fixture', ...tag }
    const { authorizationToken: token } = await store.drive(store.shop.ok('verifyProtectedItem', request))
    await offline()
    expect(await open({ ...tag, token })).toMatchObject(opened(true))
    expect(await open({ ...tag, token })).toMatchObject(shut('already_redeemed'))
  })

  it('raises an exception if a shopper opened it twice', async () => {
    const { receipt, tag } = await sold()
    await offline()
    const { deviceId } = await ok('registerDevice', {
      deviceType: 'cabinet_unlocker',
      name: 'Ohne Agent',
      workflowType: 'self_service',
    })
    const at = { deviceId, protectionAction: 'unlock_fixture', ...tag }
    const { authorizationToken } = await store.drive(store.shop.ok('verifyProtectedItem', at))
    const redemption = { authorizationToken, deviceId, redemptionId: 'open-1', outcome: 'confirmed' }
    await store.drive(store.shop.ok('redeemProtectionAuthorization', redemption))
    expect(await open({ receipt })).toMatchObject(opened(true))
    await online()
    expect(await kinds()).toEqual(['double_redeem'])
  })
})
