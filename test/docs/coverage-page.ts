import { OPERATION_TABLE } from '../../cloud/operation-table.ts'
import { EVENT_TYPES, TEST_EVENT } from '../../cloud/webhooks/event-types.ts'
import { readSources, type Source } from '../house/sources.ts'

/*
 * Generates test/coverage.md from the code. The page lists the operations and events of the specification and of untag,
 * with their source files and tests. This file contains only the required names. A required name without source file is
 * listed as open.
 */
const SPECIFIED = `
  fetchStores fetchStore submitStoreRegistration insertStore approveStoreRegistration submitStoreRegistrationRequest
  insertProduct fetchProducts fetchProduct registerProductToStore uploadImageToProduct bulkImportProducts
  createOffer updateOffer deleteOffer getManagerOffers cloneOffer submitClickCollectOrder updateClickCollectStatus
  checkIn startCheckout fetchPurchase fetchPurchaseHistory markPurchaseCancelled generateCodes generateReceiptQR generateReceiptWithQR getReceiptFromToken
  verifySecurityTagDeactivation verifyProtectedItem
  createLoyaltyProgram updateLoyaltyProgram getLoyaltyProgram getStoreLoyaltyPrograms getLoyaltyPrograms getLoyaltyAnalytics getLoyaltyWebhookEvents addLoyaltyPoints redeemLoyaltyPoints
  syncPOS syncERP configurePSP pushToPOS pushToERP processPayment refundPayment exportSalesData`

const DECIDED = `
  createApiKey rollApiKey revokeApiKey fetchApiKeys fetchAuditLog claimRegistration setStorePackage rotateSigningKey
  updateStore updateProduct removeProductFromStore setStock registerPushSubscription removePushSubscription searchProducts importProducts completeTestCheckout approveCheckout
  registerDevice updateDevice decommissionDevice fetchDevices reportDeviceHeartbeat
  createSetupCode registerDeviceWithCode createEnrolmentCode enrolEdgeAgent agentLogin fetchSignedDocuments rotateAgentKey fetchAgents revokeAgent resolveAgentFork
  fetchProtectionPolicy updateProtectionPolicy simulateProtectionPolicy moveReceiptHome registerProtectedItems fetchProtectedItem updateItemStatus
  redeemProtectionAuthorization revokeProtectionAuthorization resolveRedemption reportProtectionEvents fetchProtectionEvents exportEpcisEvents
  fetchExceptions acknowledgeException disposeAlarm
  registerWebhook updateWebhook deleteWebhook fetchWebhooks rollWebhookSecret fetchWebhookDeliveries redeliverWebhook sendTestWebhook
  loyaltyCheckIn issueLoyaltyCard recordEngagement createZone fetchZones requestAssistance fetchAssistanceRequests answerAssistanceRequest callHelpToAlarm
  exportCustomerData eraseCustomerData fetchAnalytics`

const EVENTS = `
  checkout.completed offer.published clickcollect.order clickcollect.picked_up clickcollect.status_changed
  loyalty.points_earned loyalty.points_redeemed loyalty.enrollment loyalty.reward_unlocked loyalty.tier_changed loyalty.qr_earned loyalty.checkin_earned
  securityTag.deactivated product.created product.bulk_imported
  integration.pos.synced integration.pos.pushed integration.erp.synced integration.erp.pushed integration.psp.configured payment.created payment.refunded
  protection.authorization.requested protection.authorization.granted protection.authorization.denied protection.action.completed protection.action.failed
  protection.device.offline protection.exception.raised`

/** Events about connected systems. The tests of the connectors send them, not the test of all events. */
export const CONNECTOR_EVENTS: ReadonlySet<string> = new Set([
  'integration.pos.synced',
  'integration.pos.pushed',
  'integration.erp.synced',
  'integration.erp.pushed',
])

/** Test that causes all other events and checks what a receiver gets. */
const ALL_EVENTS = 'test/cloud/operations/emitted-events.test.ts'

/** Tests that check all operations or events in the same way. They are not listed as tests of a single one. */
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
/** Maximum number of named tests per operation. */
const SHOWN = 3

const words = (text: string) => text.trim().split(/\s+/)

/** An operation or event with its source files and tests. */
export interface Covered {
  name: string
  minimumPackage: string | undefined
  /** Source files; empty if it is open. */
  sources: string[]
  /** Test files that contain its name, the file with the most occurrences first. */
  tests: string[]
}

export interface Coverage {
  specified: Covered[]
  decided: Covered[]
  own: Covered[]
  events: Covered[]
}

/** Collects all operations and events with their sources and tests. */
export function coverage(): Coverage {
  const sources = readSources(['cloud', 'edge-agent'])
  const tests = readSources(['test']).filter(
    ({ path }) => path.endsWith('.test.ts') && !GENERAL_TESTS.has(path.split('/').at(-1) ?? ''),
  )
  const senders = sources.filter(isSender).map((source) => ({ ...source, text: withoutDeclaredEvents(source.text) }))
  const operation = (name: string): Covered => ({
    name,
    minimumPackage: OPERATION_TABLE.get(name)?.minimumPackage,
    sources: OPERATION_TABLE.has(name)
      ? filesWith(sources, new RegExp(`(?:^\\s*name: |operationAlias\\()'${name}'`, 'gm'))
      : [],
    tests: filesWith(tests, new RegExp(`['"\`/]${name}['"\`]|\\.${name}\\(`, 'g')),
  })
  const event = (name: string): Covered => ({
    name,
    minimumPackage: EVENT_TYPES.get(name)?.minimumPackage,
    sources: filesWith(senders, new RegExp(`'${name.replaceAll('.', '\\.')}'`, 'g')),
    tests: [
      ...filesWith(tests, new RegExp(`['"\`]${name.replaceAll('.', '\\.')}['"\`]`, 'g')).slice(0, SHOWN - 1),
      ...(CONNECTOR_EVENTS.has(name) ? [] : [ALL_EVENTS]),
    ],
  })
  const asked = new Set([...words(SPECIFIED), ...words(DECIDED)])
  return {
    specified: words(SPECIFIED).map(operation),
    decided: words(DECIDED).map(operation),
    own: [...OPERATION_TABLE.keys()].filter((name) => !asked.has(name)).map(operation),
    events: [...new Set([...words(EVENTS), ...ownEvents()])].map(event),
  }
}

/** Events that the specification does not name; `sendTestWebhook` sends the test event itself. */
function ownEvents(): string[] {
  return [...EVENT_TYPES.keys()].filter((name) => name !== TEST_EVENT && !words(EVENTS).includes(name))
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

function filesWith(sources: readonly Source[], pattern: RegExp): string[] {
  const found = sources
    .map(({ path, text }) => ({ path, count: text.match(pattern)?.length ?? 0 }))
    .filter(({ count }) => count > 0)
  return found.sort((a, b) => b.count - a.count || (a.path < b.path ? -1 : 1)).map(({ path }) => path)
}

/** Formats test/coverage.md. */
export function coveragePage({ specified, decided, own, events }: Coverage): string {
  const open = [...specified, ...decided, ...events].filter(({ sources }) => sources.length === 0)
  return `# Coverage

What the specification asks for and what untag adds, where it is, and what tests it (of many files those ${SHOWN} that name it most; tests of all operations alike, such as \`test/cloud/operations/every-operation.test.ts\`, are left out). Written by \`npx vitest run test/docs/coverage.test.ts -u\`.

${specified.length + decided.length + words(EVENTS).length} operations and events are asked for; ${open.length === 0 ? 'none is open' : `${open.length} are open`}.

## Open

${open.length === 0 ? 'Nothing.' : open.map(({ name }) => `- \`${name}\``).join('\n')}

## Operations of the specification

${table('operation', specified)}

## Operations that untag adds

${table('operation', decided)}

## Operations of our own

${table('operation', own)}

## Events

${table('event', events)}
`
}

function table(what: string, rows: readonly Covered[]): string {
  const lines = rows
    .filter(({ sources }) => sources.length > 0)
    .map(
      ({ name, minimumPackage, sources, tests }) =>
        `| \`${name}\` | ${minimumPackage ?? ''} | ${links(sources.slice(0, SHOWN))} | ${links(tests.slice(0, SHOWN))} |`,
    )
  return [`| ${what} | package | where | tests |`, '|---|---|---|---|', ...lines].join('\n')
}

function links(paths: readonly string[]): string {
  return paths
    .map((path) => `[${path.replace(/^(?:test|cloud)\//, '').replace(/(?:\.test)?\.tsx?$/, '')}](../${path})`)
    .join(', ')
}
