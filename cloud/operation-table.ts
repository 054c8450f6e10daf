import { fetchAccountSettings, updateAccountSettings } from './accounts/account-settings.ts'
import { fetchAuditLog } from './accounts/audit-operations.ts'
import { claimRegistration } from './registrations/claim.ts'
import { createApiKey, fetchApiKeys, revokeApiKey, rollApiKey } from './accounts/key-operations.ts'
import {
  fetchRegistrations,
  submitStoreRegistration,
  submitStoreRegistrationRequest,
} from './registrations/registration-operations.ts'
import { approveStoreRegistration, rejectStoreRegistration } from './registrations/review.ts'
import { exportSalesData } from './analytics/export-operations.ts'
import { closeStoreDay, fetchAnalytics, fetchClosings, recordEngagement } from './analytics/operations.ts'
import {
  answerAssistanceRequest,
  createZone,
  fetchAssistanceRequests,
  fetchZones,
  requestAssistance,
} from './assistance/operations.ts'
import { eraseCustomerData, exportCustomerData } from './customers/operations.ts'
import { fetchSignedDocuments } from './agents/documents/fetch-documents.ts'
import { createEnrolmentCode, enrolEdgeAgent } from './agents/enrolment/enrol-operations.ts'
import { agentLogin } from './agents/login/agent-login.ts'
import { rotateSigningKey } from './accounts/rotate-signing-key.ts'
import { rotateAgentKey } from './agent-identity/rotate-agent-key.ts'
import { fetchAgents, resolveAgentFork, revokeAgent } from './agents/administration/agent-operations.ts'
import { bulkImportProducts } from './catalogue/bulk-operations.ts'
import { importProducts } from './catalogue/import-operation.ts'
import { fetchProduct, fetchProducts, searchProducts } from './catalogue/operations.ts'
import {
  insertProduct,
  registerProductToStore,
  removeProductFromStore,
  updateProduct,
} from './catalogue/product-operations.ts'
import { uploadImageToProduct } from './images/operations.ts'
import { cloneOffer, createOffer, deleteOffer, getManagerOffers, updateOffer } from './offers/operations.ts'
import { fetchActiveOffers, fetchOffer } from './offers/read-operations.ts'
import { fetchERPRecords } from './integrations/fetch-erp-records.ts'
import { pushToERP, pushToPOS } from './integrations/push-operations.ts'
import { syncERP, syncPOS } from './integrations/sync-operations.ts'
import { configurePSP } from './payments/configure-psp.ts'
import { processPayment } from './payments/process-payment.ts'
import { refundPayment } from './payments/refund-payment.ts'
import {
  fetchClickCollectOrders,
  submitClickCollectOrder,
  updateClickCollectStatus,
  verifyPickupCode,
} from './click-and-collect/operations.ts'
import { getLoyaltyAnalytics } from './loyalty/analytics-operations.ts'
import { issueLoyaltyCard } from './loyalty/card-operations.ts'
import { addLoyaltyPoints, loyaltyCheckIn, redeemLoyaltyPoints } from './loyalty/points-operations.ts'
import {
  createLoyaltyProgram,
  getLoyaltyProgram,
  getLoyaltyPrograms,
  getStoreLoyaltyPrograms,
  updateLoyaltyProgram,
} from './loyalty/program-operations.ts'
import { verifyProtectedItem, verifySecurityTagDeactivation } from './protection/authorize/authorize-operations.ts'
import { redeemProtectionAuthorization, revokeProtectionAuthorization } from './protection/redeem/redeem-operations.ts'
import { fetchAlarms } from './protection/records/alarm-operations.ts'
import { callHelpToAlarm } from './protection/records/call-help.ts'
import { disposeAlarm } from './protection/records/dispose-alarm.ts'
import { disposeAlarms } from './protection/records/dispose-alarms.ts'
import { acknowledgeException, fetchExceptions } from './protection/records/exception-operations.ts'
import { updateDevice } from './protection/devices/update-device.ts'
import {
  decommissionDevice,
  fetchDevices,
  registerDevice,
  reportDeviceHeartbeat,
} from './protection/devices/device-operations.ts'
import { createSetupCode, registerDeviceWithCode } from './protection/devices/setup-codes.ts'
import { moveReceiptHome } from './protection/receipt-home/move-receipt-home.ts'
import { exportEpcisEvents } from './epcis/operations.ts'
import { reportProtectionEvents } from './agents/journal/report-events.ts'
import { fetchProtectionEvents } from './protection/records/event-operations.ts'
import { fetchProtectedItem, registerProtectedItems, updateItemStatus } from './protection/items/item-operations.ts'
import { endRecall, fetchRecalls, recallProducts } from './protection/recalls/recall-operations.ts'
import { reuseTags } from './protection/items/reuse-tags.ts'
import { fetchOperators, registerOperator, removeOperator } from './protection/operators/operator-operations.ts'
import { fetchProtectionPolicy, updateProtectionPolicy } from './protection/policy/policy-operations.ts'
import { resolveRedemption } from './protection/redeem/resolve-redemption.ts'
import { simulateProtectionPolicy } from './protection/policy/simulate-policy.ts'
import { fetchAlarmNotices, registerAlarmNotices, removeAlarmNotices } from './push/alarm-notice-operations.ts'
import {
  fetchPushKey,
  fetchPushSubscriptions,
  registerPushSubscription,
  removePushSubscription,
} from './push/operations.ts'
import { generateReceiptQR, generateReceiptWithQR, getReceiptFromToken } from './receipts/operations.ts'
import {
  checkIn,
  completeTestCheckout,
  fetchPurchase,
  markPurchaseCancelled,
  startCheckout,
} from './scan-and-go/operations.ts'
import { insertStore } from './store-operations/insert-store.ts'
import { approveCheckout } from './scan-and-go/approval-operations.ts'
import { generateCodes } from './scan-and-go/code-operations.ts'
import { fetchPurchaseHistory } from './scan-and-go/history-operations.ts'
import { fetchStock, setStock } from './stock/operations.ts'
import { fetchOpenTasks } from './store-operations/open-tasks.ts'
import { fetchStore, fetchStores } from './store-operations/read-stores.ts'
import { setStorePackage } from './store-operations/set-store-package.ts'
import { updateStore } from './store-operations/update-store.ts'
import {
  fetchWebhookDeliveries,
  fetchWebhookEvents,
  redeliverWebhook,
  sendTestWebhook,
} from './webhooks/delivery-operations.ts'
import {
  deleteWebhook,
  fetchWebhooks,
  getLoyaltyWebhookEvents,
  registerWebhook,
  rollWebhookSecret,
  updateWebhook,
} from './webhooks/operations.ts'
import {
  changePassword,
  endSessions,
  fetchProfile,
  fetchSessions,
  signOut,
  switchMode,
  updateProfile,
} from './users/session-operations.ts'
import { beginOpenIdSignIn, finishOpenIdSignIn } from './users/openid-operations.ts'
import {
  beginSecondFactor,
  confirmSecondFactor,
  confirmSignIn,
  removeSecondFactor,
} from './users/second-factor-operations.ts'
import {
  beginPasskey,
  beginPasskeySignIn,
  fetchPasskeys,
  registerPasskey,
  removePasskey,
  signInWithPasskey,
} from './users/passkey-operations.ts'
import { acceptInvitation, signIn } from './users/sign-in-operations.ts'
import { fetchUsers, inviteUser, removeUser, updateUser } from './users/user-operations.ts'
import { assert } from '../policy/assert.ts'
import type { Operation } from './operations/operation.ts'

/** Every operation of the API, in the order of the documentation. Add new operations here. */
export const OPERATIONS = {
  fetchStores,
  fetchStore,
  insertStore,
  updateStore,
  setStorePackage,
  fetchOpenTasks,
  rotateSigningKey,
  submitStoreRegistration,
  submitStoreRegistrationRequest,
  claimRegistration,
  fetchRegistrations,
  approveStoreRegistration,
  rejectStoreRegistration,
  createApiKey,
  fetchApiKeys,
  rollApiKey,
  revokeApiKey,
  fetchAuditLog,
  fetchAccountSettings,
  updateAccountSettings,
  inviteUser,
  acceptInvitation,
  fetchUsers,
  updateUser,
  removeUser,
  signIn,
  signOut,
  fetchSessions,
  endSessions,
  fetchProfile,
  updateProfile,
  changePassword,
  beginOpenIdSignIn,
  finishOpenIdSignIn,
  beginSecondFactor,
  confirmSecondFactor,
  removeSecondFactor,
  confirmSignIn,
  beginPasskey,
  registerPasskey,
  fetchPasskeys,
  removePasskey,
  beginPasskeySignIn,
  signInWithPasskey,
  switchMode,
  fetchProducts,
  fetchProduct,
  searchProducts,
  insertProduct,
  updateProduct,
  registerProductToStore,
  removeProductFromStore,
  bulkImportProducts,
  importProducts,
  uploadImageToProduct,
  createOffer,
  updateOffer,
  deleteOffer,
  getManagerOffers,
  fetchOffer,
  fetchActiveOffers,
  cloneOffer,
  setStock,
  fetchStock,
  fetchPushKey,
  registerPushSubscription,
  fetchPushSubscriptions,
  removePushSubscription,
  submitClickCollectOrder,
  updateClickCollectStatus,
  verifyPickupCode,
  fetchClickCollectOrders,
  createLoyaltyProgram,
  updateLoyaltyProgram,
  getLoyaltyProgram,
  getStoreLoyaltyPrograms,
  getLoyaltyPrograms,
  getLoyaltyAnalytics,
  addLoyaltyPoints,
  redeemLoyaltyPoints,
  loyaltyCheckIn,
  issueLoyaltyCard,
  checkIn,
  startCheckout,
  completeTestCheckout,
  approveCheckout,
  fetchPurchase,
  fetchPurchaseHistory,
  markPurchaseCancelled,
  generateCodes,
  generateReceiptQR,
  generateReceiptWithQR,
  getReceiptFromToken,
  verifySecurityTagDeactivation,
  verifyProtectedItem,
  redeemProtectionAuthorization,
  revokeProtectionAuthorization,
  resolveRedemption,
  registerDevice,
  fetchDevices,
  updateDevice,
  decommissionDevice,
  reportDeviceHeartbeat,
  registerProtectedItems,
  reuseTags,
  recallProducts,
  endRecall,
  fetchRecalls,
  fetchProtectedItem,
  updateItemStatus,
  fetchProtectionPolicy,
  updateProtectionPolicy,
  moveReceiptHome,
  simulateProtectionPolicy,
  registerOperator,
  fetchOperators,
  removeOperator,
  reportProtectionEvents,
  fetchProtectionEvents,
  fetchExceptions,
  acknowledgeException,
  fetchAlarms,
  disposeAlarm,
  disposeAlarms,
  fetchAlarmNotices,
  registerAlarmNotices,
  removeAlarmNotices,
  exportEpcisEvents,
  createEnrolmentCode,
  createSetupCode,
  registerDeviceWithCode,
  enrolEdgeAgent,
  agentLogin,
  fetchSignedDocuments,
  rotateAgentKey,
  fetchAgents,
  revokeAgent,
  resolveAgentFork,
  configurePSP,
  processPayment,
  refundPayment,
  syncPOS,
  pushToPOS,
  syncERP,
  pushToERP,
  fetchERPRecords,
  registerWebhook,
  fetchWebhooks,
  updateWebhook,
  rollWebhookSecret,
  sendTestWebhook,
  fetchWebhookDeliveries,
  redeliverWebhook,
  fetchWebhookEvents,
  deleteWebhook,
  getLoyaltyWebhookEvents,
  fetchAnalytics,
  recordEngagement,
  exportSalesData,
  closeStoreDay,
  fetchClosings,
  createZone,
  fetchZones,
  requestAssistance,
  fetchAssistanceRequests,
  answerAssistanceRequest,
  callHelpToAlarm,
  exportCustomerData,
  eraseCustomerData,
}
export type Operations = typeof OPERATIONS

export const OPERATION_TABLE: ReadonlyMap<string, Operation> = new Map(Object.entries(OPERATIONS))
for (const [name, { name: declared }] of OPERATION_TABLE)
  assert(name === declared, `${name} is declared as ${declared}`)
