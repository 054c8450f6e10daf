import { agentLogin, createEnrolmentCode, enrolEdgeAgent, fetchSignedDocuments } from '../agents/operations.ts'
import { fetchProduct, fetchProducts } from '../catalogue/operations.ts'
import { uploadImageToProduct } from '../images/operations.ts'
import {
  redeemProtectionAuthorization,
  revokeProtectionAuthorization,
  verifyProtectedItem,
  verifySecurityTagDeactivation,
} from '../protection/authorization-operations.ts'
import { decommissionDevice, fetchDevices, registerDevice, reportDeviceHeartbeat } from '../protection/device-operations.ts'
import { fetchProtectionEvents, reportProtectionEvents } from '../protection/event-operations.ts'
import { fetchProtectedItem, registerProtectedItems, updateItemStatus } from '../protection/item-operations.ts'
import { fetchOperators, registerOperator, removeOperator } from '../protection/operator-operations.ts'
import { fetchProtectionPolicy, updateProtectionPolicy } from '../protection/policy-operations.ts'
import { generateReceiptQR, getReceiptFromToken } from '../receipts/operations.ts'
import { checkIn, completeTestCheckout, fetchPurchase, markPurchaseCancelled, startCheckout } from '../scan-and-go/operations.ts'
import { fetchStore, fetchStores } from '../stores/operations.ts'
import { fetchWebhookDeliveries, fetchWebhookEvents, redeliverWebhook, sendTestWebhook } from '../webhooks/delivery-operations.ts'
import { deleteWebhook, fetchWebhooks, getLoyaltyWebhookEvents, registerWebhook, rollWebhookSecret, updateWebhook } from '../webhooks/operations.ts'
import { assert } from '../../policy/assert.ts'
import type { Operation } from './operation.ts'

/** Every operation of the API, in the order of the documentation. A new one is one line here. */
const OPERATIONS: readonly Operation[] = [
  fetchStores,
  fetchStore,
  fetchProducts,
  fetchProduct,
  uploadImageToProduct,
  checkIn,
  startCheckout,
  completeTestCheckout,
  fetchPurchase,
  markPurchaseCancelled,
  generateReceiptQR,
  getReceiptFromToken,
  verifySecurityTagDeactivation,
  verifyProtectedItem,
  redeemProtectionAuthorization,
  revokeProtectionAuthorization,
  registerDevice,
  fetchDevices,
  decommissionDevice,
  reportDeviceHeartbeat,
  registerProtectedItems,
  fetchProtectedItem,
  updateItemStatus,
  fetchProtectionPolicy,
  updateProtectionPolicy,
  registerOperator,
  fetchOperators,
  removeOperator,
  reportProtectionEvents,
  fetchProtectionEvents,
  createEnrolmentCode,
  enrolEdgeAgent,
  agentLogin,
  fetchSignedDocuments,
  registerWebhook,
  fetchWebhooks,
  updateWebhook,
  deleteWebhook,
  rollWebhookSecret,
  sendTestWebhook,
  fetchWebhookDeliveries,
  redeliverWebhook,
  fetchWebhookEvents,
  getLoyaltyWebhookEvents,
]

export const OPERATION_TABLE: ReadonlyMap<string, Operation> = new Map(OPERATIONS.map((operation) => [operation.name, operation]))
assert(OPERATION_TABLE.size === OPERATIONS.length, 'two operations have one name')
