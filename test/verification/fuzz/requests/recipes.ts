import type { Operation } from '../../../../cloud/platform/operations/operation.ts'
import { prefixOf } from '../scene/findings.ts'
import { knownOrNew, MAKERS, newEan, openPurchase, paidPurchase, registration, shopper, yesterday } from './makers.ts'
import { ERP, RECEIVER, TILL } from '../scene/merchant-systems.ts'
import { PROTECTION_RECIPES, type Recipe } from './protection-recipes.ts'
import { USER_RECIPES } from './user-recipes.ts'
import { day, inTime, known, storeOf, type Scene } from '../scene/scene.ts'
import type { Json } from '../scene/served-cloud.ts'

/** A PNG image of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const HOUR_MS = 3_600_000

const connected = (origin: string) => ({
  system: 'generic',
  credentials: { baseUrl: origin, token: 'a-token-of-theirs' },
})
const sold = (scene: Scene) => [{ transactionId: `till-${scene.count()}`, total: 4.99, timestamp: inTime(scene, 0) }]
const claimed = async (scene: Scene): Promise<Json> => {
  const { registrationId, claimSecret } = await registration(scene)
  await scene.call('approveStoreRegistration', { registrationId }, 'admin')
  return { registrationId, claimSecret }
}

const saleOfTill = (scene: Scene) => ({
  saleId: `${scene.count()}`,
  occurredAt: inTime(scene, 0),
  lines: [{ name: scene.text(), quantity: 1, priceUnit: 499, vat: 7 }],
})

/** Recipes for operations whose example does not suffice. */
const RECIPES: Readonly<Record<string, Recipe>> = {
  ...PROTECTION_RECIPES,
  ...USER_RECIPES,
  fetchStores: () => ({}),
  setStorePackage: ({ accounts, chance }) => ({
    storeId: accounts.spare.storeId,
    package: chance.one(['discover', 'assist', 'GO', 'grow', 'PRIME']),
  }),
  simulateStorePackage: ({ accounts, chance }) => ({
    storeId: accounts.spare.storeId,
    package: chance.one(['discover', 'GO', 'PRIME']),
  }),
  fetchAccount: ({ accounts }) => ({ accountId: accounts.spare.accountId }),
  fetchAccountStores: ({ accounts }) => ({ accountId: accounts.spare.accountId }),
  rotateSigningKey: ({ accounts, chance }) => ({
    use: chance.one(['token', 'receipt']),
    accountId: accounts.spare.accountId,
    mode: 'live',
  }),
  claimRegistration: claimed,
  approveStoreRegistration: async (scene) => ({ registrationId: (await registration(scene))['registrationId'] }),
  rejectStoreRegistration: async (scene) => ({
    registrationId: (await registration(scene))['registrationId'],
    reason: scene.text(),
  }),
  fetchRegistrations: () => ({}),
  createApiKey: (scene) => ({ kind: scene.chance.one(['secret', 'publishable']), name: scene.text() }),
  // Uses a new key, because the run needs all other keys.
  rollApiKey: async (scene) => ({ keyId: await MAKERS['key']?.(scene) }),
  revokeApiKey: async (scene) => ({ keyId: await MAKERS['key']?.(scene) }),
  fetchAuditLog: () => ({ limit: 20 }),
  fetchProduct: async (scene) => ({ productId: await knownOrNew(scene, 'prd') }),
  searchProducts: (scene) => ({ storeId: storeOf(scene), q: scene.party.canary }),
  insertProduct: (scene) => ({ ...goods(scene), storeId: storeOf(scene) }),
  bulkImportProducts: (scene) => ({ storeId: storeOf(scene), products: [goods(scene), goods(scene)] }),
  importProducts: (scene) => ({
    storeId: storeOf(scene),
    file: `ean,name,price,vat\n${newEan(scene)},Ware ${scene.text()},1.99,19\n`,
  }),
  uploadImageToProduct: async (scene) => ({ productId: await knownOrNew(scene, 'prd'), imageBase64: PIXEL }),
  removeProductFromStore: async (scene) => ({
    storeId: scene.party.storeIds[0],
    productId: await MAKERS['prd']?.(scene),
  }),
  createOffer: (scene) => ({
    storeIds: [storeOf(scene)],
    title: `Wochen ${scene.text()}`,
    validFrom: inTime(scene, -HOUR_MS),
    validTo: inTime(scene, 200 * HOUR_MS),
    products: [{ name: `Schirm ${scene.text()}`, price: 9.99, oldPrice: 14.99 }],
  }),
  updateOffer: async (scene) => ({ offerId: await knownOrNew(scene, 'off'), title: `Angebot ${scene.text()}` }),
  deleteOffer: async (scene) => ({ offerId: await MAKERS['off']?.(scene) }),
  getManagerOffers: () => ({ limit: 20 }),
  cloneOffer: async (scene) => ({ offerId: await knownOrNew(scene, 'off'), targetStoreIds: [storeOf(scene)] }),
  setStock: async (scene) => ({
    productId: await knownOrNew(scene, 'prd'),
    storeId: scene.party.storeIds[0],
    quantity: null,
  }),
  submitClickCollectOrder: async (scene) => ({
    storeId: scene.party.storeIds[0],
    userId: shopper(scene),
    items: [{ productId: await knownOrNew(scene, 'prd'), quantity: 1 }],
    note: scene.text(),
  }),
  registerPushSubscription: (scene) => ({
    kind: 'https',
    endpoint: `${RECEIVER}/${scene.count()}`,
    storeId: storeOf(scene),
  }),
  fetchPushSubscriptions: () => ({}),
  removePushSubscription: async (scene) => ({ subscriptionId: await knownOrNew(scene, 'psu') }),
  updateClickCollectStatus: async (scene) => ({
    orderId: await knownOrNew(scene, 'ord', 0.6),
    status: scene.chance.one(['confirmed', 'confirmed', 'preparing', 'ready', 'cancelled']),
  }),
  verifyPickupCode: async (scene) => {
    await MAKERS['ord']?.(scene)
    return { storeId: scene.party.storeIds[0], pickupCode: known(scene, 'pickupCode') ?? '7K2M-9XQ4' }
  },
  fetchClickCollectOrders: (scene) => ({ storeId: storeOf(scene) }),
  createLoyaltyProgram: (scene) => ({
    storeId: storeOf(scene),
    name: `Karte ${scene.text()}`,
    type: scene.chance.one(['stamps', 'points', 'cashback', 'tier']),
  }),
  addLoyaltyPoints: async (scene) => ({
    programId: await knownOrNew(scene, 'loy'),
    userId: shopper(scene),
    amount: 25,
    transactionId: `till-${scene.count()}`,
  }),
  issueLoyaltyCard: async (scene) => ({
    programId: await knownOrNew(scene, 'loy'),
    userId: shopper(scene),
    renew: scene.chance.happens(0.3),
  }),
  redeemLoyaltyPoints: async (scene) => {
    const programId = await knownOrNew(scene, 'loy')
    const userId = shopper(scene)
    await scene.call('addLoyaltyPoints', { programId, userId, amount: 5, transactionId: `till-${scene.count()}` })
    return { programId, userId, amount: 2 }
  },
  loyaltyCheckIn: async (scene) => {
    const made = await scene.call('createLoyaltyProgram', {
      storeId: scene.party.storeIds[0],
      name: `Karte ${scene.text()}`,
      type: 'stamps',
      earningMethods: ['qr_checkin'],
    })
    return {
      programId: made?.['programId'],
      userId: shopper(scene),
      method: 'qr_checkin',
      code: made?.['checkInCode'] ?? 'x',
    }
  },
  getLoyaltyPrograms: () => ({}),
  startCheckout: async (scene) => ({
    sessionId: await MAKERS['ses']?.(scene),
    items: [{ productId: await knownOrNew(scene, 'prd', 0.1), quantity: scene.chance.between(1, 3) }],
  }),
  completeTestCheckout: async (scene) => ({ transactionId: await openPurchase(scene) }),
  approveCheckout: async (scene) => {
    const storeId = scene.party.storeIds[0]
    await scene.call('updateProtectionPolicy', { storeId, policy: { spotCheckRate: 1 } })
    const transactionId = await openPurchase(scene)
    const operatorId = await knownOrNew(scene, 'op')
    await scene.call('updateProtectionPolicy', { storeId, policy: { spotCheckRate: 0 } })
    return { transactionId, operatorId }
  },
  fetchPurchase: async (scene) => ({ transactionId: await knownOrNew(scene, 'pur') }),
  fetchPurchaseHistory: (scene) => ({ storeId: storeOf(scene), limit: 20 }),
  markPurchaseCancelled: async (scene) => ({ purchaseId: await openPurchase(scene), reason: scene.text() }),
  generateReceiptQR: async (scene) => ({ purchaseId: await paidPurchase(scene) }),
  generateReceiptWithQR: async (scene) => ({ purchaseId: await paidPurchase(scene) }),
  getReceiptFromToken: async (scene) => ({ token: await receiptToken(scene) }),
  configurePSP: (scene) => ({ storeId: storeOf(scene), provider: 'custom', config: scene.served.books.config() }),
  processPayment: async (scene) => ({ purchaseId: await openPurchase(scene) }),
  refundPayment: async (scene) => ({ purchaseId: await paidPurchase(scene), amount: 0.5, reason: scene.text() }),
  recordSales: (scene) => ({ storeId: storeOf(scene), sales: [saleOfTill(scene)] }),
  recordReturns: async (scene) => {
    const storeId = storeOf(scene)
    const sale = saleOfTill(scene)
    await scene.call('recordSales', { storeId, sales: [sale] })
    return { storeId, returns: [{ returnId: `r${scene.count()}`, saleId: sale.saleId, resellable: true }] }
  },
  voidSale: async (scene) => {
    const storeId = storeOf(scene)
    const sale = saleOfTill(scene)
    await scene.call('recordSales', { storeId, sales: [sale] })
    return { storeId, saleId: sale.saleId }
  },
  getReceiptFromCode: (scene) => ({ storeId: storeOf(scene), code: `code-${scene.count()}` }),
  revokeTill: (scene) => ({ storeId: storeOf(scene), tillId: `till-${scene.count()}` }),
  syncPOS: (scene) => ({ storeId: storeOf(scene), ...connected(TILL) }),
  pushToPOS: (scene) => ({
    storeId: storeOf(scene),
    ...connected(TILL),
    dataType: 'transactions',
    records: sold(scene),
  }),
  syncERP: (scene) => ({
    storeId: storeOf(scene),
    ...connected(ERP),
    dataType: scene.chance.one(['stock', 'orders', 'suppliers']),
  }),
  pushToERP: (scene) => ({
    storeId: storeOf(scene),
    ...connected(ERP),
    dataType: 'transactions',
    records: sold(scene),
  }),
  registerWebhook: (scene) => ({ url: `${RECEIVER}/${scene.count()}`, events: ['*'], storeId: storeOf(scene) }),
  updateWebhook: async (scene) => ({ webhookId: await knownOrNew(scene, 'whk'), events: ['*'] }),
  deleteWebhook: async (scene) => ({ webhookId: await MAKERS['whk']?.(scene) }),
  sendTestWebhook: async (scene) => ({ webhookId: await knownOrNew(scene, 'whk') }),
  redeliverWebhook: async (scene) => ({ deliveryId: await knownOrNew(scene, 'whd') }),
  fetchWebhookDeliveries: () => ({ limit: 20 }),
  fetchWebhookEvents: () => ({ limit: 20 }),
  getLoyaltyWebhookEvents: (scene) => ({
    storeId: storeOf(scene),
    url: `${RECEIVER}/${scene.count()}`,
    events: ['loyalty.points_earned'],
    secret: 'sixteen-characters-or-more',
  }),
  fetchAnalytics: (scene) => ({ storeId: storeOf(scene), from: day(scene, -20), to: day(scene, 0), period: 'weekly' }),
  recordEngagement: (scene) => ({
    type: scene.chance.one(['profile_view', 'follow', 'unfollow']),
    storeId: storeOf(scene),
    userId: shopper(scene),
  }),
  exportSalesData: (scene) => ({
    from: day(scene, -20),
    to: day(scene, 0),
    ...(scene.chance.happens(0.5) && { format: 'csv' }),
  }),
  closeStoreDay: (scene) => ({ storeId: storeOf(scene), date: yesterday(scene) }),
  requestAssistance: async (scene) => ({ zoneId: await knownOrNew(scene, 'zon'), message: scene.text() }),
  fetchOpenTasks: (scene) => ({ storeId: storeOf(scene) }),
  fetchAssistanceRequests: (scene) => ({ storeId: storeOf(scene) }),
  answerAssistanceRequest: async (scene) => ({ requestId: await knownOrNew(scene, 'hlp'), message: scene.text() }),
}

/** A request that should succeed, if the party may call the operation. */
export async function goodRequest(operation: Operation, scene: Scene): Promise<Json> {
  const recipe = RECIPES[operation.name]
  return recipe ? recipe(scene) : ((await own(operation.example, scene)) as Json)
}

/** Replaces ids and names in an example by ids and names of the party. */
async function own(value: unknown, scene: Scene, field = ''): Promise<unknown> {
  if (Array.isArray(value)) {
    const all: unknown[] = []
    for (const each of value) all.push(await own(each, scene, field))
    return all
  }
  if (typeof value === 'object' && value !== null) {
    const entries: [string, unknown][] = []
    for (const [name, each] of Object.entries(value)) entries.push([name, await own(each, scene, name)])
    return Object.fromEntries(entries)
  }
  const prefix = prefixOf(value)
  if (prefix !== undefined) return knownOrNew(scene, prefix)
  if (field === 'userId') return shopper(scene)
  if (/^(?:name|trading|tradingName|companyName|legal|reason|note|role)$/.test(field)) return scene.text()
  return value
}

function goods(scene: Scene): Json {
  return { ean: newEan(scene), name: `Ware ${scene.text()}`, price: 1.99, vat: 7, brand: scene.text() }
}

async function receiptToken(scene: Scene): Promise<string> {
  const answer = await scene.call('generateReceiptQR', { purchaseId: await paidPurchase(scene) })
  const token =
    String(answer?.['url'] ?? '')
      .split('/')
      .at(-1) ?? ''
  if (token !== '') scene.findings.add(scene.party.name, 'receiptToken', token)
  return token === '' ? 'x' : token
}
