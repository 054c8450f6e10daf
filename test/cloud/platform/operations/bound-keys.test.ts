import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEan, newEpc, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

/** Ids of the data of a store. */
type Names = Record<
  | 'storeId'
  | 'productId'
  | 'ean'
  | 'deviceId'
  | 'gateId'
  | 'operatorId'
  | 'agentId'
  | 'sessionId'
  | 'purchaseId'
  | 'boundId'
  | 'lineId'
  | 'boundLineId'
  | 'receipt'
  | 'refundId'
  | 'nonce'
  | 'redemptionId'
  | 'epc'
  | 'tagUid'
  | 'tagId'
  | 'eventId'
  | 'exceptionId'
  | 'orderId'
  | 'pickupCode'
  | 'programId'
  | 'cardCode'
  | 'rewardId'
  | 'checkInCode'
  | 'webhookId'
  | 'deliveryId'
  | 'outboxId'
  | 'zoneId'
  | 'requestId'
  | 'keyId'
  | 'offerId'
  | 'groupId'
  | 'subscriptionId'
  | 'recallId',
  string
>

/** A browser’s PushSubscription. */
const BROWSER = {
  endpoint: 'https://updates.push.services.mozilla.com/wpush/v2/gAAAAABk',
  keys: {
    p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
    auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  },
}
const ADDRESS = 'https://receiver.example/'
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Marks a request whose data the previous request changes if a key of the whole account sends both. */
const AGAIN = 'again'

/**
 * Requests with an id. `of` has ids of the hidden store or unknown ids; `own` has ids of the key's store. Requests that
 * end or delete data come last.
 */
type Row = readonly [operation: string, body: (of: Names, own: Names) => Json, again?: typeof AGAIN]
const saleOf = (ids: Json, line: Json = {}) => ({
  occurredAt: '2026-11-20T09:00:00Z',
  ...ids,
  lines: [{ name: 'Schirm', quantity: 1, priceUnit: 990, vat: 19, ...line }],
})
const REQUESTS: readonly Row[] = [
  ['recordSales', (of) => ({ storeId: of.storeId, sales: [saleOf({ saleId: 'hidden' })] })],
  ...(['ean', 'productId'] as const).map((field): Row => [
    'recordSales',
    (of, own) => ({
      storeId: own.storeId,
      sales: [saleOf({ saleId: of[field], tillId: 'a', receiptCodes: [] }, { lineId: 'a', [field]: of[field] })],
    }),
    AGAIN,
  ]),
  ...(['epc', 'tagUid', 'tagId'] as const).map((field): Row => [
    'recordSales',
    (of, own) => ({ storeId: own.storeId, sales: [saleOf({ saleId: of[field] }, { [`${field}s`]: [of[field]] })] }),
    AGAIN,
  ]),
  ['recordReturns', (of) => ({ storeId: of.storeId, returns: [{ returnId: 'hidden', saleId: 'x', tillId: 'a' }] })],
  ...(['purchaseId', 'receipt'] as const).map((field): Row => [
    'recordReturns',
    (of, own) => ({
      storeId: own.storeId,
      returns: [{ returnId: field, [field]: of[field], lines: [{ lineId: of.lineId, epcs: [of.epc] }] }],
    }),
  ]),
  ...(['epc', 'tagUid', 'tagId'] as const).map((field): Row => [
    'recordReturns',
    (of, own) => ({ storeId: own.storeId, returns: [{ returnId: `tag ${field}`, [`${field}s`]: [of[field]] }] }),
  ]),
  ['voidSale', (of) => ({ storeId: of.storeId, saleId: 'hidden', tillId: 'a' })],
  ['revokeTill', (of) => ({ storeId: of.storeId, tillId: 'a' })],
  ['getReceiptFromCode', (of) => ({ storeId: of.storeId, code: 'unknown-code' })],
  ['fetchProduct', (of) => ({ productId: of.productId })],
  ['fetchProduct', (of) => ({ id: of.productId })],
  ['fetchProduct', (of) => ({ barcode: of.ean })],
  ['fetchProduct', (of) => ({ ean: of.ean })],
  ['fetchProduct', (of, own) => ({ storeId: own.storeId, barcode: of.ean })],
  ['updateProduct', (of, own) => ({ storeId: own.storeId, productId: of.productId, unit: 'Stück' })],
  ['updateProduct', (of, own) => ({ storeId: own.storeId, id: of.productId, unit: 'Stück' })],
  ['updateProduct', (of, own) => ({ storeId: own.storeId, ean: of.ean, unit: 'Stück' })],
  ['updateProduct', (of, own) => ({ storeId: own.storeId, barcode: of.ean, unit: 'Stück' })],
  ['registerProductToStore', (of, own) => ({ storeId: own.storeId, productId: of.productId })],
  ['registerProductToStore', (of, own) => ({ storeId: own.storeId, id: of.productId })],
  ['registerProductToStore', (of, own) => ({ storeId: own.storeId, barcode: of.ean })],
  ['registerProductToStore', (of, own) => ({ storeId: own.storeId, ean: of.ean })],
  ['uploadImageToProduct', (of) => ({ productId: of.productId, imageBase64: PIXEL })],
  ['setStock', (of, own) => ({ storeId: own.storeId, productId: of.productId, quantity: 1 })],
  ['fetchStock', (of, own) => ({ storeId: own.storeId, productId: of.productId })],
  [
    'createOffer',
    (of, own) => ({
      storeIds: [own.storeId],
      title: 'Herbst',
      validFrom: '2026-11-20T08:00:00Z',
      validTo: '2099-12-04T08:00:00Z',
      products: [{ ean: of.ean, name: 'Schirm', price: 1 }],
    }),
  ],
  [
    'createOffer',
    (of) => ({
      storeIds: [of.storeId],
      title: 'Herbst',
      validFrom: '2026-11-20T08:00:00Z',
      validTo: '2099-12-04T08:00:00Z',
      products: [{ name: 'Schirm', price: 1 }],
    }),
  ],
  ['updateOffer', (of) => ({ offerId: of.offerId, title: 'Winterwochen' })],
  ['updateOffer', (of) => ({ id: of.offerId, title: 'Winterwochen' })],
  ['updateOffer', (of) => ({ offerId: of.groupId, title: 'Winterwochen' })],
  ['fetchOffer', (of) => ({ offerId: of.offerId })],
  ['fetchOffer', (of) => ({ offerId: of.groupId })],
  ['updateOffer', (of, own) => ({ offerId: own.offerId, storeIds: [of.storeId] })],
  ['updateOffer', (of, own) => ({ offerId: own.offerId, products: [{ ean: of.ean, name: 'Schirm', price: 1 }] })],
  ['cloneOffer', (of, own) => ({ offerId: of.offerId, targetStoreIds: [own.storeId] })],
  ['cloneOffer', (of, own) => ({ id: of.offerId, targetStoreIds: [own.storeId] })],
  ['cloneOffer', (of, own) => ({ offerId: own.offerId, targetStoreIds: [of.storeId] })],
  ['recordEngagement', (of, own) => ({ type: 'offer_click', storeId: own.storeId, offerId: of.offerId })],
  [
    'submitClickCollectOrder',
    (of, own) => ({ storeId: own.storeId, userId: 'u', items: [{ productId: of.productId, quantity: 1 }] }),
  ],
  [
    'submitClickCollectOrder',
    (of, own) => ({ storeId: own.storeId, userId: 'u', items: [{ ean: of.ean, quantity: 1 }] }),
  ],
  ['updateClickCollectStatus', (of, own) => ({ orderId: own.orderId, status: 'confirmed', epcs: [of.epc] })],
  [
    'updateClickCollectStatus',
    (of, own) => ({ orderId: own.orderId, status: 'confirmed', tagUids: [of.tagUid] }),
    AGAIN,
  ],
  ['updateClickCollectStatus', (of, own) => ({ orderId: own.orderId, status: 'confirmed', tagIds: [of.tagId] }), AGAIN],
  [
    'updateClickCollectStatus',
    (of, own) => ({ orderId: own.orderId, status: 'confirmed', pickupCode: of.pickupCode }),
    AGAIN,
  ],
  [
    'updateClickCollectStatus',
    (of, own) => ({ orderId: own.orderId, status: 'ready', lockerDeviceId: of.deviceId }),
    AGAIN,
  ],
  ['verifyPickupCode', (of, own) => ({ storeId: own.storeId, pickupCode: of.pickupCode })],
  ['registerPushSubscription', (of) => ({ kind: 'web', ...BROWSER, sessionId: of.sessionId })],
  ['getLoyaltyProgram', (of) => ({ programId: of.programId })],
  ['getLoyaltyProgram', (of) => ({ programId: of.programId, userId: 'u' })],
  ['getLoyaltyAnalytics', (of) => ({ programId: of.programId })],
  ['updateLoyaltyProgram', (of) => ({ programId: of.programId, name: 'Neu' })],
  ['addLoyaltyPoints', (of) => ({ programId: of.programId, userId: 'u', amount: 1 })],
  ['addLoyaltyPoints', (of, own) => ({ programId: own.programId, userId: 'u', purchaseId: of.purchaseId })],
  [
    'addLoyaltyPoints',
    (of, own) => ({ programId: own.programId, userId: 'u', purchaseId: of.purchaseId, transactionId: of.purchaseId }),
  ],
  ['addLoyaltyPoints', (of, own) => ({ programId: own.programId, cardCode: of.cardCode, amount: 1 })],
  ['redeemLoyaltyPoints', (of) => ({ programId: of.programId, userId: 'u', amount: 1 })],
  ['redeemLoyaltyPoints', (of, own) => ({ programId: own.programId, cardCode: of.cardCode, amount: 1 })],
  ['redeemLoyaltyPoints', (of, own) => ({ programId: own.programId, userId: 'u', rewardId: of.rewardId })],
  ['issueLoyaltyCard', (of) => ({ programId: of.programId, userId: 'u' })],
  ['loyaltyCheckIn', (of) => ({ programId: of.programId, userId: 'u', method: 'qr_checkin', code: 'x' })],
  [
    'loyaltyCheckIn',
    (of, own) => ({ programId: own.programId, userId: 'u', method: 'qr_checkin', code: of.checkInCode }),
  ],
  ['startCheckout', (of, own) => ({ sessionId: of.sessionId, items: [{ ean: own.ean, quantity: 1 }] })],
  ['startCheckout', (of, own) => ({ sessionId: own.sessionId, items: [{ ean: of.ean, quantity: 1 }] })],
  ['startCheckout', (of, own) => ({ sessionId: own.sessionId, items: [{ productId: of.productId, quantity: 1 }] })],
  [
    'startCheckout',
    (of, own) => ({ sessionId: own.sessionId, items: [{ ean: own.ean, quantity: 1, epcs: [of.epc] }] }),
  ],
  [
    'startCheckout',
    (of, own) => ({ sessionId: own.sessionId, items: [{ ean: own.ean, quantity: 1, tagUids: [of.tagUid] }] }),
  ],
  [
    'startCheckout',
    (of, own) => ({ sessionId: own.sessionId, items: [{ ean: own.ean, quantity: 1, tagIds: [of.tagId] }] }),
  ],
  ['fetchPurchase', (of) => ({ transactionId: of.purchaseId })],
  ['fetchPurchase', (of) => ({ purchaseId: of.purchaseId })],
  ['fetchPurchase', (of) => ({ id: of.purchaseId, sessionId: of.sessionId })],
  ['fetchPurchase', (of, own) => ({ id: own.purchaseId, sessionId: of.sessionId })],
  ['approveCheckout', (of) => ({ transactionId: of.purchaseId, operatorId: of.operatorId })],
  ['approveCheckout', (of, own) => ({ purchaseId: of.purchaseId, operatorId: own.operatorId })],
  ['approveCheckout', (of, own) => ({ id: of.purchaseId, operatorId: own.operatorId })],
  ['completeTestCheckout', (of) => ({ transactionId: of.purchaseId })],
  ['completeTestCheckout', (of) => ({ purchaseId: of.purchaseId })],
  ['completeTestCheckout', (of) => ({ id: of.purchaseId })],
  ['processPayment', (of) => ({ purchaseId: of.purchaseId })],
  ['processPayment', (of) => ({ transactionId: of.purchaseId })],
  ['processPayment', (of) => ({ id: of.purchaseId })],
  ['generateReceiptQR', (of) => ({ purchaseId: of.purchaseId })],
  ['generateReceiptQR', (of) => ({ transactionId: of.purchaseId })],
  ['generateReceiptQR', (of) => ({ id: of.purchaseId })],
  ['generateReceiptWithQR', (of) => ({ purchaseId: of.purchaseId })],
  ['generateReceiptWithQR', (of) => ({ transactionId: of.purchaseId })],
  ['generateReceiptWithQR', (of) => ({ id: of.purchaseId })],
  ['verifySecurityTagDeactivation', (of) => ({ purchaseId: of.purchaseId })],
  ['verifySecurityTagDeactivation', (of) => ({ receiptToken: of.receipt })],
  ['verifySecurityTagDeactivation', (of) => ({ purchaseId: of.purchaseId, deviceId: of.deviceId })],
  ['verifySecurityTagDeactivation', (of, own) => ({ purchaseId: of.purchaseId, deviceId: own.deviceId })],
  ['verifySecurityTagDeactivation', (of, own) => ({ purchaseId: own.purchaseId, deviceId: of.deviceId })],
  ['verifySecurityTagDeactivation', (of, own) => ({ purchaseId: of.purchaseId, receiptToken: own.receipt })],
  ['verifyProtectedItem', (of) => ({ deviceId: of.deviceId, protectionAction: 'detach_hard_tag', epc: of.epc })],
  ['verifyProtectedItem', (of, own) => ({ deviceId: of.deviceId, protectionAction: 'detach_hard_tag', epc: own.epc })],
  [
    'verifyProtectedItem',
    (of, own) => ({ deviceId: own.deviceId, protectionAction: 'verify_item_status', epc: of.epc }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({ deviceId: own.deviceId, protectionAction: 'unlock_fixture', pickupCode: of.pickupCode }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({ deviceId: own.deviceId, protectionAction: 'verify_item_status', tagUid: of.tagUid }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({ deviceId: own.deviceId, protectionAction: 'verify_item_status', tagId: of.tagId }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({ deviceId: own.deviceId, protectionAction: 'deactivate_label', itemLineId: of.lineId }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({
      deviceId: own.deviceId,
      protectionAction: 'deactivate_label',
      itemLineId: of.lineId,
      purchaseId: own.purchaseId,
    }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({
      deviceId: own.deviceId,
      protectionAction: 'deactivate_label',
      epc: own.epc,
      purchaseId: of.purchaseId,
    }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({ deviceId: own.deviceId, protectionAction: 'authorize_exit', purchaseId: of.purchaseId }),
  ],
  [
    'verifyProtectedItem',
    (of, own) => ({
      deviceId: own.deviceId,
      protectionAction: 'authorize_exit',
      purchaseId: of.purchaseId,
      receiptToken: own.receipt,
    }),
  ],
  [
    'redeemProtectionAuthorization',
    (of) => ({ replayProtectedNonce: of.nonce, deviceId: of.deviceId, redemptionId: 'r-1' }),
  ],
  [
    'redeemProtectionAuthorization',
    (of, own) => ({ replayProtectedNonce: of.nonce, deviceId: own.deviceId, redemptionId: 'r-1' }),
  ],
  [
    'redeemProtectionAuthorization',
    (of, own) => ({ replayProtectedNonce: own.nonce, deviceId: of.deviceId, redemptionId: 'r-1' }),
  ],
  [
    'resolveRedemption',
    (of, own) => ({ redemptionId: of.redemptionId, outcome: 'failed', operatorId: own.operatorId }),
  ],
  [
    'resolveRedemption',
    (of, own) => ({
      redemptionId: of.redemptionId,
      outcome: 'failed',
      operatorId: own.operatorId,
      replayProtectedNonce: of.nonce,
    }),
  ],
  ['registerDevice', (of, own) => ({ storeId: own.storeId, deviceType: 'exit_gate', agentId: of.agentId })],
  ['updateDevice', (of) => ({ deviceId: of.deviceId, name: 'Neu' })],
  ['updateDevice', (of, own) => ({ deviceId: own.deviceId, agentId: of.agentId })],
  ['updateDevice', (of, own) => ({ deviceId: own.deviceId, storeId: of.storeId })],
  ['reportDeviceHeartbeat', (of) => ({ deviceId: of.deviceId, firmwareVersion: '9' })],
  ['fetchProtectedItem', (of, own) => ({ storeId: own.storeId, epc: of.epc })],
  ['fetchProtectedItem', (of, own) => ({ storeId: own.storeId, tagUid: of.tagUid })],
  ['fetchProtectedItem', (of, own) => ({ storeId: own.storeId, tagId: of.tagId })],
  ['fetchProtectedItem', (of, own) => ({ storeId: own.storeId, itemLineId: of.boundLineId })],
  [
    'updateItemStatus',
    (of, own) => ({ storeId: own.storeId, itemLineId: of.boundLineId, itemStatus: 'exception_hold' }),
  ],
  ['updateItemStatus', (of, own) => ({ storeId: own.storeId, epc: of.epc, itemStatus: 'exception_hold' })],
  ['updateItemStatus', (of, own) => ({ storeId: own.storeId, tagUid: of.tagUid, itemStatus: 'exception_hold' })],
  ['updateItemStatus', (of, own) => ({ storeId: own.storeId, tagId: of.tagId, itemStatus: 'exception_hold' })],
  [
    'registerProtectedItems',
    (of, own) => ({ storeId: own.storeId, items: [{ epc: newEpc(), productId: of.productId }] }),
  ],
  ['registerProtectedItems', (of, own) => ({ storeId: own.storeId, items: [{ epc: newEpc(), ean: of.ean }] })],
  ['reuseTags', (of, own) => ({ storeId: own.storeId, tags: [{ epc: of.epc, ean: of.ean }] })],
  ['reuseTags', (of, own) => ({ storeId: own.storeId, tags: [{ tagUid: of.tagUid, ean: of.ean }] })],
  ['reuseTags', (of, own) => ({ storeId: own.storeId, tags: [{ tagId: of.tagId, ean: of.ean }] })],
  ['moveReceiptHome', (of, own) => ({ storeId: own.storeId, home: of.agentId })],
  ['fetchAlarms', (of, own) => ({ storeId: own.storeId, eventId: of.eventId })],
  ['fetchAlarms', (of, own) => ({ storeId: own.storeId, purchaseId: of.boundId })],
  ['fetchDevices', (of, own) => ({ storeId: own.storeId, deviceId: of.deviceId })],
  ['fetchProtectionEvents', (of, own) => ({ storeId: own.storeId, deviceId: of.deviceId })],
  ['fetchProtectionEvents', (of, own) => ({ storeId: own.storeId, eventId: of.eventId })],
  ['fetchProtectionEvents', (of, own) => ({ storeId: own.storeId, purchaseId: of.purchaseId })],
  ['exportEpcisEvents', (of, own) => ({ storeId: own.storeId, deviceId: of.deviceId, format: 'ndjson' })],
  ['exportEpcisEvents', (of, own) => ({ storeId: own.storeId, purchaseId: of.purchaseId, format: 'ndjson' })],
  ['acknowledgeException', (of) => ({ exceptionId: of.exceptionId })],
  [
    'disposeAlarms',
    (of, own) => ({
      storeId: of.storeId,
      deviceId: of.deviceId,
      until: '2100-01-01T00:00:00Z',
      disposition: 'phantom',
      operatorId: own.operatorId,
    }),
  ],
  ['disposeAlarm', (of, own) => ({ eventId: of.eventId, disposition: 'phantom', operatorId: own.operatorId })],
  ['callHelpToAlarm', (of) => ({ eventId: of.eventId })],
  ['requestAssistance', (of) => ({ zoneId: of.zoneId, message: 'Hallo?' })],
  ['fetchAssistanceRequests', (of, own) => ({ storeId: own.storeId, requestId: of.requestId })],
  ['answerAssistanceRequest', (of) => ({ requestId: of.requestId, message: 'Ja' })],
  ['fetchWebhookDeliveries', (of) => ({ webhookId: of.webhookId })],
  ['fetchWebhookDeliveries', (of) => ({ eventId: of.outboxId })],
  ['fetchWebhookEvents', (of) => ({ cursor: of.outboxId, limit: 1 })],
  ['sendTestWebhook', (of) => ({ webhookId: of.webhookId })],
  ['updateWebhook', (of) => ({ webhookId: of.webhookId, enabled: true })],
  ['rollWebhookSecret', (of) => ({ webhookId: of.webhookId })],
  ['redeliverWebhook', (of) => ({ deliveryId: of.deliveryId })],
  ['fetchAuditLog', (of) => ({ entityId: of.purchaseId })],
  ['createApiKey', (of) => ({ kind: 'secret', name: 'x', storeIds: [of.storeId] })],
  ['rollApiKey', (of) => ({ keyId: of.keyId })],
  ['refundPayment', (of) => ({ purchaseId: of.purchaseId, amount: 1 })],
  ['refundPayment', (of) => ({ transactionId: of.purchaseId, lines: [{ itemLineId: of.lineId }] })],
  ['refundPayment', (of, own) => ({ purchaseId: own.purchaseId, lines: [{ itemLineId: of.lineId }] })],
  [
    'refundPayment',
    (of, own) => ({
      purchaseId: own.purchaseId,
      lines: [{ itemLineId: own.lineId, quantity: 1 }],
      refundId: of.refundId,
    }),
  ],
  ...(['epc', 'tagUid', 'tagId'] as const).map((tag): Row => [
    'refundPayment',
    (of, own) => ({ purchaseId: own.purchaseId, lines: [{ itemLineId: own.lineId, [`${tag}s`]: [of[tag]] }] }),
  ]),
  ['refundPayment', (of, own) => ({ purchaseId: own.purchaseId, refundId: of.refundId, notPaid: true })],
  ['refundPayment', (of) => ({ id: of.purchaseId })],
  ['markPurchaseCancelled', (of) => ({ purchaseId: of.purchaseId })],
  ['markPurchaseCancelled', (of) => ({ transactionId: of.purchaseId })],
  ['markPurchaseCancelled', (of) => ({ id: of.purchaseId })],
  ['updateClickCollectStatus', (of) => ({ orderId: of.orderId, status: 'cancelled' })],
  ['removeProductFromStore', (of, own) => ({ storeId: own.storeId, productId: of.productId })],
  ['removeProductFromStore', (of, own) => ({ storeId: own.storeId, id: of.productId }), AGAIN],
  ['removeProductFromStore', (of, own) => ({ storeId: own.storeId, ean: of.ean }), AGAIN],
  ['removeProductFromStore', (of, own) => ({ storeId: own.storeId, barcode: of.ean }), AGAIN],
  ['deleteOffer', (of) => ({ offerId: of.offerId })],
  ['deleteOffer', (of) => ({ id: of.offerId })],
  ['revokeProtectionAuthorization', (of) => ({ replayProtectedNonce: of.nonce })],
  ['decommissionDevice', (of) => ({ deviceId: of.deviceId })],
  ['updateOperator', (of) => ({ operatorId: of.operatorId, newBadge: true })],
  ['removeOperator', (of) => ({ operatorId: of.operatorId })],
  ['resolveAgentFork', (of) => ({ agentId: of.agentId, decision: 'revoke' })],
  ['revokeAgent', (of) => ({ agentId: of.agentId })],
  ['recallProducts', (of) => ({ storeIds: [of.storeId], ean: of.ean, reason: 'Splitter' })],
  ['recallProducts', (of) => ({ ean: of.ean, reason: 'Splitter' })],
  ['endRecall', (of) => ({ recallId: of.recallId })],
  ['removePushSubscription', (of) => ({ subscriptionId: of.subscriptionId })],
  ['removePushSubscription', (of, own) => ({ subscriptionId: own.subscriptionId, sessionId: of.sessionId })],
  ['deleteWebhook', (of) => ({ webhookId: of.webhookId })],
  ['revokeApiKey', (of) => ({ keyId: of.keyId })],
]

/** Fields that look like ids but name no data of a store. */
const NO_NAMES: ReadonlySet<string> = new Set([
  // For every operation: test/cloud/platform/operations/every-operation.test.ts.
  'storeId',
  'userId',
  'zoneId',
  'laneId',
  'gateId',
  'tillId',
  'pspAccountId',
  'posProductId',
  'postalCode',
  'countryCode',
  'cursor',
  'canReadUhfRfid',
  'paid',
])
/** Fields of single operations that need no request here, each with its reason. */
const NOT_HERE: Record<string, string> = {
  'fetchPurchaseHistory.ean': 'a filter of purchases that the caller may see',
  'insertProduct.ean': 'a product belongs to the whole account: a known EAN keeps its productId (ADR catalogue)',
  'insertProduct.barcode': 'as ean',
  'bulkImportProducts.ean': 'as insertProduct',
  'bulkImportProducts.barcode': 'as insertProduct',
  'registerProtectedItems.epc':
    'a tag is one of the whole account, and its other store is named by item_in_another_store',
  'registerProtectedItems.tagUid': 'as epc',
  'registerProtectedItems.tagId': 'as epc',
  'reuseTags.operatorId': 'recorded as asserted',
  'verifyProtectedItem.receiptToken': 'a caller with a receipt may use it, and the receipt itself names its store',
  'verifyProtectedItem.authorizationToken': 'for agents',
  'verifyProtectedItem.operatorId': 'recorded as asserted',
  'verifySecurityTagDeactivation.operatorId': 'recorded as asserted',
  'resolveRedemption.operatorId': 'recorded as asserted',
  'disposeAlarm.operatorId': 'recorded as asserted',
  'disposeAlarms.operatorId': 'recorded as asserted',
  'disposeAlarms.deviceId': 'filters alarms of the store',
  'fetchAlarms.deviceId': 'filters alarms of the store',
  'updateItemStatus.operatorId': 'recorded as asserted',
  'refundPayment.confirmedBy': 'recorded as asserted',
  'redeemProtectionAuthorization.authorizationToken': 'a caller with a token may use it',
  'redeemProtectionAuthorization.redemptionId': 'the caller chooses it',
  'createLoyaltyProgram.rewardId': 'of the program itself',
  'updateLoyaltyProgram.rewardId': 'of the program itself',
  'updateLoyaltyProgram.checkInCode': 'set by the system: sent back as it is',
  'updateDevice.movingToAgentId': 'set by the system: sent back as it is',
  'updateProtectionPolicy.home': 'cannot be changed here (use moveReceiptHome): sent back as it is',
  'simulateProtectionPolicy.home': 'cannot be changed here (use moveReceiptHome): sent back as it is',
  'updateOffer.offerIds': 'set by the system: sent back as they are',
  'updateOffer.groupId': 'set by the system: sent back as it is',
  'fetchPurchaseHistory.saleId': 'a number of the named store only: see record-sales.test.ts',
  'fetchPurchaseHistory.receiptCode': 'a code of the named store only: see record-sales.test.ts',
  'fetchPurchaseHistory.receipt': 'a receipt of visible stores only: see tills-of-agents.test.ts',
  'recordReturns.code': 'a code of the named store only: see record-sales.test.ts',
  'updateStore.id': 'set by the system: sent back as it is',
  'reportProtectionEvents.eventId': 'one of the whole account: see event-ids.test.ts',
}

/** A key bound to one store, or an agent of it, gets the same responses for another store as for unknown ids. */
onEveryDatabase('a key that is bound to another store', (kind) => {
  let shop: Shop
  let bound: string
  let boundUser: string
  let agent: string
  let of: Names
  let own: Names
  let unknown: Names

  beforeAll(async () => {
    shop = await openShop(kind, {
      outgoing: { send: async () => ({ status: 200, headers: {}, body: new Uint8Array(), isCut: false }) },
    })
    of = await everythingIn(shop, shop.storeId)
    own = await everythingIn(shop, shop.otherStoreId)
    unknown = Object.fromEntries(
      Object.entries(of).map(([name, id]) => [name, nothingLike(name as keyof Names, id)]),
    ) as Names
    bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    boundUser = await shop.cloud.user('admin', { storeIds: [shop.otherStoreId] })
    agent = (await enrolTestAgent(shop, shop.otherStoreId)).token
  })
  afterAll(() => shop.stop())

  /** Masks the requested ids and the parts that differ between calls, so that responses can be compared. */
  function comparable({ status, text }: { status: number; text: string }, names: Names): string {
    let masked = text
      .replaceAll(/"(requestId|eventId|creationDate|receiptToken)":"[^"]*"/g, '"$1":""')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'T')
    // Longer ids first: a tag number contains an EAN.
    for (const [name, id] of Object.entries(names).toSorted(([, a], [, b]) => b.length - a.length))
      masked = masked.replaceAll(id, `<${name}>`)
    return `${status} ${masked.replaceAll(/\b[a-z]{2,4}_[0-9A-HJKMNP-TV-Z]{26}\b/g, '_')}`
  }

  it('has a request for every id field of every operation', () => {
    const named = new Map<string, Set<string>>()
    for (const [operation, body] of REQUESTS) {
      const fields = named.get(operation) ?? new Set()
      for (const [, field] of JSON.stringify(body(of, own)).matchAll(/"([A-Za-z]+)":/g)) fields.add(field ?? '')
      named.set(operation, fields)
    }
    const missing = [...OPERATION_TABLE.values()]
      .filter((operation) => operation.callers.includes('secret'))
      .flatMap((operation) => idFieldsOf(operation.request).map((field) => [operation.name, field] as const))
      .filter(
        ([operation, field]) =>
          !NO_NAMES.has(field) && !(`${operation}.${field}` in NOT_HERE) && !named.get(operation)?.has(field),
      )
      .filter(([operation]) => operation !== 'reportProtectionEvents')
    expect(missing).toEqual([])
  })

  it.each(REQUESTS.map(([operation, body], n) => [n, operation, body] as const))(
    '%i: %s gets the same response as for an unknown id',
    async (_n, operation, body) => {
      const before = await rowsOfStore()
      const isForAgents = OPERATION_TABLE.get(operation)?.callers.includes('agent') === true
      const isForUsers = OPERATION_TABLE.get(operation)?.roles.includes('admin') === true
      for (const caller of [bound, ...(isForAgents ? [agent] : []), ...(isForUsers ? [boundUser] : [])]) {
        const answer = comparable(await shop.cloud.call(caller, operation, body(of, own)), of)
        expect(answer).toBe(comparable(await shop.cloud.call(caller, operation, body(unknown, own)), unknown))
      }
      expect(await rowsOfStore()).toEqual(before)
    },
  )

  it('resolves its own redemption although another store uses the same redemption id', async () => {
    for (const { nonce, deviceId } of [of, own]) {
      await shop.ok('redeemProtectionAuthorization', {
        replayProtectedNonce: nonce,
        deviceId,
        redemptionId: 'made-up',
        outcome: 'unknown',
      })
    }
    const resolution = { redemptionId: 'made-up', outcome: 'confirmed', operatorId: own.operatorId }
    expect(await shop.call('resolveRedemption', resolution)).toMatchObject({
      status: 409,
      body: { reason: 'redemption_ambiguous' },
    })
    const before = await rowsOfStore()
    expect((await shop.cloud.call(bound, 'resolveRedemption', resolution)).status).toBe(200)
    expect(await rowsOfStore()).toEqual(before)
    const open = async ({ storeId }: Names) =>
      (await shop.ok('fetchExceptions', { storeId, kind: 'outcome_unknown', state: 'open' })).exceptions.filter(
        (each: Json) => each.subject === 'made-up',
      ).length
    expect([await open(of), await open(own)]).toEqual([1, 0])
    const outcomes = await shop.cloud.db.database.reads
      .selectFrom('redemption')
      .select(['nonce', 'outcome'])
      .where('redemption_id', '=', 'made-up')
      .execute()
    expect(new Map(outcomes.map((row) => [row.nonce, row.outcome]))).toEqual(
      new Map([
        [of.nonce, 'unknown'],
        [own.nonce, 'confirmed'],
      ]),
    )
  })

  it('gets other responses than a key of the whole account', async () => {
    const same = []
    for (const [n, [operation, body, again]] of REQUESTS.entries()) {
      if (again) continue
      const nothing = comparable(await shop.call(operation, body(unknown, of)), unknown)
      if (comparable(await shop.call(operation, body(of, of)), of) === nothing)
        same.push(`${n} ${operation} ${nothing}`)
    }
    expect(same).toEqual([])
  })

  it('leaves no error in the log', () => expect(shop.cloud.errors).toEqual([]))

  /** All rows of the hidden store, except webhooks, which jobs may change meanwhile. */
  async function rowsOfStore(): Promise<Json> {
    const { reads } = shop.cloud.db.database
    const rows = await Promise.all(
      tables.map(async (table) =>
        (await sql<Json>`SELECT * FROM ${sql.table(table)} WHERE store_id = ${shop.storeId}`.execute(reads)).rows
          .map((row) => JSON.stringify(row))
          .sort(),
      ),
    )
    return Object.fromEntries(tables.map((table, i) => [table, rows[i]]))
  }
  const tables = [
    'store',
    'store_product',
    'shopping_session',
    'purchase',
    'protected_item',
    'agent',
    'device',
    'operator',
    'protection_authorization',
    'protection_event',
    'protection_exception',
    'pickup_order',
    'loyalty_program',
    'zone',
    'assistance_request',
    'webhook',
  ]
})

/** Id fields anywhere in a request of this shape. */
function idFieldsOf(request: z.ZodType): string[] {
  const names = new Set<string>()
  const visit = (schema: Json): void => {
    for (const [name, field] of Object.entries<Json>(schema?.properties ?? {})) {
      if (/(Id|Ids|Nonce|Token|epcs?|tagUids?|tagIds?|ean|barcode|id|code|Code|confirmedBy|home)$/.test(name))
        names.add(name)
      visit(field)
    }
    for (const each of [schema?.items, ...(schema?.anyOf ?? []), ...(schema?.allOf ?? [])].filter(Boolean)) visit(each)
  }
  visit(z.toJSONSchema(request, { io: 'input', unrepresentable: 'any' }))
  return [...names]
}

/** An unknown id of the same form. */
function nothingLike(name: keyof Names, id: string): string {
  if (name === 'ean') return newEan()
  if (name === 'epc' || name === 'tagUid') return newEpc().slice(0, id.length)
  if (name === 'pickupCode') return '0000-0000'
  if (name === 'nonce') return 'A'.repeat(id.length)
  if (name === 'receipt') return `${id.slice(0, -40)}${'A'.repeat(40)}`
  return id.includes('_')
    ? `${id.slice(0, id.indexOf('_') + 1)}${'Z'.repeat(id.length - id.indexOf('_') - 1)}`
    : `${id}-not`
}

let tags = 0

/** Creates one entity of each kind in a store and returns the ids. */
async function everythingIn(shop: Shop, storeId: string): Promise<Names> {
  const ok = shop.ok
  const ean = newEan()
  const serial = String(++tags)
  const { productId } = await ok('insertProduct', {
    storeId,
    ean,
    name: `Ding ${ean}`,
    price: 30,
    vat: 19,
    category: 'bekleidung',
    tagged: true,
  })
  const { webhookId } = await ok('registerWebhook', { storeId, url: `${ADDRESS}${serial}`, events: ['*'] })
  const [epc, tagUid, tagId] = [newEpc(), `E0040150${serial.padStart(8, '0')}`, `T-${serial}-${ean}`]
  for (const names of [{ epc }, { tagUid }, { tagId }])
    await ok('registerProtectedItems', { storeId, items: [{ ean, ...names }] })
  const register = async (deviceType: string) =>
    (await ok('registerDevice', { storeId, deviceType, supportedTechnologies: ['uhf_rfid', 'am'] })).deviceId
  const [deviceId, gateId] = [await register('pos_deactivator'), await register('exit_gate')]
  const { operatorId } = await ok('registerOperator', { storeId, name: 'Frau Petersen' })
  const { agentId } = await enrolTestAgent(shop, storeId)
  const { sessionId } = await ok('checkIn', { storeId })
  const { transactionId: purchaseId } = await ok('startCheckout', { sessionId, items: [{ ean, quantity: 3 }] })
  const { items } = await ok('completeTestCheckout', { transactionId: purchaseId })
  const bought = newEpc()
  await ok('registerProtectedItems', { storeId, items: [{ ean, epc: bought }] })
  const { transactionId: boundId } = await ok('startCheckout', {
    sessionId: (await ok('checkIn', { storeId })).sessionId,
    items: [{ ean, quantity: 1, epcs: [bought] }],
  })
  const { items: boundItems } = await ok('completeTestCheckout', { transactionId: boundId })
  const { token: receipt } = await ok('generateReceiptQR', { purchaseId })
  const { refund } = await ok('refundPayment', { purchaseId, amount: 0.01 })
  const used = await ok('verifySecurityTagDeactivation', { purchaseId, deviceId })
  const redemptionId = `redemption-${serial}`
  await ok('redeemProtectionAuthorization', {
    replayProtectedNonce: used.replayProtectedNonce,
    deviceId,
    redemptionId,
    outcome: 'unknown',
  })
  const eventId = `alarm-${serial}`
  const alarm = {
    type: 'protection.exception.raised',
    eventId,
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    storeId,
    deviceId: gateId,
    reason: 'gate_alarm',
    epc: bought,
  }
  await ok('reportProtectionEvents', { events: [alarm] })
  const { exceptions } = await ok('fetchExceptions', { storeId, kind: 'gate_alarm' })
  const { orderId, pickupCode } = await ok('submitClickCollectOrder', {
    storeId,
    userId: 'shopper-1',
    items: [{ productId, quantity: 1 }],
  })
  const { programId, checkInCode, rewards } = await ok('createLoyaltyProgram', {
    storeId,
    name: 'Karte',
    type: 'points',
    pointsPerEuro: 1,
    earningMethods: ['qr_checkin'],
    rewards: [{ name: 'Kaffee', cost: 10 }],
  })
  await ok('addLoyaltyPoints', { programId, userId: 'u', amount: 100 })
  const { cardCode } = await ok('issueLoyaltyCard', { programId, userId: 'u' })
  const { zoneId } = await ok('createZone', { storeId, name: 'Herren' })
  const { requestId } = await ok('requestAssistance', { zoneId, message: 'Hallo?' })
  const { keyId } = await ok('createApiKey', { kind: 'secret', name: 'Kasse', storeIds: [storeId] })
  // Of a lot that no other goods of this test have.
  const { recallId } = await ok('recallProducts', { storeIds: [storeId], ean, lot: 'L-1', reason: 'Splitter' })
  const { subscriptionId } = await ok('registerPushSubscription', {
    storeId,
    kind: 'https',
    endpoint: `${ADDRESS}push/${serial}`,
  })
  const { offerId, groupId } = await ok('createOffer', {
    storeIds: [storeId],
    title: 'Herbst',
    validFrom: '2020-01-01T00:00:00Z',
    validTo: '2099-01-01T00:00:00Z',
    products: [{ name: 'Schirm', price: 9.99 }],
  })
  const { eventId: outboxId } = await ok('sendTestWebhook', { webhookId })
  let deliveryId: string | undefined
  for (let n = 0; n < 200 && deliveryId === undefined; n++) {
    await new Promise((resolve) => setTimeout(resolve, 25))
    const { deliveries } = await ok('fetchWebhookDeliveries', { webhookId, eventId: outboxId })
    deliveryId = deliveries.find((each: Json) => each.status !== 'pending')?.deliveryId
  }
  if (deliveryId === undefined) throw new Error('the test event was not delivered')
  return {
    storeId,
    productId,
    ean,
    deviceId,
    gateId,
    operatorId,
    agentId,
    sessionId,
    purchaseId,
    lineId: items[0].itemLineId,
    boundId,
    boundLineId: boundItems[0].itemLineId,
    receipt,
    refundId: refund.refundId,
    nonce: used.replayProtectedNonce,
    redemptionId,
    epc,
    tagUid,
    tagId,
    eventId,
    exceptionId: exceptions[0].exceptionId,
    orderId,
    pickupCode,
    programId,
    cardCode,
    rewardId: rewards[0].rewardId,
    checkInCode,
    webhookId,
    deliveryId,
    outboxId,
    zoneId,
    requestId,
    keyId,
    offerId,
    groupId,
    subscriptionId,
    recallId,
  }
}
