import { z } from 'zod'
import {
  AUTHORIZATION_STATES,
  DENY_REASONS,
  ITEM_STATUSES,
  PROTECTION_ACTIONS,
  RIGHT_CLASSES,
  SECURITY_TAG_MODES,
  type DenyReason,
  type ScanSource,
  type SecurityTagMode,
} from '../../../policy/vocabulary.ts'
import { Id, Success, scanned, definedFields } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { StoreData } from '../../shop/purchases/schema.ts'
import { traceAndWarnings, NO_AUTHORIZATION, authorize } from './authorize.ts'
import { DeviceMetadata, readRequestContext, type RequestContext, type Metadata } from './request-context.ts'
import {
  readItemRequest,
  purchaseAtRequestTime,
  type AuthorizationRequest,
  type OpenUnit,
  isReceiptOver,
} from './authorization-request.ts'
import { releaseActionOf } from '../../../policy/devices.ts'
import { maySee } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import { groupBy } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { recallsIn } from '../items/recalls.ts'
import { assertResynced } from '../leases/authorizations.ts'
import { storeDataOf } from '../../shop/purchases/present.ts'
import { findPurchase, readLines, readUnits } from '../../shop/purchases/queries.ts'
import { ownStoreOf } from '../../platform/stores/own-store.ts'
import { isPaid, itemsBoundTo } from './item-facts.ts'
import { verifyReceipt } from './presented-token.ts'
import { openUnits } from './purchase-target.ts'

interface PurchaseRequest extends Metadata {
  purchaseId?: string | undefined
  receiptToken?: string | undefined
  scanSource?: ScanSource | undefined
  explain?: boolean | undefined
}

/**
 * Decides whether the tags of a purchase may be removed (specification, purchase-based path). With a device,
 * `deactivationAuthorized` tells whether this device may act now. Without one, it tells whether the purchase is paid
 * and has tags that are neither released yet nor recalled.
 */
async function verifyPurchase(call: Call, input: PurchaseRequest) {
  const context = await readRequestContext(call, input)
  const { purchase: now, expired } = await namedPurchase(call, context, input)
  const purchase = await purchaseAtRequestTime(call, context, now)
  const store = await ownStoreOf(call, purchase.store_id, 'purchase')
  const lines = await readLines(call.db, purchase.purchase_id)
  const units = groupBy(await readUnits(call.db, purchase.purchase_id), (unit) => unit.line_id)
  const openNow = await openUnits(
    { db: call.db, nowMs: call.nowMs, pastMs: context.pastMs, agentId: context.device?.row.agent_id ?? null },
    purchase,
    'release',
  )
  const open = groupBy(openNow, ({ key }) => key.lineId)
  const isOpen = isPaid(purchase) && purchase.security_tag_mode !== 'none' && openNow.length > 0
  const areRecalled = isOpen && (await areAllRecalled(call, purchase, lines, openNow, context.pastMs))
  const mayDeactivate = isOpen && !areRecalled
  if (mayDeactivate && !expired) await assertResynced(call, purchase.store_id)
  const common = {
    status: statusOf(purchase),
    items: lines.map((line) => ({
      itemLineId: line.line_id,
      ...definedFields({ productId: line.product_id }),
      name: line.name,
      quantity: line.quantity,
      taggedUnits: units.get(line.line_id)?.length ?? 0,
      openUnits: open.get(line.line_id)?.length ?? 0,
    })),
    securityTagMode: purchase.security_tag_mode as SecurityTagMode,
    ...(purchase.security_tag_status !== null && {
      securityTagStatus: purchase.security_tag_status as 'pending' | 'deactivated',
    }),
    storeData: storeDataOf(store),
  }
  if (input.deviceId === undefined) {
    const reason: DenyReason | undefined = expired ? 'token_expired' : areRecalled ? 'recalled' : undefined
    return {
      ...common,
      deactivationAuthorized: mayDeactivate && !expired,
      ...NO_AUTHORIZATION,
      ...(reason && { reason }),
      ...traceAndWarnings(context, undefined, false),
    }
  }
  return { ...common, ...(await answerDevice(call, context, input, purchase, openNow, expired)) }
}

/** True if a recall stops every unit that is still to be released. */
async function areAllRecalled(
  { db }: Call,
  purchase: Row<'purchase'>,
  lines: readonly Row<'purchase_line'>[],
  open: readonly OpenUnit[],
  pastMs: number | undefined,
): Promise<boolean> {
  const recalls = await recallsIn(db, purchase, pastMs)
  const lineOf = new Map(lines.map((line) => [line.line_id, line]))
  const items = await itemsBoundTo(
    db,
    open.map(({ unit }) => unit),
    pastMs,
  )
  return open.every(({ unit }, n) => recalls.stop({ item: items[n], line: lineOf.get(unit.line_id) }))
}

async function answerDevice(
  call: Call,
  context: RequestContext,
  input: PurchaseRequest,
  purchase: Row<'purchase'>,
  open: readonly OpenUnit[],
  isExpired: boolean,
) {
  const request: AuthorizationRequest = {
    context,
    action: (context.device && releaseActionOf(context.device.facts)) ?? 'deactivate_label',
    identifiers: {},
    item: undefined,
    purchase,
    open,
    token: isExpired ? 'token_expired' : isReceiptOver(purchase, input) ? 'token_revoked' : undefined,
    scanSource: input.scanSource,
    metadata: input,
  }
  const { answer, decision } = await authorize(call, request)
  const { authorized, ...rest } = answer
  return {
    deactivationAuthorized: authorized,
    protectionAction: request.action,
    ...rest,
    ...traceAndWarnings(context, decision, input.explain),
  }
}

/** Finds the purchase by id or receipt. Throws 404 if the purchase is unknown or the receipt invalid. */
async function namedPurchase(
  call: Call,
  { caller, pastMs }: RequestContext,
  { purchaseId, receiptToken }: PurchaseRequest,
): Promise<{ purchase: Row<'purchase'>; expired: boolean }> {
  if (purchaseId === undefined && receiptToken === undefined)
    throw invalid('purchaseId', 'is missing: name the purchase by purchaseId or receiptToken', 'missing')
  const byId = purchaseId === undefined ? undefined : await findPurchase(call.db, caller.tenant, purchaseId)
  if (purchaseId !== undefined && !(byId && maySee(caller, byId))) throw notFound('purchase')
  if (receiptToken === undefined) {
    if (!byId) throw notFound('purchase')
    return { purchase: byId, expired: false }
  }
  const receipt = await verifyReceipt(call, caller.tenant, receiptToken, pastMs)
  if (!receipt.purchase) throw notFound('purchase')
  if (byId && byId.purchase_id !== receipt.purchase.purchase_id)
    throw invalid('receiptToken', 'belongs to another purchase than purchaseId')
  return { purchase: receipt.purchase, expired: !receipt.ok }
}

function statusOf({ status }: Row<'purchase'>): 'paid' | 'CREATED' | 'PENDING_PAYMENT' | 'CANCELLED' {
  if (status === 'SUCCESS' || status === 'UNLOADED') return 'paid'
  return status as 'CREATED' | 'PENDING_PAYMENT' | 'CANCELLED'
}

const AuthorizationFields = {
  authorizationState: z.enum(AUTHORIZATION_STATES).nullable(),
  authorizationToken: z
    .string()
    .nullable()
    .describe('Signed token that the device can verify offline (docs/reference/tokens.md).'),
  expiresAt: z.string().nullable(),
  redeemedAt: z.string().nullable(),
  replayProtectedNonce: z.string().nullable(),
  itemCount: z.int().describe('Units that the authorization still covers.'),
  reason: z.enum(DENY_REASONS).optional(),
  retryAfter: z.int().optional().describe('Seconds until the outstanding authorization ends.'),
  warnings: z.array(z.string()).optional(),
  trace: z.array(z.strictObject({ check: z.enum(DENY_REASONS), passed: z.boolean(), detail: z.string() })).optional(),
  receiptRights: z
    .strictObject({ cti: z.string(), rightClass: z.enum(RIGHT_CLASSES), ordinals: z.array(z.int()) })
    .optional()
    .describe('For agents only. Receipt rights that the authorization covers.'),
}

export const verifyProtectedItem = operation({
  name: 'verifyProtectedItem',
  together: 'sales',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Decides whether a device may act on one item, and issues a single-use token if so.',
  description:
    'A denial is 200 with `authorized: false` and a `reason`. Until an authorization expires, the same device gets it again. ' +
    'If `occurredAt` is over five minutes ago, the cloud records a past action. It decides by the state at that time and issues no token.',
  callers: ['secret', 'agent'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    deviceId: Id,
    protectionAction: z.enum(PROTECTION_ACTIONS),
    tagId: scanned(128).optional(),
    epc: scanned(200).optional(),
    tagUid: scanned(40).optional(),
    itemLineId: Id.optional(),
    purchaseId: Id.optional(),
    receiptToken: scanned(4_096).optional(),
    pickupCode: scanned(40)
      .optional()
      .describe('With `unlock_fixture`: opens the locker of the order that has this code, and no other cabinet.'),
    authorizationToken: scanned(4_096)
      .optional()
      .describe(
        'For agents only. A token with `led: cloud` that someone presented at the device. The agent gets a token for its own ledger in exchange.',
      ),
    ...DeviceMetadata,
  }),
  response: z.strictObject({
    ...Success,
    authorized: z.boolean(),
    protectionAction: z.enum(PROTECTION_ACTIONS),
    itemStatus: z.enum(ITEM_STATUSES).nullable(),
    eventId: z.string(),
    ...AuthorizationFields,
  }),
  example: {
    deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    protectionAction: 'detach_hard_tag',
    epc: '3034F4E4E4424C800000000B',
  },
  emits: ['protection.authorization.requested', 'protection.authorization.granted', 'protection.authorization.denied'],
  async run(call, input) {
    const request = await readItemRequest(call, input)
    const { answer, decision, target } = await authorize(call, request)
    return {
      success: true as const,
      protectionAction: request.action,
      itemStatus: target.itemStatus,
      ...traceAndWarnings(request.context, decision, input.explain),
      ...answer,
    }
  },
})

export const verifySecurityTagDeactivation = operation({
  name: 'verifySecurityTagDeactivation',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: [],
  summary:
    'Decides whether the tags of a purchase may be removed, and issues one token for all of them to a device if so.',
  description: 'Name the purchase by `purchaseId` or `receiptToken`. Without a `deviceId` the cloud issues no token.',
  callers: ['secret', 'agent'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    purchaseId: Id.optional(),
    receiptToken: scanned(4_096).optional(),
    deviceId: Id.optional(),
    ...DeviceMetadata,
  }),
  response: z.strictObject({
    ...Success,
    status: z.enum(['paid', 'CREATED', 'PENDING_PAYMENT', 'CANCELLED']),
    items: z.array(
      z.strictObject({
        itemLineId: z.string(),
        productId: z.string().optional(),
        name: z.string(),
        quantity: z.int(),
        taggedUnits: z.int(),
        openUnits: z.int().describe('Tagged units that are not released yet.'),
      }),
    ),
    securityTagMode: z.enum(SECURITY_TAG_MODES),
    securityTagStatus: z.enum(['pending', 'deactivated']).optional(),
    deactivationAuthorized: z.boolean(),
    storeData: StoreData,
    protectionAction: z.enum(PROTECTION_ACTIONS).optional(),
    eventId: z.string().optional(),
    ...AuthorizationFields,
  }),
  example: { purchaseId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', deviceId: 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  emits: ['protection.authorization.requested', 'protection.authorization.granted', 'protection.authorization.denied'],
  async run(call, input) {
    return { success: true as const, ...(await verifyPurchase(call, input)) }
  },
})
