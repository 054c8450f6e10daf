import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DENIAL_TEXTS } from '../../../cloud/service/description/codes.ts'
import { reasonsDe, de } from '../../../edge-agent/pages/texts/de.ts'
import { reasonsEn, en } from '../../../edge-agent/pages/texts/en.ts'
import { gateView } from '../../../edge-agent/pages/model/gate-view.ts'
import { resultView } from '../../../edge-agent/pages/model/result-view.ts'
import type { PageAnswer } from '../../../edge-agent/pages/model/wire.ts'
import type { Texts } from '../../../edge-agent/pages/texts/texts.ts'
import { decide, type DecisionFacts } from '../../../policy/decide.ts'
import { completeCapabilities, type DeviceFacts } from '../../../policy/devices.ts'
import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { DENY_REASONS, type DenyReason } from '../../../policy/vocabulary.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/**
 * Follows the advice of every denial, at an offline station, in the rules, and in the texts of page and API. The advice
 * must lead to a release, or to a reason to keep the goods. So no person is sent in a circle.
 */

/** What a person does next, with the words of the texts that say so: English page, German page, API. */
const ADVICE = {
  scanAgain: [/Scan it again|scan again/, /scannen/, /again|Wait/],
  signIn: [/[Ss]taff|sign in/i, /Personal|anmelden/i, /operator|staff/i],
  otherDevice: [
    /another device|till|self-detacher/,
    /anderen? Gerät|anderes Gerät|Kasse|Selbstablöser/,
    /another device|`\w+Device`|workflow/,
  ],
  otherLocker: [/right locker/, /richtigen Fach/, /right locker/],
  readTag: [/to the reader/, /an den Leser/, /Hold the goods/],
  showReceipt: [/receipt/, /Beleg/, /receipt/],
  /** The headline says that nothing is to be released. */
  checkTag: [/staff compare goods and receipt/, /vergleicht das Personal Ware und Beleg/, /nothing to release/],
  /** The text above the advice says that the purchase was refunded. */
  refunded: [/ask our staff/, /das Personal fragen/, /right store|refund|cancel/],
  /** The goods stay here, or the tag was released. */
  keep: [
    /pay|forbid|only once|store of purchase|stays here/,
    /bezahlen|verbieten|nur einmal|Filiale des Kaufs|bleibt hier/,
    /Pay|forbids|stay|once|right store/,
  ],
} as const satisfies Record<string, readonly [RegExp, RegExp, RegExp]>

const FOLLOWED: Record<DenyReason, keyof typeof ADVICE> = {
  token_invalid: 'signIn',
  token_expired: 'signIn',
  token_revoked: 'refunded',
  device_unknown: 'otherDevice',
  device_revoked: 'otherDevice',
  store_mismatch: 'keep',
  locker_mismatch: 'otherLocker',
  clock_untrusted: 'signIn',
  policy_stale: 'signIn',
  device_not_capable: 'otherDevice',
  technology_mismatch: 'otherDevice',
  item_unknown: 'showReceipt',
  recalled: 'keep',
  item_not_paid: 'keep',
  already_redeemed: 'keep',
  authorization_outstanding: 'scanAgain',
  action_not_allowed: 'keep',
  workflow_not_allowed: 'otherDevice',
  manual_assistance_required: 'signIn',
  limit_exceeded: 'signIn',
  no_tagged_goods: 'checkTag',
  tag_not_read: 'readTag',
}

it.each(DENY_REASONS)('page and API give the same advice for %s', (reason) => {
  const [en, de, api] = ADVICE[reason === 'token_invalid' ? 'scanAgain' : FOLLOWED[reason]]
  expect(reasonsEn[reason].todo).toMatch(en)
  expect(reasonsDe[reason].todo).toMatch(de)
  // A program requests a new token or receipt; people ask staff.
  if (reason === 'token_expired') return
  expect(DENIAL_TEXTS.find(({ code }) => code === reason)?.text).toMatch(api)
})

/** What a shopper sees of a denial: after a scan at a station, after a receipt at a gate, and when a tag alarms. */
const PLACES = {
  station: (reason: DenyReason, texts: Texts) => {
    const view = resultView({ kind: 'decision', answer: denied(reason) }, texts)
    return `${view?.message} ${view?.advice}`
  },
  'gate, receipt': (reason: DenyReason, texts: Texts) => atGate({}, reason, 'amber', texts),
  'gate, tag with alarm': (reason: DenyReason, texts: Texts) => atGate({ item: 'E280AA' }, reason, 'siren', texts),
}
const denied = (reason: DenyReason): PageAnswer => ({
  authorized: false,
  action: 'authorize_exit',
  reason,
  itemCount: 0,
  remaining: 0,
  offline: false,
  outcome: null,
})
const atGate = (goods: { item?: string }, reason: DenyReason, light: 'amber' | 'siren', texts: Texts) =>
  gateView(
    {
      type: 'result',
      deviceId: 'gate',
      atMs: 0,
      light,
      result: { kind: 'decision', answer: denied(reason), ...goods },
    },
    texts,
  )?.message
const BLAME =
  /gefälscht|Fälschung|benutzt|gestohlen|Diebstahl|nicht bezahlt|forge|fake|\bused\b|stolen|theft|not paid|cheat/i

describe.each(Object.entries(PLACES))('a shopper at a %s', (place, textOf) => {
  it.each(DENY_REASONS.flatMap((reason) => [['de', reason, de] as const, ['en', reason, en] as const]))(
    'reads in %s for %s the reason without blame, and what to do',
    (_, reason, texts) => {
      const text = textOf(reason, texts)
      // Without a tag, a used receipt has nothing left to release.
      const isReceipt = reason === 'already_redeemed' && text?.includes(texts.nothingLeft)
      const { what, todo } = isReceipt
        ? { what: texts.nothingLeft, todo: texts.nothingLeftAdvice }
        : texts.reasons[reason]
      expect(text).toContain(what)
      // At an alarm, a guard comes.
      if (place !== 'gate, tag with alarm') expect(text).toContain(todo)
      expect(text).not.toMatch(BLAME)
      const others = DENY_REASONS.filter((other) => other !== reason).map((other) => texts.reasons[other].what)
      expect(others).not.toContain(what)
    },
  )
})

describe('the advice of a denial by the rules', () => {
  const deviceOf = (fields: Partial<DeviceFacts>): DeviceFacts => ({
    deviceId: 'dev_1',
    storeId: 'st_1',
    deviceType: 'self_checkout_detacher',
    workflowType: 'self_service',
    ...completeCapabilities('self_checkout_detacher', {}),
    agentId: 'agent_1',
    revoked: false,
    ...fields,
  })
  const staffed = deviceOf({ workflowType: 'staff_assisted' })
  const policy = ProtectionPolicy.parse({
    allowedActionsByCategory: {
      '*': { detach_hard_tag: ['self_service', 'staff_assisted'] },
      wine: { detach_hard_tag: ['staff_assisted'] },
    },
  })
  const facts: DecisionFacts = {
    action: 'detach_hard_tag',
    storeId: 'st_1',
    device: deviceOf({}),
    clockTrusted: true,
    stage: 'fresh',
    item: { status: 'paid', category: '', brand: '', priceCent: 100 },
    identifiedBy: [],
    right: 'free',
    hasOperator: false,
  }
  const wine = { status: 'paid', category: 'wine', brand: '', priceCent: 100 } as const

  it.each<[DenyReason, Partial<DecisionFacts>, Partial<DecisionFacts>]>([
    ['device_unknown', { device: null }, { device: deviceOf({}) }],
    ['device_revoked', { device: deviceOf({ revoked: true }) }, { device: deviceOf({}) }],
    ['clock_untrusted', { clockTrusted: false }, { device: staffed, hasOperator: true }],
    ['policy_stale', { stage: 'expired' }, { device: staffed, hasOperator: true }],
    ['authorization_outstanding', { right: 'leased_elsewhere' }, { right: 'free' }],
    ['workflow_not_allowed', { item: wine }, { device: staffed }],
    ['limit_exceeded', { limit: 'too many receipts' }, { hasOperator: true }],
    ['limit_exceeded', { limit: 'too many receipts', hasOperator: true, approvals: 10 }, { approvals: 0 }],
  ])('releases after %s', (reason, denied, followed) => {
    expect(decide({ ...facts, ...denied }, policy)).toMatchObject({ allowed: false, reason })
    expect(decide({ ...facts, ...denied, ...followed }, policy)).toMatchObject({ allowed: true })
  })
})

describe('the advice of a denial at an offline station', () => {
  const PIN = '471108'
  let store: TestStore
  let operatorId: string
  let numbers = 0
  afterEach(() => store.stop())
  const { device, offline, product } = atLanes(() => store)
  const ok = (operation: string, body: Json): Promise<Json> =>
    store.drive(store.shop.ok(operation, { storeId: store.shop.storeId, ...body }))
  const atStation = (body: Json) =>
    store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', ...body })
  const asStaff = async (body: Json) => {
    const { body: session } = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: PIN } })
    const headers = { 'x-untag-operator': session.session }
    return store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', ...body }, headers)
  }
  /** A tag with a printed number, sold with a receipt. */
  const sold = async (fields: Json = {}) => {
    const tagId = `HT-${++numbers}`
    await ok('registerProtectedItems', { items: [{ tagId, ean: product().ean, ...fields }] })
    const { receipt, purchase } = await store.buy([{ ean: product().ean, quantity: 1, tagIds: [tagId] }])
    await store.until('the replica', () => store.agent.items.find('tagId', tagId)?.status === 'paid')
    return { tagId, receipt, purchase }
  }
  const RELEASED = { authorized: true, outcome: 'confirmed', offline: true }
  const denied = (reason: DenyReason) => ({ authorized: false, reason, offline: true })

  beforeEach(async () => {
    store = await openStore()
    operatorId = (await ok('registerOperator', { name: 'Frau Petersen', pin: PIN })).operatorId
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
  })

  it('ends with a release by staff for a receipt that is forged or expired', async () => {
    const [forged, old] = [await sold(), await sold()]
    await offline()
    expect(await atStation({ receipt: `${forged.receipt.slice(0, -6)}AAAAAA` })).toMatchObject(denied('token_invalid'))
    expect(await asStaff({ tagId: forged.tagId })).toMatchObject(RELEASED)
    store.world.sleep(25 * 3_600_000)
    expect(await atStation({ receipt: old.receipt })).toMatchObject(denied('token_expired'))
    expect(await asStaff({ tagId: old.tagId })).toMatchObject(RELEASED)
  })

  it('keeps the goods of a cancelled purchase, and goods on hold', async () => {
    const [cancelled, held] = [await sold(), await sold()]
    const { transactionId } = cancelled.purchase
    await store.drive(store.shop.ok('markPurchaseCancelled', { transactionId }))
    await ok('updateItemStatus', { tagId: held.tagId, itemStatus: 'exception_hold' })
    await store.until('the changes', () =>
      [
        [cancelled.tagId, 'cancelled'],
        [held.tagId, 'exception_hold'],
      ].every(([tagId = '', status]) => store.agent.items.find('tagId', tagId)?.status === status),
    )
    await store.until('the denial', () => (store.agent.trust.heldVersions().deny?.[1] ?? 0) > 0)
    await offline()
    expect(await atStation({ receipt: cancelled.receipt })).toMatchObject(denied('token_revoked'))
    expect(await asStaff({ tagId: cancelled.tagId })).toMatchObject(denied('item_not_paid'))
    for (const ask of [atStation, asStaff])
      expect(await ask({ receipt: held.receipt, tagId: held.tagId })).toMatchObject({
        ...denied('item_not_paid'),
        itemStatus: 'exception_hold',
      })
  })

  it('ends with a release at the right device, or by the receipt', async () => {
    const { tagId, receipt } = await sold()
    await offline()
    const wrong = { deviceId: device('gate'), protectionAction: 'deactivate_label', tagId }
    expect(await store.authorize(wrong)).toMatchObject(denied('device_not_capable'))
    const alone = { deviceId: device('detacher'), protectionAction: 'detach_hard_tag', receipt }
    expect(await store.authorize(alone)).toMatchObject(denied('tag_not_read'))
    expect(await asStaff({ tagId: 'HT-unknown' })).toMatchObject(denied('item_unknown'))
    expect(await atStation({ receipt })).toMatchObject(RELEASED)
    for (const ask of [atStation, asStaff]) expect(await ask({ receipt })).toMatchObject(denied('already_redeemed'))
  })

  it('keeps goods that the policy forbids, and releases those that need staff', async () => {
    const { policy } = await ok('fetchProtectionPolicy', {})
    const tabak = { ...policy.allowedActionsByCategory, tabak: {} }
    await ok('updateProtectionPolicy', {
      policy: { ...policy, allowedActionsByCategory: tabak, requiresStaffForBrand: ['Luxus'] },
    })
    await store.until('the policy', () => store.agent.trust.policy?.policy.requiresStaffForBrand.length === 1)
    const [forbidden, luxury] = [await sold({ category: 'tabak' }), await sold({ brand: 'Luxus' })]
    await offline()
    for (const ask of [atStation, asStaff])
      expect(await ask({ receipt: forbidden.receipt, tagId: forbidden.tagId })).toMatchObject(
        denied('action_not_allowed'),
      )
    for (const body of [{ tagId: luxury.tagId }, { tagId: luxury.tagId, receipt: luxury.receipt }])
      expect(await atStation(body)).toMatchObject(denied('manual_assistance_required'))
    expect(await asStaff({ tagId: luxury.tagId })).toMatchObject(RELEASED)
  })

  it('ends with a release by staff after 80 hours', async () => {
    const { tagId } = await sold()
    await offline()
    store.world.sleep(81 * 3_600_000)
    const detach = { deviceId: device('detacher'), protectionAction: 'detach_hard_tag', tagId }
    expect(await store.authorize(detach)).toMatchObject(denied('policy_stale'))
    expect(await asStaff({ tagId })).toMatchObject(RELEASED)
  })
})
