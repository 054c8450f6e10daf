import { fetchAccountSettings, updateAccountSettings, rotateSigningKey } from '../platform/accounts/account-settings.ts'
import { fetchAuditLog } from '../platform/accounts/audit-operations.ts'
import {
  claimRegistration,
  fetchRegistrations,
  submitStoreRegistration,
  submitStoreRegistrationRequest,
  approveStoreRegistration,
  rejectStoreRegistration,
} from '../sales/registrations/registration-operations.ts'
import { fetchAccount, fetchAccounts, fetchAccountStores } from '../sales/registrations/account-operations.ts'
import { createApiKey, fetchApiKeys, revokeApiKey, rollApiKey } from '../platform/accounts/key-operations.ts'
import { exportSalesData } from '../shop/analytics/export-operations.ts'
import { closeStoreDay, fetchAnalytics, fetchClosings, recordEngagement } from '../shop/analytics/operations.ts'
import {
  answerAssistanceRequest,
  createZone,
  fetchAssistanceRequests,
  fetchZones,
  requestAssistance,
} from '../shop/assistance/operations.ts'
import { eraseCustomerData, exportCustomerData } from '../sales/customers/operations.ts'
import { fetchSignedDocuments } from '../protection/agents/documents/fetch-documents.ts'
import { createEnrolmentCode, enrolEdgeAgent } from '../protection/agents/enrolment/enrol-operations.ts'
import { agentLogin } from '../protection/agents/login/agent-login.ts'
import { rotateAgentKey } from '../protection/agent-identity/agent-keys.ts'
import { fetchAgentConditions } from '../protection/agents/administration/agent-conditions.ts'
import { fetchAgents, resolveAgentFork, revokeAgent } from '../protection/agents/administration/agent-operations.ts'
import { bulkImportProducts } from '../shop/catalogue/upsert-products.ts'
import { importProducts } from '../shop/catalogue/import-operation.ts'
import { fetchProduct, fetchProducts, searchProducts } from '../shop/catalogue/operations.ts'
import {
  insertProduct,
  registerProductToStore,
  removeProductFromStore,
  updateProduct,
} from '../shop/catalogue/product-operations.ts'
import { uploadImageToProduct } from '../shop/images/operations.ts'
import { cloneOffer, createOffer, deleteOffer, getManagerOffers, updateOffer } from '../shop/offers/operations.ts'
import { fetchActiveOffers, fetchOffer } from '../shop/offers/read-operations.ts'
import { fetchERPRecords, pushToERP, pushToPOS } from '../sales/integrations/push-operations.ts'
import { fetchIntegrations } from '../sales/integrations/read-operations.ts'
import { syncERP, syncPOS } from '../sales/integrations/sync-operations.ts'
import { configurePSP } from '../sales/payments/configure-psp.ts'
import { getReceiptFromCode, recordReturns, recordSales, revokeTill, voidSale } from '../sales/tills/sale-operations.ts'
import { processPayment } from '../sales/payments/process-payment.ts'
import { refundPayment } from '../sales/payments/refund-payment.ts'
import {
  fetchClickCollectOrders,
  submitClickCollectOrder,
  updateClickCollectStatus,
  verifyPickupCode,
} from '../sales/click-and-collect/operations.ts'
import { getLoyaltyAnalytics } from '../shop/loyalty/analytics-operations.ts'
import { issueLoyaltyCard } from '../shop/loyalty/card-operations.ts'
import { addLoyaltyPoints, loyaltyCheckIn, redeemLoyaltyPoints } from '../shop/loyalty/points-operations.ts'
import {
  createLoyaltyProgram,
  getLoyaltyProgram,
  getLoyaltyPrograms,
  getStoreLoyaltyPrograms,
  updateLoyaltyProgram,
} from '../shop/loyalty/program-operations.ts'
import { verifyProtectedItem, verifySecurityTagDeactivation } from '../protection/authorize/authorize-operations.ts'
import { redeemProtectionAuthorization, revokeProtectionAuthorization } from '../protection/redeem/redeem-operations.ts'
import { fetchAlarms } from '../protection/records/alarm-operations.ts'
import { callHelpToAlarm } from '../protection/records/alarm-queries.ts'
import { disposeAlarm, disposeAlarms } from '../protection/records/dispose-alarm.ts'
import { acknowledgeException, fetchExceptions } from '../protection/records/exception-operations.ts'
import { updateDevice } from '../protection/devices/update-device.ts'
import {
  decommissionDevice,
  fetchDevices,
  registerDevice,
  reportDeviceHeartbeat,
} from '../protection/devices/device-operations.ts'
import { createSetupCode, registerDeviceWithCode } from '../protection/devices/setup-codes.ts'
import { moveReceiptHome } from '../protection/receipt-home/home-move.ts'
import { exportEpcisEvents } from '../sales/epcis/operations.ts'
import { reportProtectionEvents } from '../protection/agents/journal/ingest.ts'
import { fetchOfflineFigures } from '../protection/records/offline-figures.ts'
import { fetchProtectionEvents } from '../protection/records/event-operations.ts'
import { fetchProtectedItem, registerProtectedItems, updateItemStatus } from '../protection/items/item-operations.ts'
import { endRecall, fetchRecalls, recallProducts } from '../protection/recalls/recall-operations.ts'
import { reuseTags } from '../protection/items/register-item.ts'
import {
  fetchOperators,
  registerOperator,
  removeOperator,
  updateOperator,
} from '../protection/operators/operator-operations.ts'
import { fetchProtectionPolicy, updateProtectionPolicy } from '../protection/store-policy/policy-operations.ts'
import { resolveRedemption } from '../protection/redeem/resolve-redemption.ts'
import { simulateProtectionPolicy } from '../protection/store-policy/simulate-policy.ts'
import { fetchAlarmNotices, registerAlarmNotices, removeAlarmNotices } from '../shop/push/alarm-notices.ts'
import {
  fetchPushKey,
  fetchPushSubscriptions,
  registerPushSubscription,
  removePushSubscription,
} from '../shop/push/operations.ts'
import { generateReceiptQR, generateReceiptWithQR, getReceiptFromToken } from '../shop/receipts/operations.ts'
import {
  checkIn,
  completeTestCheckout,
  fetchPurchase,
  markPurchaseCancelled,
  startCheckout,
  generateCodes,
} from '../sales/checkout/operations.ts'
import { insertStore, updateStore } from '../sales/store-operations/write-stores.ts'
import { setStorePackage, simulateStorePackage } from '../sales/store-operations/store-package.ts'
import { approveCheckout } from '../sales/checkout/approval-operations.ts'
import { fetchPurchaseHistory } from '../sales/checkout/history-operations.ts'
import { fetchStock, setStock } from '../shop/stock/operations.ts'
import { fetchOpenTasks } from '../sales/store-operations/open-tasks.ts'
import { fetchStore, fetchStoreNames, fetchStores } from '../sales/store-operations/read-stores.ts'
import {
  fetchWebhookDeliveries,
  fetchWebhookEvents,
  redeliverWebhook,
  sendTestWebhook,
} from '../platform/webhooks/delivery-operations.ts'
import {
  deleteWebhook,
  fetchWebhooks,
  getLoyaltyWebhookEvents,
  registerWebhook,
  rollWebhookSecret,
  updateWebhook,
} from '../platform/webhooks/operations.ts'
import {
  changePassword,
  endSessions,
  fetchProfile,
  fetchSessions,
  signOut,
  switchMode,
  updateProfile,
} from '../platform/users/session-operations.ts'
import { beginOpenIdSignIn, finishOpenIdSignIn } from '../platform/users/openid-operations.ts'
import {
  beginSecondFactor,
  confirmSecondFactor,
  confirmSignIn,
  removeSecondFactor,
} from '../platform/users/second-factor-operations.ts'
import {
  beginPasskey,
  beginPasskeySignIn,
  fetchPasskeys,
  registerPasskey,
  removePasskey,
  signInWithPasskey,
} from '../platform/users/passkey-operations.ts'
import { acceptInvitation, signIn } from '../platform/users/sign-in-operations.ts'
import { fetchUsers, inviteUser, removeUser, updateUser } from '../platform/users/user-operations.ts'
import { assert } from '../../policy/assert.ts'
import type { Operation } from '../platform/operations/operation.ts'

/** Every operation of the API, in the order of the documentation. Add new operations here. */
export const OPERATIONS = {
  fetchStores,
  fetchStoreNames,
  fetchStore,
  insertStore,
  updateStore,
  setStorePackage,
  simulateStorePackage,
  fetchOpenTasks,
  rotateSigningKey,
  submitStoreRegistration,
  submitStoreRegistrationRequest,
  claimRegistration,
  fetchRegistrations,
  approveStoreRegistration,
  rejectStoreRegistration,
  fetchAccounts,
  fetchAccount,
  fetchAccountStores,
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
  updateOperator,
  fetchOperators,
  removeOperator,
  reportProtectionEvents,
  fetchProtectionEvents,
  fetchOfflineFigures,
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
  fetchAgentConditions,
  revokeAgent,
  resolveAgentFork,
  configurePSP,
  processPayment,
  refundPayment,
  recordSales,
  recordReturns,
  voidSale,
  revokeTill,
  getReceiptFromCode,
  syncPOS,
  pushToPOS,
  syncERP,
  fetchIntegrations,
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
