import type { Generated } from 'kysely'
import type { ColumnType } from 'kysely'
import type {
  AccountRow,
  AccountSettingRow,
  ApiKeyRow,
  AuditEntryRow,
  AuditHeadRow,
  IdempotencyRow,
  InstallationRow,
  OutboxEventRow,
  PositionOffsetRow,
  ProcessLeaseRow,
  RegistrationRow,
  SealRow,
  ErasureRow,
} from './tables/accounts.ts'
import type {
  AgentChallengeRow,
  AgentRow,
  AgentSessionRow,
  DeviceRow,
  EnrolmentCodeRow,
  FormerHomeRow,
  AgentFormerKeyRow,
  HomeMoveRow,
  HomeMoveWaitRow,
  OperatorRow,
  SetupCodeRow,
  StoreKeyRow,
} from './tables/agents.ts'
import type { FollowerRow, OfferFavoriteRow, StoreClosingRow, StoreDayRow, StoreDayVatRow } from './tables/analytics.ts'
import type { AssistanceMessageRow, AssistanceRequestRow, ZoneRow } from './tables/assistance.ts'
import type { SealedSecretRow, SignedDocumentRow, SigningKeyRow } from './tables/authority.ts'
import type { PickupOrderItemRow, PickupOrderLineRow, PickupOrderRow } from './tables/click-and-collect.ts'
import type { ErpRecordRow, IntegrationConnectionRow, IntegrationPullRow } from './tables/integrations.ts'
import type { LoyaltyEntryRow, LoyaltyMemberRow, LoyaltyMonthRow, LoyaltyProgramRow } from './tables/loyalty.ts'
import type { OfferGroupRow, OfferListRow, OfferPriceRow, OfferRow } from './tables/offers.ts'
import type { PaymentRow, PspConfigRow, RefundRow } from './tables/payments.ts'
import type {
  AlarmDispositionRow,
  TokenRevocationRow,
  AuthorizationUnitRow,
  DenyEntryRow,
  DelegatedRightRow,
  ItemGoneRow,
  ItemHeadRow,
  ItemRefreshRow,
  ProductRecallRow,
  ItemMoveRow,
  JournalRowRow,
  OperatorApprovalRow,
  ProtectedItemRow,
  ProtectionAuthorizationRow,
  ProtectionEventRow,
  ProtectionDecisionRow,
  ProtectionExceptionRow,
  RedemptionRow,
  UnitRightTable,
} from './tables/protection.ts'
import type { PushDeliveryRow, PushSubscriptionRow } from './tables/push.ts'
import type { PurchaseLineTable, PurchaseRow, PurchaseUnitRow, ShoppingSessionRow } from './tables/purchases.ts'
import type { ReceiptCodeRow, TillHourRow, TillReturnRow, TillRevocationRow, TillSaleRow } from './tables/tills.ts'
import type { StockLevelRow, StockReservationRow } from './tables/stock.ts'
import type {
  ProductCountRow,
  ProductPictureRow,
  ProductRow,
  ProductWordRow,
  StoreProductRow,
  ListingRefreshRow,
  StoreRow,
} from './tables/stores.ts'
import type {
  SignInFailureRow,
  UsedChallengeRow,
  UserIdentityRow,
  UserPasskeyRow,
  UserRow,
  UserSessionRow,
} from './tables/users.ts'
import type { WebhookAttemptRow, WebhookDeliveryRow, WebhookRow, WebhookSubscriptionRow } from './tables/webhooks.ts'

/** A counter with one row for each connection: the database sets `slot`, and readers add the rows up. */
interface Slotted {
  slot: Generated<number>
}

/**
 * Types of the tables (migrations/). Times are ms since 1970 (`_ms`) or seconds (`_s`, `iat`, `exp`), money is whole
 * cents, booleans are 1 and 0, JSON is text.
 */
export interface Schema {
  account: AccountRow
  account_setting: AccountSettingRow
  api_key: ApiKeyRow
  registration: RegistrationRow
  console_user: UserRow
  user_session: UserSessionRow
  user_identity: UserIdentityRow
  user_passkey: UserPasskeyRow
  used_challenge: UsedChallengeRow
  sign_in_failure: SignInFailureRow
  /** Inserts omit the columns of `SealRow`; sealing sets these columns later. */
  audit_entry: AuditEntryRow & { [K in keyof SealRow]: ColumnType<SealRow[K], never, SealRow[K]> }
  audit_head: AuditHeadRow
  idempotency: IdempotencyRow
  store: StoreRow
  product: ProductRow
  product_picture: ProductPictureRow
  store_product: StoreProductRow
  listing_refresh: ListingRefreshRow
  product_word: ProductWordRow
  product_count: ProductCountRow & Slotted
  shopping_session: ShoppingSessionRow
  purchase: PurchaseRow
  purchase_line: PurchaseLineTable
  purchase_unit: PurchaseUnitRow
  till_sale: TillSaleRow
  receipt_code: ReceiptCodeRow
  till_return: TillReturnRow
  till_revocation: TillRevocationRow
  till_hour: TillHourRow
  loyalty_program: LoyaltyProgramRow
  loyalty_member: LoyaltyMemberRow
  loyalty_entry: LoyaltyEntryRow
  loyalty_month: LoyaltyMonthRow
  pickup_order: PickupOrderRow
  pickup_order_line: PickupOrderLineRow
  pickup_order_item: PickupOrderItemRow
  stock_level: StockLevelRow
  stock_reservation: StockReservationRow
  protected_item: ProtectedItemRow
  item_head: ItemHeadRow
  item_gone: ItemGoneRow
  item_refresh: ItemRefreshRow
  product_recall: ProductRecallRow
  token_revocation: TokenRevocationRow
  alarm_disposition: AlarmDispositionRow
  item_move: ItemMoveRow
  agent: AgentRow
  enrolment_code: EnrolmentCodeRow
  setup_code: SetupCodeRow
  agent_challenge: AgentChallengeRow
  agent_session: AgentSessionRow
  device: DeviceRow
  operator: OperatorRow
  store_key: StoreKeyRow
  protection_authorization: ProtectionAuthorizationRow
  operator_approval: OperatorApprovalRow
  authorization_unit: AuthorizationUnitRow
  unit_right: UnitRightTable
  delegated_right: DelegatedRightRow
  redemption: RedemptionRow
  journal_row: JournalRowRow
  protection_event: ProtectionEventRow
  position_offset: PositionOffsetRow
  process_lease: ProcessLeaseRow
  protection_decision: ProtectionDecisionRow
  protection_exception: ProtectionExceptionRow
  deny_entry: DenyEntryRow
  former_home: FormerHomeRow
  agent_former_key: AgentFormerKeyRow
  home_move: HomeMoveRow
  home_move_wait: HomeMoveWaitRow
  signing_key: SigningKeyRow
  sealed_secret: SealedSecretRow
  erasure: ErasureRow
  signed_document: SignedDocumentRow
  installation: InstallationRow
  outbox_event: OutboxEventRow
  offer_group: OfferGroupRow
  offer: OfferRow
  offer_list: OfferListRow
  offer_price: OfferPriceRow
  psp_config: PspConfigRow
  payment: PaymentRow
  refund: RefundRow
  integration_connection: IntegrationConnectionRow
  integration_pull: IntegrationPullRow
  erp_record: ErpRecordRow
  webhook: WebhookRow
  webhook_subscription: WebhookSubscriptionRow
  webhook_delivery: WebhookDeliveryRow
  webhook_attempt: WebhookAttemptRow
  push_subscription: PushSubscriptionRow
  push_delivery: PushDeliveryRow
  store_day: StoreDayRow & Slotted
  store_day_vat: StoreDayVatRow & Slotted
  store_closing: StoreClosingRow
  follower: FollowerRow
  offer_favorite: OfferFavoriteRow
  zone: ZoneRow
  assistance_request: AssistanceRequestRow
  assistance_message: AssistanceMessageRow
}
