import { OPERATION_TABLE } from '../../cloud/service/operation-table.ts'
import { DRIVER_NAMES } from '../../device-drivers/registry.ts'
import { GatePolicy } from '../../policy/store-policy.ts'
import { DENY_REASONS, GATE_ALARMS } from '../../policy/vocabulary.ts'
import { EVENT_TYPES, TEST_EVENT } from '../../cloud/platform/webhooks/event-types.ts'
import { isFirstTier, readSources, type Source } from '../house/sources.ts'

/** Operations of the specification. */
export const SPECIFIED_OPERATIONS: readonly string[] = `
  fetchStores fetchStore submitStoreRegistration insertStore approveStoreRegistration submitStoreRegistrationRequest
  insertProduct fetchProducts fetchProduct registerProductToStore uploadImageToProduct bulkImportProducts
  createOffer updateOffer deleteOffer getManagerOffers cloneOffer submitClickCollectOrder updateClickCollectStatus
  checkIn startCheckout fetchPurchase fetchPurchaseHistory markPurchaseCancelled generateCodes generateReceiptQR generateReceiptWithQR getReceiptFromToken
  verifySecurityTagDeactivation verifyProtectedItem
  createLoyaltyProgram updateLoyaltyProgram getLoyaltyProgram getStoreLoyaltyPrograms getLoyaltyPrograms getLoyaltyAnalytics getLoyaltyWebhookEvents addLoyaltyPoints redeemLoyaltyPoints
  syncPOS syncERP configurePSP pushToPOS pushToERP processPayment refundPayment exportSalesData`
  .trim()
  .split(/\s+/)

/** Events of the specification. */
export const SPECIFIED_EVENTS: readonly string[] = `
  checkout.completed offer.published clickcollect.order clickcollect.picked_up clickcollect.status_changed
  loyalty.points_earned loyalty.points_redeemed loyalty.enrollment loyalty.reward_unlocked loyalty.tier_changed loyalty.qr_earned loyalty.checkin_earned
  securityTag.deactivated product.created product.bulk_imported
  integration.pos.synced integration.pos.pushed integration.erp.synced integration.erp.pushed integration.psp.configured payment.created payment.refunded
  protection.authorization.requested protection.authorization.granted protection.authorization.denied protection.action.completed protection.action.failed
  protection.device.offline protection.exception.raised`
  .trim()
  .split(/\s+/)

/** Events about connected systems. The tests of the connectors send them, not the test of all events. */
export const CONNECTOR_EVENTS: ReadonlySet<string> = new Set([
  'integration.pos.synced',
  'integration.pos.pushed',
  'integration.erp.synced',
  'integration.erp.pushed',
])

/** Tests that check all operations or events in the same way. They do not count as tests of a single one. */
const GENERAL_TESTS = new Set(
  [
    'every-operation',
    'bound-keys',
    'test-and-live',
    'openapi',
    'api-documents',
    'docs-page',
    'coverage',
    'emitted-events',
  ].map((name) => `${name}.test.ts`),
)

/** Operations that no test calls by their name, apart from the tests of all operations. */
export function untestedOperations(): string[] {
  const tests = ownTests()
  return [...OPERATION_TABLE.keys()].filter((name) => !isIn(tests, new RegExp(`['"\`/]${name}['"\`]|\\.${name}\\(`)))
}

/** Events of connected systems that no test names. */
export function untestedConnectorEvents(): string[] {
  const tests = ownTests()
  return [...CONNECTOR_EVENTS].filter((name) => !isIn(tests, new RegExp(`['"\`]${name}['"\`]`)))
}

/** Declared events that no code sends. `sendTestWebhook` sends the test event itself. */
export function unsentEvents(): string[] {
  const senders = readSources(['cloud', 'edge-agent'])
    .filter(isSender)
    .map((source) => ({ ...source, text: withoutDeclaredEvents(source.text) }))
  return [...EVENT_TYPES.keys()].filter((name) => name !== TEST_EVENT && !isIn(senders, new RegExp(`'${name}'`)))
}

/** Denial reasons and gate alarms, gate rules and drivers without a test. */
export function untestedRules(): string[] {
  const tests = firstTier()
  const under = (folder: string) => tests.filter(({ path }) => path.startsWith(folder))
  return [
    ...[...DENY_REASONS, ...GATE_ALARMS].filter((name) => !isIn(tests, new RegExp(`'${name}'`))),
    ...Object.keys(GatePolicy.shape).filter(
      (name) => !isIn(under('test/edge-agent/lanes/'), new RegExp(`\\b${name}\\b`)),
    ),
    ...DRIVER_NAMES.filter((name) => !isIn(under('test/device-drivers/'), new RegExp(`describeDriver\\('${name}'`))),
  ]
}

/** `npm test` runs the first tier only, so that each rule needs a test in it. */
const firstTier = (): Source[] => readSources(['test']).filter(isFirstTier)

function ownTests(): Source[] {
  return firstTier().filter(({ path }) => !GENERAL_TESTS.has(path.split('/').at(-1) ?? ''))
}

function isIn(sources: readonly Source[], pattern: RegExp): boolean {
  return sources.some(({ text }) => pattern.test(text))
}

/** True for files that send events. Files that only declare, describe or list events are excluded. */
function isSender({ path }: Source): boolean {
  return (
    !/^cloud\/(?:webhooks\/[a-z-]*events?(?:-types?)?\.ts|description\/|epcis\/|[a-z-]+\/events\.ts$)/.test(path) ||
    path === 'cloud/protection/records/record-event.ts'
  )
}

/** Removes the lists in which operations declare their events. */
function withoutDeclaredEvents(text: string): string {
  return text.replaceAll(/\b(?:emits|events): (?:\[[^\]]*\]|.*)|\b[A-Z]+_EVENTS = \[[^\]]*\]/g, '')
}
