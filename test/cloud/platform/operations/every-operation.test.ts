import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { listen } from '../../../../host/http-server.ts'
import { findConnector } from '../../../../cloud/sales/integrations/connectors.ts'
import { ERP_SYSTEMS, POS_SYSTEMS } from '../../../../cloud/sales/integrations/connector.ts'
import { PLATFORM_ROLE } from '../../../../cloud/platform/foundation/caller.ts'
import { hashOfKey } from '../../../../cloud/platform/accounts/api-keys.ts'
import { hashOfUserToken } from '../../../../cloud/platform/users/user-queries.ts'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import { SaleOfCloud } from '../../../../cloud/sales/tills/sale-operations.ts'
import { TillReturn } from '../../../../policy/till-sale.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { PROVIDERS } from '../../../../cloud/sales/payments/providers.ts'
import { validationFindings, findingMessage, pathText } from '../../../../policy/validation-findings.ts'
import type { Answer, Json } from '../../../support/cloud.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'
import { guardPlans, type PlanGuard } from '../../../support/plan-guard.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { limitsOf } from '../../../support/limits-of.ts'
import { newEan, newEpc, openShop, type Shop } from '../../../support/shop.ts'

const ADDRESS = { street: 'Am Speicher 12', city: 'Hamburg', zip: '20457', country: 'DE' }

const CREDENTIAL = { id: 'AAAA', rawId: 'AAAA', type: 'public-key' }

/** A request of each operation that is valid except for its ids. Add a row for a new operation. */
const REQUESTS: Record<string, (shop: Shop) => Json> = {
  fetchStores: () => ({}),
  fetchStoreNames: () => ({}),
  fetchStore: ({ storeId }) => ({ storeId }),
  insertStore: () => ({
    companyName: 'Hafenkante GmbH',
    tradingName: 'Hafenkante',
    address: ADDRESS,
    phone: '+4940555010100',
  }),
  updateStore: ({ storeId }) => ({ storeId, phone: '+4940555010100' }),
  setStorePackage: () => ({ storeId: 'st_x', package: 'grow' }),
  rotateSigningKey: () => ({ use: 'token', revoke: 'unknown-' }),
  submitStoreRegistration: () => ({ companyName: 'Hafenkante GmbH', tradingName: 'Hafenkante', address: ADDRESS }),
  submitStoreRegistrationRequest: () => ({ companyName: 'Hafenkante GmbH' }),
  claimRegistration: () => ({ registrationId: 'reg_x', claimSecret: 'x' }),
  fetchRegistrations: () => ({}),
  simulateStorePackage: () => ({ storeId: 'st_x', package: 'grow' }),
  fetchAccounts: () => ({}),
  fetchAccount: () => ({ accountId: 'acc_x' }),
  fetchAccountStores: () => ({ accountId: 'acc_x' }),
  approveStoreRegistration: () => ({ registrationId: 'reg_x' }),
  rejectStoreRegistration: () => ({ registrationId: 'reg_x', reason: 'x' }),
  createApiKey: () => ({ kind: 'secret', name: 'x' }),
  fetchApiKeys: () => ({}),
  rollApiKey: () => ({ keyId: 'key_x' }),
  revokeApiKey: () => ({ keyId: 'key_x' }),
  fetchAuditLog: () => ({}),
  fetchAccountSettings: () => ({}),
  updateAccountSettings: () => ({ acceptUpc: true }),
  inviteUser: () => ({ email: 'jana@shop.example', role: 'manager' }),
  acceptInvitation: () => ({ token: 'x', name: 'Jana', password: 'vier Wörter, die niemand rät' }),
  fetchUsers: () => ({}),
  updateUser: () => ({ userId: 'usr_x', role: 'viewer' }),
  removeUser: () => ({ userId: 'usr_x' }),
  signIn: () => ({ email: 'jana@shop.example', password: 'x' }),
  signOut: () => ({}),
  fetchSessions: () => ({}),
  endSessions: () => ({}),
  fetchProfile: () => ({}),
  updateProfile: () => ({ name: 'Jana' }),
  changePassword: () => ({ password: 'x', newPassword: 'vier Wörter, die niemand rät' }),
  switchMode: () => ({ mode: 'test' }),
  beginOpenIdSignIn: () => ({}),
  finishOpenIdSignIn: () => ({ flow: 'x', query: 'code=x&state=x' }),
  beginSecondFactor: () => ({}),
  confirmSecondFactor: () => ({ code: '000000' }),
  removeSecondFactor: () => ({ code: '000000' }),
  confirmSignIn: () => ({ sessionToken: 'x', code: '000000' }),
  fetchAlarmNotices: () => ({}),
  registerAlarmNotices: () => ({
    endpoint: 'https://push.example/w',
    keys: {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    },
  }),
  removeAlarmNotices: () => ({}),
  beginPasskey: () => ({}),
  registerPasskey: () => ({
    name: 'Handy',
    credential: { ...CREDENTIAL, response: { clientDataJSON: 'e30', attestationObject: 'oA' } },
  }),
  fetchPasskeys: () => ({}),
  removePasskey: () => ({ passkeyId: 'psk_x' }),
  beginPasskeySignIn: () => ({}),
  signInWithPasskey: () => ({
    credential: { ...CREDENTIAL, response: { clientDataJSON: 'e30', authenticatorData: 'AA', signature: 'AA' } },
  }),
  fetchProducts: ({ storeId }) => ({ storeId }),
  fetchProduct: ({ products }) => ({ productId: products[0].productId }),
  searchProducts: ({ storeId }) => ({ storeId, q: 'leinen' }),
  insertProduct: ({ storeId }) => ({ storeId, ean: newEan(), name: 'Hafermilch', price: 1.99, vat: 7 }),
  updateProduct: ({ storeId, products }) => ({ storeId, productId: products[0].productId, unit: 'Stück' }),
  registerProductToStore: ({ storeId, products }) => ({ storeId, productId: products[0].productId }),
  removeProductFromStore: ({ storeId, products }) => ({ storeId, productId: products.at(-1).productId }),
  bulkImportProducts: ({ storeId }) => ({
    storeId,
    products: [{ ean: newEan(), name: 'Hafermilch', price: 1.99, vat: 7 }],
  }),
  importProducts: ({ storeId }) => ({ storeId, file: 'ean,name,price,vat\n4006381333931,Marker,1.99,19\n' }),
  uploadImageToProduct: ({ products }) => ({ productId: products[0].productId, imageBase64: PIXEL }),
  createOffer: ({ storeId }) => ({
    storeIds: [storeId],
    title: 'Herbstwochen',
    validFrom: '2026-11-20T08:00:00Z',
    validTo: '2026-12-04T08:00:00Z',
    products: [{ name: 'Schirm', price: 9.99 }],
  }),
  updateOffer: () => ({ offerId: 'off_x', title: 'Winterwochen' }),
  deleteOffer: () => ({ offerId: 'off_x' }),
  getManagerOffers: () => ({ limit: 10 }),
  fetchOffer: () => ({ offerId: 'off_x' }),
  fetchActiveOffers: ({ storeId }) => ({ storeId }),
  cloneOffer: ({ storeId }) => ({ offerId: 'off_x', targetStoreIds: [storeId] }),
  setStock: ({ products, storeId }) => ({ productId: products[1].productId, storeId, quantity: 5 }),
  fetchStock: ({ products, storeId }) => ({ storeId, productId: products[0].productId }),
  submitClickCollectOrder: ({ products, storeId }) => ({
    storeId,
    userId: 'shopper-1',
    items: [{ productId: products[0].productId, quantity: 1 }],
  }),
  fetchPushKey: () => ({}),
  registerPushSubscription: ({ storeId }) => ({ kind: 'https', endpoint: 'https://push.example/notices', storeId }),
  fetchPushSubscriptions: () => ({}),
  removePushSubscription: () => ({ subscriptionId: 'psu_x' }),
  updateClickCollectStatus: () => ({ orderId: 'ord_x', status: 'confirmed' }),
  verifyPickupCode: ({ storeId }) => ({ storeId, pickupCode: '7K2M-9XQ4' }),
  fetchClickCollectOrders: ({ storeId }) => ({ storeId }),
  createLoyaltyProgram: ({ storeId }) => ({ storeId, name: 'Stempelkarte', type: 'stamps' }),
  updateLoyaltyProgram: () => ({ programId: 'loy_x', name: 'Stempelkarte' }),
  getLoyaltyProgram: ({ programId }) => ({ programId }),
  getStoreLoyaltyPrograms: ({ storeId }) => ({ storeId }),
  getLoyaltyPrograms: () => ({}),
  getLoyaltyAnalytics: ({ storeId }) => ({ storeId }),
  addLoyaltyPoints: ({ programId }) => ({ programId, userId: 'shopper-1', amount: 1 }),
  redeemLoyaltyPoints: ({ programId }) => ({ programId, userId: 'shopper-1', amount: 1 }),
  issueLoyaltyCard: ({ programId }) => ({ programId, userId: 'shopper-1' }),
  loyaltyCheckIn: ({ programId }) => ({ programId, userId: 'shopper-1', method: 'qr_checkin', code: 'x' }),
  checkIn: ({ storeId }) => ({ storeId }),
  startCheckout: ({ products }) => ({ sessionId: 'ses_x', items: [{ ean: products[0].ean, quantity: 1 }] }),
  completeTestCheckout: () => ({ transactionId: 'pur_x' }),
  fetchPurchase: () => ({ transactionId: 'pur_x' }),
  fetchPurchaseHistory: ({ storeId }) => ({ storeId }),
  approveCheckout: () => ({ transactionId: 'pur_x', operatorId: 'op_x' }),
  generateCodes: ({ storeId }) => ({ storeId }),
  generateReceiptWithQR: () => ({ purchaseId: 'pur_x' }),
  markPurchaseCancelled: () => ({ purchaseId: 'pur_x' }),
  generateReceiptQR: () => ({ purchaseId: 'pur_x' }),
  getReceiptFromToken: () => ({ token: 'x' }),
  verifySecurityTagDeactivation: () => ({ purchaseId: 'pur_x' }),
  verifyProtectedItem: ({ devices, storeId }) => ({
    deviceId: devices.exit_gate,
    storeId,
    protectionAction: 'verify_item_status',
    epc: newEpc(),
  }),
  redeemProtectionAuthorization: ({ devices }) => ({
    replayProtectedNonce: 'x',
    deviceId: devices.exit_gate,
    redemptionId: 'r',
  }),
  revokeProtectionAuthorization: () => ({ replayProtectedNonce: 'x' }),
  resolveRedemption: () => ({ redemptionId: 'r', outcome: 'confirmed', operatorId: 'op_x' }),
  registerDevice: ({ storeId }) => ({ storeId, deviceType: 'exit_gate' }),
  fetchDevices: ({ storeId }) => ({ storeId }),
  updateDevice: ({ devices }) => ({ deviceId: devices.exit_gate, name: 'Ausgang' }),
  decommissionDevice: ({ devices }) => ({ deviceId: devices.cabinet_unlocker }),
  reportDeviceHeartbeat: ({ devices }) => ({ deviceId: devices.exit_gate }),
  registerProtectedItems: ({ storeId }) => ({ storeId, items: [{ epc: newEpc() }] }),
  reuseTags: ({ storeId }) => ({ storeId, tags: [{ epc: newEpc(), ean: '4006381333931' }] }),
  recallProducts: ({ storeId }) => ({ storeIds: [storeId], ean: '4006381333931', reason: 'Splitter' }),
  endRecall: () => ({ recallId: 'rcl_x' }),
  fetchRecalls: ({ storeId }) => ({ storeId }),
  fetchProtectedItem: ({ storeId }) => ({ storeId, epc: newEpc() }),
  updateItemStatus: ({ storeId }) => ({ storeId, epc: newEpc(), itemStatus: 'exception_hold' }),
  fetchProtectionPolicy: ({ storeId }) => ({ storeId }),
  updateProtectionPolicy: ({ storeId }) => ({ storeId, policy: {} }),
  moveReceiptHome: ({ storeId }) => ({ storeId, home: 'cloud' }),
  simulateProtectionPolicy: ({ storeId }) => ({ storeId, policy: {} }),
  registerOperator: ({ storeId }) => ({ storeId, name: 'Frau Petersen' }),
  fetchOperators: ({ storeId }) => ({ storeId }),
  updateOperator: () => ({ operatorId: 'op_x', newBadge: true }),
  removeOperator: () => ({ operatorId: 'op_x' }),
  reportProtectionEvents: () => ({ events: [] }),
  fetchOfflineFigures: ({ storeId }) => ({
    storeId,
    since: '2026-01-01T00:00:00Z',
    until: '2026-01-08T00:00:00Z',
  }),
  fetchExceptions: ({ storeId }) => ({ storeId }),
  acknowledgeException: () => ({ exceptionId: 'exc_x' }),
  fetchAlarms: ({ storeId }) => ({ storeId }),
  disposeAlarms: ({ storeId }) => ({
    storeId,
    until: '2026-11-20T12:00:00Z',
    disposition: 'phantom',
    operatorId: 'op_x',
  }),
  disposeAlarm: () => ({ eventId: 'evt_x', disposition: 'real', operatorId: 'op_x' }),
  fetchProtectionEvents: ({ storeId }) => ({ storeId }),
  exportEpcisEvents: ({ storeId }) => ({ storeId }),
  createEnrolmentCode: ({ storeId }) => ({ storeId }),
  createSetupCode: ({ storeId }) => ({ storeId }),
  registerDeviceWithCode: () => ({ code: 'K7QX-2M9T-4WZ1', deviceType: 'exit_gate' }),
  enrolEdgeAgent: () => ({ code: 'X', publicJwk: { kty: 'OKP', crv: 'Ed25519', x: 'x' }, proof: 'x' }),
  agentLogin: () => ({ agentId: 'agt_x' }),
  rotateAgentKey: () => ({ publicJwk: { kty: 'OKP', crv: 'Ed25519', x: 'x' }, proof: 'x' }),
  fetchSignedDocuments: () => ({}),
  fetchAgents: ({ storeId }) => ({ storeId }),
  fetchAgentConditions: ({ storeId }) => ({ storeId }),
  revokeAgent: () => ({ agentId: 'agt_x' }),
  resolveAgentFork: () => ({ agentId: 'agt_x', decision: 'trust' }),
  configurePSP: ({ storeId }) => ({
    storeId,
    provider: 'custom',
    config: { baseUrl: 'https://psp.example', webhookSecret: 'a-secret-of-their-own' },
  }),
  processPayment: () => ({ purchaseId: 'pur_x' }),
  refundPayment: () => ({ purchaseId: 'pur_x' }),
  recordSales: ({ storeId }) => ({
    storeId,
    sales: [
      {
        saleId: '1',
        occurredAt: '2026-11-20T09:00:00Z',
        lines: [{ name: 'Schirm', quantity: 1, priceUnit: 990, vat: 19 }],
      },
    ],
  }),
  recordReturns: ({ storeId }) => ({ storeId, returns: [{ returnId: '1', saleId: 'none' }] }),
  voidSale: ({ storeId }) => ({ storeId, saleId: 'none' }),
  revokeTill: ({ storeId }) => ({ storeId, tillId: 'till-x' }),
  getReceiptFromCode: ({ storeId }) => ({ storeId, code: 'unknown-code' }),
  syncPOS: ({ storeId }) => ({
    storeId,
    system: 'generic',
    credentials: { baseUrl: 'https://till.example', token: 'a-token-of-their-own' },
  }),
  pushToPOS: ({ storeId }) => ({
    storeId,
    system: 'generic',
    dataType: 'transactions',
    records: [{ transactionId: 'x' }],
  }),
  fetchIntegrations: ({ storeId }) => ({ storeId }),
  syncERP: ({ storeId }) => ({
    storeId,
    system: 'generic',
    credentials: { baseUrl: 'https://erp.example', token: 'a-token-of-their-own' },
  }),
  pushToERP: ({ storeId }) => ({
    storeId,
    system: 'generic',
    dataType: 'transactions',
    records: [{ transactionId: 'x' }],
  }),
  fetchERPRecords: ({ storeId }) => ({ storeId, dataType: 'suppliers' }),
  registerWebhook: ({ storeId }) => ({ storeId, url: 'https://receiver.example/hook', events: ['checkout.completed'] }),
  fetchWebhooks: ({ storeId }) => ({ storeId }),
  updateWebhook: () => ({ webhookId: 'whk_x', enabled: true }),
  deleteWebhook: () => ({ webhookId: 'whk_x' }),
  rollWebhookSecret: () => ({ webhookId: 'whk_x' }),
  sendTestWebhook: ({ storeId }) => ({ storeId }),
  fetchWebhookDeliveries: ({ storeId }) => ({ storeId }),
  redeliverWebhook: () => ({ deliveryId: 'whd_x' }),
  fetchWebhookEvents: ({ storeId }) => ({ storeId }),
  getLoyaltyWebhookEvents: ({ storeId }) => ({
    storeId,
    url: 'https://receiver.example/hook',
    events: ['loyalty.enrollment'],
    secret: 'a-secret-of-their-own',
  }),
  fetchAnalytics: ({ storeId }) => ({ storeId, from: '2026-11-01', to: '2026-11-30' }),
  recordEngagement: ({ storeId }) => ({ type: 'profile_view', storeId }),
  exportSalesData: ({ storeId }) => ({ storeId, from: '2026-11-01', to: '2026-11-30' }),
  closeStoreDay: ({ storeId }) => ({ storeId }),
  fetchClosings: ({ storeId }) => ({ storeId }),
  exportCustomerData: () => ({ userId: 'shopper-17' }),
  eraseCustomerData: () => ({ userId: 'shopper-17' }),
  createZone: ({ storeId }) => ({ storeId, name: 'Herren' }),
  fetchZones: ({ storeId }) => ({ storeId }),
  fetchOpenTasks: ({ storeId }) => ({ storeId }),
  callHelpToAlarm: () => ({ eventId: 'evt_x' }),
  requestAssistance: () => ({ zoneId: 'zon_x', message: 'Hallo?' }),
  fetchAssistanceRequests: ({ storeId }) => ({ storeId }),
  answerAssistanceRequest: () => ({ requestId: 'hlp_x', message: 'Ich komme.' }),
}

/** Operations whose GET form does something else than POST. */
const OTHER_FORMS = new Set(['getLoyaltyWebhookEvents'])

describe('an older GET form', () => {
  const forms = [...OPERATION_TABLE.values()].flatMap(({ name, request, get, getOnly }) =>
    get && !getOnly && !OTHER_FORMS.has(name) ? [[name, request, get.request] as const] : [],
  )
  it.each(forms)('of %s has the fields of the request', (_name, request, query) => {
    // The older form of fetchStore always contains products.
    const fields = Object.keys(shapeOf(request)).filter((field) => field !== 'includeProducts')
    expect(Object.keys(shapeOf(query)).sort()).toEqual(fields.sort())
  })
})

const GONE = '01KANX6Y7C3V9Q2M8R5T4W6Z1B'
const base64url = (text: string) => Buffer.from(text).toString('base64url')

const EPCIS = base64url(`1/item/itm_${GONE}.1`)

/** A cursor of each list. It is the id of a row that does not exist. */
const CURSORS: Record<string, string> = {
  fetchStores: `st_${GONE}`,
  fetchStoreNames: `st_${GONE}`,
  fetchRegistrations: `reg_${GONE}`,
  fetchAccounts: `acc_${GONE}`,
  fetchAccountStores: `st_${GONE}`,
  fetchPushSubscriptions: `psu_${GONE}`,
  fetchAuditLog: `aud_${GONE}`,
  fetchProducts: `prd_${GONE}`,
  getManagerOffers: `off_${GONE}`,
  fetchActiveOffers: `off_${GONE}`,
  fetchStock: `prd_${GONE}`,
  fetchClickCollectOrders: `ord_${GONE}`,
  getLoyaltyPrograms: `loy_${GONE}`,
  fetchPurchaseHistory: `pur_${GONE}`,
  fetchDevices: `dev_${GONE}`,
  fetchExceptions: `exc_${GONE}`,
  fetchRecalls: `rcl_${GONE}`,
  fetchAlarms: base64url(`1/evt_${GONE}`),
  fetchProtectionEvents: base64url(`1/evt_${GONE}`),
  exportEpcisEvents: EPCIS,
  fetchAgents: `agt_${GONE}`,
  fetchERPRecords: base64url('suppliers/S-17'),
  fetchWebhookDeliveries: `whd_${GONE}`,
  fetchWebhookEvents: `whe_${GONE}`,
  getLoyaltyWebhookEvents: `whk_${GONE}`,
  fetchClosings: '4',
  fetchAssistanceRequests: `hlp_${GONE}`,
}

/** The fields of a request. */
function shapeOf(schema: unknown): Json {
  return (schema as Json).shape ?? {}
}

/** A PNG of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const ID_FIELDS = [
  'storeId',
  'sessionId',
  'transactionId',
  'purchaseId',
  'deviceId',
  'operatorId',
  'productId',
  'offerId',
  'programId',
] as const
const BAD_BODIES = [
  '',
  '{',
  '[]',
  'null',
  '42',
  '"text"',
  '{"a":}',
  '{"storeId":',
  '\u0000',
  '{"storeId":"a\\u0000b"}',
  '{"storeId":"\\ud800"}',
  '{}{}',
  '<xml/>',
  'storeId=1',
  `{"a":${'['.repeat(40)}${']'.repeat(40)}}`,
]
/** A body that a recursive parser fails on. All operations have the same parser, so one of them gets it. */
const DEEP_BODY = `{"a":${'{"b":'.repeat(100_000)}1${'}'.repeat(100_000)}}`

const PRIME = { account: 'Prime', package: 'PRIME' } as const

/** Ways to end or change a right. `end` gets the key, the session token or the id of the agent. */
const ENDS: [string, 'key' | 'user' | 'agent', (tx: Db, id: string) => Promise<unknown>][] = [
  [
    'the key is revoked',
    'key',
    (tx, key) => tx.updateTable('api_key').set({ revoked_ms: 1 }).where('hash', '=', hashOfKey(key)).execute(),
  ],
  [
    'the key is bound to other stores',
    'key',
    (tx, key) => tx.updateTable('api_key').set({ store_ids: '["st_x"]' }).where('hash', '=', hashOfKey(key)).execute(),
  ],
  [
    'the session ends',
    'user',
    (tx, token) => tx.deleteFrom('user_session').where('token_hash', '=', hashOfUserToken(token)).execute(),
  ],
  [
    'the role of the user is lowered',
    'user',
    (tx, token) =>
      tx
        .updateTable('console_user')
        .set({ role: 'viewer' })
        .where('user_id', 'in', (eb) =>
          eb.selectFrom('user_session').select('user_id').where('token_hash', '=', hashOfUserToken(token)),
        )
        .execute(),
  ],
  [
    'the agent is revoked',
    'agent',
    (tx, agentId) => tx.updateTable('agent').set({ revoked_ms: 1 }).where('agent_id', '=', agentId).execute(),
  ],
]

/** Statements that may read or sort whole tables, each with the reason. */
const MAY_READ_ALL: readonly (readonly [RegExp, string])[] = [
  [/^SCAN (migration|position_offset): /, 'has few rows'],
  [/^SCAN store: select max\(position\)/, 'once when a process starts: one look into an index for each store'],
  [/^SCAN store_product: insert into "product_count"/, 'once after a release that counts products in another way'],
  [
    /^(SCAN|SEARCH) (listing_refresh|item_refresh|token_revocation|agent): .* limit 10000?$/,
    'a job reads the start of its queue',
  ],
  [/^SEARCH (push_delivery|product_recall): /, 'a job finds the first row of each account by its index'],
  [/^SEARCH store: select distinct "tenant" .* from "home_move"/, 'a job reads its queue'],
  [/^SCAN loyalty_program: select distinct "p"."tenant" .* exists /, 'a job of each minute: one look for each program'],
  [/^SCAN (registration|account): .* order by "\w+"( asc)? limit \d+$/, 'a page for the operator of the platform'],
  [/^SEARCH (store|device): select "store"."tenant", count\(/, 'a page for the operator of the platform'],
  [/^SEARCH (operator|store_key|device): .*"store_id" = \?/, 'a store has a limit of them'],
  [/^SEARCH (agent|store): .*"agent"/, 'an account has a limit of agents and stores'],
  [/^SEARCH webhook: /, 'an account has a limit of webhooks'],
  [
    /^SCAN (signing_key|agent_session|agent_challenge|user_session): /,
    'the jobs of each minute; a slow test meets them',
  ],
]

onEveryDatabase('every operation', (kind) => {
  let shop: Shop
  let stranger: Shop
  let strangerKey: string
  let adminKey: string
  // If an operation has no row, only one test must fail.
  const operations = [...OPERATION_TABLE.values()].filter(({ name }) => name in REQUESTS)
  const posts = operations.filter((o) => !o.getOnly)
  const withKey = posts.filter((o) => !o.callers.includes('anyone') && o.callers.includes('secret'))

  let plans: PlanGuard

  beforeAll(async () => {
    plans = guardPlans()
    shop = await openShop(kind)
    adminKey = await shop.cloud.key('admin', 'live', { account: 'Operator' })
    strangerKey = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    const { stores } = await shop.cloud.ok(strangerKey, 'fetchStores')
    const storeId = stores.find((s: Json) => s.securityTagMode === 'rfid').storeId
    const { devices } = await shop.cloud.ok(strangerKey, 'fetchDevices', { storeId })
    const { products } = await shop.cloud.ok(strangerKey, 'fetchProducts', { storeId })
    const { programs } = await shop.cloud.ok(strangerKey, 'getStoreLoyaltyPrograms', { storeId })
    stranger = {
      ...shop,
      storeId,
      devices: Object.fromEntries(devices.map((d: Json) => [d.deviceType, d.deviceId])) as Shop['devices'],
      products,
      programId: programs[0].programId,
    }
  })
  afterAll(() => shop.stop())

  const requestOf = (name: string, of: Shop = shop): Json => {
    const make = REQUESTS[name]
    if (!make) throw new Error(`${name} has no row in this test`)
    return make(of)
  }
  const withoutIds = ({ status, body }: Answer) => ({
    status,
    error: body.error,
    code: body.code,
    reason: body.reason,
    details: body.details,
  })

  it('has a row in REQUESTS', () => {
    expect(
      Object.keys(REQUESTS).sort(),
      'REQUESTS in test/cloud/platform/operations/every-operation.test.ts needs a request of each operation',
    ).toEqual([...OPERATION_TABLE.keys()].sort())
  })

  describe.each(posts.map((o) => [o.name, o] as const))('%s', (name, operation) => {
    const isForAdmins = operation.callers.includes('admin') && !operation.callers.includes('secret')
    /** True for operations that accept only a form. In a form all fields except the file are text. */
    const isForm = operation.multipart?.alsoJson === false
    const isForUsers = operation.callers.length === 0
    const isCallable =
      isForAdmins || isForUsers || operation.callers.includes('secret') || operation.callers.includes('anyone')
    let owner: string | undefined
    /** Session of an owner. Some operations end it. */
    const session = async () => {
      const { reads } = shop.cloud.db.database
      const hash = hashOfUserToken(owner ?? '')
      const row = reads.selectFrom('user_session').select('user_id').where('token_hash', '=', hash)
      if (!(await row.executeTakeFirst())) owner = await shop.cloud.user('owner')
      return owner ?? ''
    }
    /** Calls the operation with a key that may call it. */
    const ask = async (body: unknown, headers?: Record<string, string>) => {
      const key = isForUsers ? await session() : isForAdmins ? adminKey : shop.key
      return isForm && typeof body === 'object'
        ? shop.cloud.sendForm(key, name, body as Json)
        : shop.cloud.call(key, name, body, headers)
    }

    if (!operation.callers.includes('anyone')) {
      it('returns 401 without a key, with an invalid key and with an unknown key', async () => {
        const unknown = await shop.cloud.key('secret')
        const tampered = unknown.slice(0, -8) + (unknown.endsWith('aaaaaaaa') ? 'bbbbbbbb' : 'aaaaaaaa')
        for (const key of [null, 'x', tampered]) {
          const answer = await shop.cloud.call(key, name, requestOf(name))
          expect(answer).toMatchObject({
            status: 401,
            body: { code: 'unauthenticated', requestId: expect.any(String) },
          })
        }
      })
    }

    if (!operation.callers.includes('anyone')) {
      it.each(ENDS)('returns 401 if %s while the body is on its way', async (_, who, end) => {
        const { db } = shop.cloud
        if (who === 'agent') {
          if (!operation.callers.includes('agent')) return
          const agent = await enrolTestAgent(shop)
          const meanwhile = () => db.database.write((tx) => end(tx, agent.agentId))
          expect((await shop.cloud.callLate(agent.token, name, requestOf(name), meanwhile)).status).toBe(401)
          return
        }
        if (who === 'user' ? operation.roles.length === 0 : !isCallable || isForUsers) return
        const key =
          who === 'user'
            ? await shop.cloud.user(operation.roles.includes('owner') ? 'owner' : PLATFORM_ROLE, PRIME)
            : await shop.cloud.key(isForAdmins ? 'admin' : 'secret', isForAdmins ? 'live' : 'test', PRIME)
        const meanwhile = () => db.database.write((tx) => end(tx, key))
        const answer = await shop.cloud.callLate(key, name, requestOf(name), meanwhile)
        expect(answer).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
      })
    }

    it('returns 400 that names an unknown field', async () => {
      if (!isCallable) return
      const answer = await ask({ ...requestOf(name), nonsense: 1 })
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid-argument' } })
      expect(answer.body.error).toContain('unknown field "nonsense"')
    })

    it('returns 400 that names the field of a wrong type', async () => {
      if (!isCallable || isForm) return
      const good = requestOf(name)
      for (const field of Object.keys(good)) {
        const answer = await ask({ ...good, [field]: { wrong: true } })
        expect([field, answer.status]).toEqual([field, 400])
        expect(answer.body.details[0].path).toContain(field)
      }
    })

    it('returns 400 for missing fields and beyond each limit, not at the limit', async () => {
      if (!isCallable) return
      const good = requestOf(name)
      const { required, probes } = limitsOf(operation)
      for (const field of required) {
        const { [field]: _left, ...rest } = good
        const answer = await ask(rest)
        expect([field, answer.status, JSON.stringify(answer.body.details)]).toEqual([
          field,
          400,
          expect.stringContaining(field),
        ])
      }
      for (const { field, what, value, isAllowed } of probes) {
        const answer = await ask({ ...good, [field]: value })
        const isRefused =
          answer.status === 400 &&
          (answer.body.details ?? []).some((d: Json) => d.path.startsWith(field) && d.code.startsWith('too_'))
        if (isAllowed) expect([field, what, isRefused]).toEqual([field, what, false])
        else
          expect([field, what, answer.status, JSON.stringify(answer.body.details)]).toEqual([
            field,
            what,
            400,
            expect.stringContaining(field),
          ])
        expect(answer.status).toBeLessThan(500)
      }
    })

    it('returns no 5xx for an invalid body', async () => {
      if (!isCallable) return
      for (const body of name === 'fetchStores' ? [...BAD_BODIES, DEEP_BODY] : BAD_BODIES) {
        const answer = await ask(body)
        expect([body.slice(0, 20), answer.status < 500]).toEqual([body.slice(0, 20), true])
      }
      expect((await ask('{}', { 'content-type': 'text/plain' })).status).toBe(415)
    })

    it('returns 413 for a body that is too large', async () => {
      if (!isCallable) return
      const answer = await ask(
        isForm
          ? { ...requestOf(name), file: 'x'.repeat(operation.multipart?.limit ?? 0) }
          : `{"a":"${'x'.repeat(operation.bodyLimit)}"}`,
      )
      expect(answer).toMatchObject({ status: 413, body: { code: 'payload-too-large' } })
    })

    it('returns 403 for a publishable key exactly if the operation does not allow it', async () => {
      if (operation.callers.includes('anyone')) return
      const key = await shop.cloud.key('publishable')
      const answer = await shop.cloud.call(key, name, requestOf(name))
      if (operation.callers.includes('publishable')) expect(answer.status).not.toBe(403)
      else expect(answer).toMatchObject({ status: 403, body: { code: 'permission-denied' } })
    })

    it('returns 403 for a secret key where an admin key is required, and the reverse', async () => {
      if (operation.callers.includes('anyone')) return
      const wrong = isForAdmins ? shop.key : adminKey
      const answer = await shop.cloud.call(wrong, name, requestOf(name))
      if (isForAdmins || isForUsers || !operation.callers.includes('admin'))
        expect(answer).toMatchObject({ status: 403, body: { code: 'permission-denied' } })
      else expect(answer.status).not.toBe(403)
    })
  })

  it.each(withKey.map((o) => o.name))(
    '%s treats data of another account like data that does not exist',
    async (name) => {
      const theirs = requestOf(name, stranger)
      for (const field of ID_FIELDS.filter((f) => f in theirs)) {
        const foreign = await shop.call(name, { ...requestOf(name), [field]: theirs[field] })
        const unknown = await shop.call(name, {
          ...requestOf(name),
          [field]: `${String(theirs[field]).slice(0, 4)}ZZZZZZZZZZZZZZZZZZZZZZZZZZ`,
        })
        expect([field, withoutIds(foreign)]).toEqual([field, withoutIds(unknown)])
      }
    },
  )

  it.each(withKey.map((o) => o.name))('%s treats data of another store like data that does not exist', async (name) => {
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    const request = requestOf(name)
    // A product may belong to both stores; bound-keys.test.ts tests the other ids.
    for (const field of ID_FIELDS.filter((f) => f in request && f !== 'productId')) {
      const rest = { ...request, ...('storeId' in request && { storeId: shop.otherStoreId }) }
      const foreign = await shop.cloud.call(bound, name, { ...rest, [field]: request[field] })
      const unknown = await shop.cloud.call(bound, name, {
        ...rest,
        [field]: `${String(request[field]).slice(0, 4)}ZZZZZZZZZZZZZZZZZZZZZZZZZZ`,
      })
      expect([field, withoutIds(foreign)]).toEqual([field, withoutIds(unknown)])
    }
  })

  const listings = withKey.flatMap((o) => [
    ...('cursor' in shapeOf(o.request) ? [[o.name, 'POST'] as const] : []),
    ...(o.get && 'cursor' in shapeOf(o.get.request) ? [[o.name, 'GET'] as const] : []),
  ])
  describe.each(listings)('%s by %s accepts only its own cursors', (name, form) => {
    const ask = (cursor: string): Promise<Answer> => {
      if (form === 'POST') return shop.call(name, { ...requestOf(name), cursor })
      const query = new URLSearchParams({ ...(name !== 'fetchStores' && { storeId: shop.storeId }), cursor })
      return shop.cloud.get(`/api/v1/${name}?${query}`, { authorization: `Bearer ${shop.key}` })
    }
    const ours = CURSORS[name]

    it('returns 400 that names an invalid cursor and the fix', async () => {
      expect(
        ours,
        'CURSORS in test/cloud/platform/operations/every-operation.test.ts needs a cursor of this listing',
      ).toBeDefined()
      const others = Object.values(CURSORS).filter((other) => other !== ours && other !== EPCIS)
      for (const cursor of [
        'zzz',
        '',
        'x'.repeat(1_000),
        ...(form === 'POST' && name === 'fetchERPRecords' ? [base64url('suppliers/S\0')] : []),
        ...(name === 'exportEpcisEvents' ? [base64url('1/item/abc.zz')] : []),
        `st_${GONE.toLowerCase()}`,
        `x${ours}`,
        ...others,
      ]) {
        const { status, body } = await ask(cursor)
        expect([cursor, status, body.details]).toEqual([
          cursor,
          400,
          [
            {
              path: 'cursor',
              code: expect.any(String),
              message: expect.stringMatching(/^(cursor: )?must be a nextCursor .* leave it out/),
            },
          ],
        ])
      }
    })

    it('continues behind a row that was deleted', async () => {
      expect(await ask(ours ?? '')).toMatchObject({ status: 200 })
    })
  })

  it('returns the same over a real socket as without one', async () => {
    const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    server.serve(shop.cloud.cloud.app)
    const over = async (name: string, body: Json) => {
      const headers = { authorization: `Bearer ${shop.key}`, 'content-type': 'application/json' }
      const answer = await fetch(`http://127.0.0.1:${server.port}/api/v1/${name}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      const { requestId: _id, creationDate: _now, ...rest } = (await answer.json()) as Json
      return { status: answer.status, ...rest }
    }
    const within = async (name: string, body: Json) => {
      const answer = await shop.call(name, body)
      const { requestId: _id, creationDate: _now, ...rest } = answer.body
      return { status: answer.status, ...rest }
    }
    for (const { name, changes } of posts) {
      const bodies = [{ ...requestOf(name), nonsense: 1 }, ...(changes ? [] : [requestOf(name)])]
      for (const body of bodies) expect(await over(name, body), name).toEqual(await within(name, body))
    }
    await server.close()
  })

  if (kind === 'sqlite')
    it('reads no table as a whole, and sorts no rows of a whole account or store', () => {
      expect(plans.slowStatements(MAY_READ_ALL)).toEqual([])
    })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})

describe('a validation error', () => {
  // These operations take malformed rows and list their faults.
  const ofRows: Readonly<Record<string, z.ZodType>> = {
    recordSales: z.strictObject({ sales: z.array(SaleOfCloud) }),
    recordReturns: z.strictObject({ returns: z.array(TillReturn) }),
  }
  const schemas = [...OPERATION_TABLE.values()].flatMap((o) => [
    [o.name, ofRows[o.name] ?? o.request] as const,
    ...(o.get ? [[`${o.name} by GET`, o.get.request] as const] : []),
  ])
  const connectors: [string, z.ZodType | undefined][] = [
    ...POS_SYSTEMS.map((name): [string, z.ZodType | undefined] => [
      `syncPOS ${name}`,
      findConnector(name, 'pos')?.credentials,
    ]),
    ...ERP_SYSTEMS.map((name): [string, z.ZodType | undefined] => [
      `syncERP ${name}`,
      findConnector(name, 'erp')?.credentials,
    ]),
  ]
  const settings = [
    ...Object.values(PROVIDERS).map(({ name, config }): [string, z.ZodType] => [`configurePSP ${name}`, config]),
    ...connectors.flatMap(([name, schema]): [string, z.ZodType][] => (schema ? [[name, schema]] : [])),
  ]

  it.each([...schemas, ...settings])('of %s describes the valid value of each field', (_, schema) => {
    for (const { path, wrap, isChoice } of positionsOf(schema)) {
      const findings = WRONG.flatMap((wrong) => {
        const read = schema.safeParse(wrap(wrong))
        return read.success
          ? []
          : validationFindings(read.error.issues, wrap(wrong)).map((finding) => ({
              at: pathText(finding.path),
              text: findingMessage(finding),
            }))
      })
      expect([
        path,
        findings.filter(({ text }) => /invalid input|invalid value$|: *$|undefined|something else/i.test(text)),
      ]).toEqual([path, []])
      if (isChoice) expect([path, findings.some(({ at }) => at === path)]).toEqual([path, true])
    }
  })
})

/** Values that no choice accepts; `undefined` leaves the field out. */
const WRONG = [{ zzz: 1 }, [], 'no such word', -20.5, null, undefined]

interface Position {
  path: string
  /** Returns a whole input with this value at the position. */
  wrap: (value: unknown) => Json
  isChoice: boolean
}

/** Every position of a schema that can contain a value. */
function positionsOf(schema: unknown, path = '', wrap: Position['wrap'] = (value) => value): Position[] {
  const def = (schema as Json)._zod.def
  const below = (inner: unknown, step: string, put: (value: unknown) => Json) =>
    positionsOf(inner, path + (step.startsWith('[') || path === '' ? step : `.${step}`), (value) => wrap(put(value)))
  if (def.innerType) return positionsOf(def.innerType, path, wrap)
  if (def.in) return positionsOf(def.in, path, wrap)
  const here = { path, wrap, isChoice: ['union', 'enum', 'literal'].includes(def.type) }
  if (def.type === 'object') {
    // Sends the discriminator of a choice, so that the schema checks the other fields.
    const discriminators = Object.fromEntries(
      Object.entries<Json>(def.shape).flatMap(([name, field]) =>
        field._zod.def.type === 'literal' ? [[name, field._zod.def.values[0]]] : [],
      ),
    )
    return [
      here,
      ...Object.entries(def.shape).flatMap(([name, field]) =>
        below(field, name, (value) => ({ ...discriminators, [name]: value })),
      ),
    ]
  }
  if (def.type === 'array') return [here, ...below(def.element, '[0]', (value) => [value])]
  if (def.type === 'record') {
    const key = Object.values<string>(def.keyType._zod.def.entries ?? {})[0] ?? 'x'
    return [here, ...below(def.valueType, key, (value) => ({ [key]: value }))]
  }
  if (def.type === 'union')
    return [here, ...def.options.flatMap((option: unknown) => positionsOf(option, path, wrap).slice(1))]
  return [here]
}
