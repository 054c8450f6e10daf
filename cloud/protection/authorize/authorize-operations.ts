import { z } from 'zod'
import {
  AUTHORIZATION_STATES,
  DENY_REASONS,
  ITEM_STATUSES,
  PROTECTION_ACTIONS,
  RIGHT_CLASSES,
  SECURITY_TAG_MODES,
} from '../../../policy/vocabulary.ts'
import { Id, Success, scanned } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { StoreData } from '../../shop/purchases/schema.ts'
import { traceAndWarnings } from './authorization-answer.ts'
import { DeviceMetadata } from './request-context.ts'
import { authorize } from './authorize.ts'
import { readItemRequest } from './authorization-request.ts'
import { verifyPurchase } from './verify-purchase.ts'

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
