import type { ExceptionKind } from '../../../policy/vocabulary.ts'

/**
 * Every code of the cloud's API, with the cause and what to do. The reference page shows these texts.
 * `npm run generate` writes them into docs/reference/errors.md.
 */
export interface CodeText {
  code: string
  /** What happened, and what the caller can do next. Text between backticks is code. */
  text: string
}

function codes<C extends string>(table: Readonly<Record<C, string>>): readonly CodeText[] {
  return Object.entries<string>(table).map(([code, text]) => ({ code, text }))
}

/** `reason` in error bodies: more precise than `code`. */
export const REASON_TEXTS = codes({
  admin_not_allowed: 'Administrator keys may not call this operation. Use a key of the account.',
  agent_not_allowed: 'Agents may not call this operation. Use a key of the account.',
  agent_revoked: 'The agent was revoked. Enrol another one.',
  agents_only: 'Only an enrolled agent may send batches.',
  already_paid: 'The purchase is paid. There is no payment to open.',
  already_redeemed: 'This step of the authorization is used up.',
  already_refunded: 'These lines, or all that was paid, were refunded before.',
  answer_not_understood:
    'The answer of the till or ERP system does not match its API, or is too large. `error` has the cause.',
  awaiting_approval: 'Staff must check the basket first: call `approveCheckout`.',
  balance_too_low: 'The customer has too few points. Nothing was deducted.',
  batches_only: 'Agents report events in signed rows of their journal (`batch`), not in `events`.',
  checkout_ended: 'The checkout has ended. Start a new one.',
  claimed_by_agent: 'The device belongs to an agent. Present the token there: `POST /v1/authorize`.',
  locker_mismatch:
    'The order of this pick-up code is in another locker, or in none. Go to the right locker, or ask an operator for the goods.',
  clock_untrusted:
    'The cloud’s clock jumped. The cloud signs again after 60 s without a jump; after a step back, when the lost time has passed.',
  code_blocked: 'The enrolment code was tried too often. Create a new one.',
  code_used: 'Another agent has used the enrolment code. Create a new one.',
  database_unavailable:
    'PostgreSQL does not answer. Nothing changed, or `error` reports that the change may be stored. Repeat with the same Idempotency-Key after `Retry-After`.',
  day_not_over: 'A day can be closed from ten minutes after its end.',
  delivery_pending: 'The cloud still retries this delivery. Wait until the attempts have ended.',
  device_of_another_agent:
    'Another agent of the store drives this device. Remove it from this configuration, or move it with `updateDevice` and `agentId`.',
  device_revoked: 'The device was taken out of service. Register another one.',
  disk_full: 'The disk of the cloud or of PostgreSQL is full. Changes fail until there is space; reads work.',
  earning_method_off: 'Members of this program cannot earn in this way. See `earningMethods` of the program.',
  expired: 'The unit is past its expiry date. `details` names it. Sell another piece.',
  event_gone: 'Events are stored for 30 days. This one is older.',
  idempotency_in_progress: 'The same request is running. Repeat it after `Retry-After`.',
  idempotency_key_reused: 'This key was used for another request. Use a new key.',
  illegal_move: 'The item cannot change to this status. `allowedNext` lists the possible ones.',
  illegal_order_move: 'The order cannot change to this status. `allowedNext` lists the possible ones.',
  identity_provider_unavailable:
    'The OpenID Connect provider does not answer, or refuses the settings of this cloud. Use a password, or try later.',
  images_unavailable: 'The cloud cannot store images now, or the optional package `sharp` is not installed.',
  item_in_another_store:
    'The item is registered in another of your stores. Set it to `transfer_in_transit` there, then call `registerProtectedItems` here.',
  item_mismatch:
    'The item is not of the line’s product or unit, or the items of one line differ in product or price. See `details`.',
  item_already_paid:
    'An item of the purchase was sold meanwhile, or is no longer for sale. Start a new checkout without it.',
  item_not_sellable:
    'The item is paid, returned or on hold; `details` names the tag. A tag may be used again once `updateItemStatus` made it `sellable`.',
  item_status_differs:
    'The row states another status than the item has. Leave `itemStatus` out, or call `updateItemStatus`.',
  key_bound_to_stores: 'This key is bound to stores. Use a key of the whole account.',
  key_ended: 'The key is revoked or expired. Create a new one.',
  key_taken: 'Another agent is enrolled with this key.',
  last_owner: 'This is the last owner of the account. Make another user an owner first.',
  ledger_fork: 'Two copies of the ledger of this agent exist. Decide with `resolveAgentFork`.',
  ledger_generation: 'The agent must report with the ledger generation that `error` names.',
  ledger_taken: 'Another agent uses this ledger. Start with a new ledger.',
  no_fork: 'The cloud knows of no second copy of the ledger of this agent.',
  not_awaiting_approval: 'Staff have checked the basket already, or it needs no check.',
  not_sold_at_a_till: 'Untag took the money of this purchase. Return its goods with `refundPayment`.',
  nothing_earned: 'The paid amount, less refunds, is too small for one point.',
  nothing_to_claim: 'All keys were handed out, or the live store is not approved yet.',
  offer_of_other_stores: 'The offer has branches in stores that this key may not use. Use a key for all of them.',
  code_of_several_sales: 'Several sales printed this code, so it names none. Send the `saleId`.',
  too_many_open_sales: 'The till has 20 open sales. Pay or void some.',
  too_many_waiting_returns: '10 returns wait for this sale. Send the sale first.',
  openid_connect_off:
    'This cloud has no OpenID Connect provider. Start it with `--oidc-issuer`, or sign in with a password.',
  out_of_stock: '`details` names the lines and how many pieces are left.',
  outcome_known: 'The outcome is already known and cannot be changed.',
  outcome_pending: 'The device may still report. Staff may decide five minutes after the claim.',
  package_too_low: '`requiredUpgrade` names the package that has this operation.',
  locker_in_use:
    'An order waits in this cabinet, and a `self_service` cabinet opens for any paid receipt. Hand the order over first.',
  locker_unavailable:
    'The device cannot be the locker of this order: no cabinet, out of service, `self_service`, or the locker of another order. Choose another device.',
  pickup_code_wrong: 'This is not the pick-up code of the order. Nothing changed.',
  policy_too_large:
    'Policy, devices and operators do not fit into one document for agents. Remove devices or operators, or shorten the policy.',
  price_changed: 'Prices changed; `details` names the lines. Show the shopper the new prices.',
  price_unknown:
    'The store has no price for this item, and a shopper’s app cannot set it. Register product or price, or let staff sell it.',
  product_exists: 'The store sells a product with this EAN. Call `updateProduct`.',
  program_inactive: 'The loyalty program is switched off.',
  psp_not_configured: 'The store has no payment provider. Call `configurePSP`, or use a test key.',
  psp_unavailable:
    'The payment provider did not answer or refused. Nothing was paid and the purchase is CANCELLED. Start a new checkout.',
  publishable_not_allowed: 'Publishable keys may not call this operation. Call it from your server with a secret key.',
  purchase_not_cancellable: 'The purchase has ended and cannot be cancelled.',
  passkey_exists: 'This passkey is registered already. Use it to sign in.',
  passkey_rejected:
    'The passkey does not fit the challenge, or 5 minutes have passed. Call `beginPasskey` again and create a new passkey.',
  passkeys_unavailable:
    'Browsers allow passkeys only over HTTPS with a host name, or on localhost. Set the public URL of the cloud.',
  number_ambiguous: 'Several purchases end with these characters. Send the whole number.',
  purchase_not_paid: 'The purchase is not paid, so it has no receipt.',
  purchase_not_refundable:
    'Nothing was paid, or the goods have left. For goods that left, name `lines` or an `amount`.',
  return_conflict: 'Another return has this `returnId`. Send a number of its own.',
  recall_of_other_stores: 'The recall also stops goods in stores that this key may not use. Use a key for all of them.',
  recalled: 'Goods are recalled; `details` names them. Set them aside, and sell or hand over others (`fetchRecalls`).',
  receipt_expired:
    'The receipt is older than 24 hours, and devices refuse it. Staff release the goods by `purchaseId` with their `operatorId`.',
  redemption_ambiguous: 'Several redemptions have this id. Name the `replayProtectedNonce` too.',
  alarm_disposed: 'A colleague recorded a cause meanwhile. Look at it, then send the new one with `seen`.',
  package_changed: 'Someone else changed the package meanwhile. Call `simulateStorePackage` again, then decide.',
  refund_not_in_doubt: 'The result of the refund is known. Read it with `fetchPurchase`.',
  refund_too_high: 'The amount is more than what is left of the payment.',
  registration_decided: 'The registration was approved or rejected before.',
  registration_pending: 'The registration waits for its review.',
  registration_rejected: 'The registration was rejected; `error` has the reason. Register again.',
  release_not_supported:
    'The release of the agent does not fit the cloud. Upgrade the cloud first, then its agents, one step at a time.',
  request_closed: 'A closed request for help stays closed. Open another one.',
  release_not_confirmed: 'No confirmed release of the tag is known. Release it, or call `resolveRedemption`.',
  resyncing:
    'The cloud was restored from a backup and waits for the reports of the agents, 11 minutes at most. Repeat after `Retry-After`.',
  role_too_low: 'The role of the user is too low for this operation. An owner or admin can change it.',
  scan_and_go_off: 'Scan and go is switched off. Switch it on in the settings of the store.',
  sale_conflict:
    'Another sale with other lines has this number at this till. Send the `series` (day or Z number) if numbers start again.',
  sold_since: 'The goods were sold again after this return. Return their last sale.',
  sale_version: 'The open sale has a higher version with other lines. Send a higher `version`.',
  sold_at_a_till:
    'A till took the money of this sale. Record goods that come back with `recordReturns`, or the void with `voidSale`.',
  second_factor_exists: 'The user has a second factor. Remove it first with `removeSecondFactor`.',
  second_factor_missing: 'The user has no second factor.',
  second_factor_not_begun:
    'This session has no open setup of an authenticator app. Call `beginSecondFactor`, then confirm a code within 10 minutes.',
  second_factor_needed: 'The session has no second factor. Add one if the user has none, then sign in with it.',
  secret_keys_only: 'Call this from your server, with a secret key.',
  secret_not_allowed:
    'Secret keys may not call this operation. The message names who may; `untag keys create` makes keys.',
  session_without_customer:
    'The session names no customer that the cloud can trust. Call `checkIn` with a secret key and `userId`.',
  setup_code_expired: 'The set-up code is over 15 minutes old. Create a new one.',
  setup_code_used: 'The set-up code was used already. Each code registers one device. Create a new one.',
  sign_in_failed:
    'The e-mail address, the password or the code is wrong. The answer is the same for unknown addresses.',
  several_accounts:
    'The person is a user of several accounts. Show the names in `accounts`, and call again with `account`, after `finishOpenIdSignIn` also with the new `flow`.',
  several_items: 'Several items belong to this `itemLineId`. Name one by `epc`, `tagUid` or `tagId`.',
  store_position_unknown: 'The store has no coordinates. Set them with `updateStore`.',
  sync_in_progress: 'Another synchronisation of this system and store is running. Repeat after `Retry-After`.',
  system_not_connected: 'The cloud has no credentials for this system. Send them, or synchronise first.',
  system_unavailable:
    'The till or ERP system did not answer, failed, or wants fewer requests. Records read until then are stored. Repeat after `Retry-After`.',
  test_keys_only: 'This operation exists in the sandbox only. Use a test key.',
  token_expired: 'The authorization has expired. Request a new one.',
  token_invalid: 'The authorization is for another device.',
  token_revoked: 'The authorization was revoked. Request a new one.',
  too_far: 'The customer is not at the store.',
  too_many_agents: 'The account has 5,000 agents, which is the most. Revoke agents that are not in use.',
  too_many_images: 'The pictures of the account fill its 20 GB (sandbox: 1 GB). Set `imageUrl` to pictures elsewhere.',
  too_many_keys: 'The account has too many keys. Revoke keys that are not in use.',
  too_many_messages: 'A request for help holds 50 messages. Open another one.',
  too_many_offers:
    'A store has at most 200 offers that have not ended. Put several products into one offer, or delete one.',
  too_many_tills: 'The store has 1,000 revoked tills, which is the most. Contact the operator of this cloud.',
  too_many_passkeys: 'The user has 10 passkeys, which is the most. Remove one.',
  too_many_push_subscriptions:
    'A customer or store has at most 20 push subscriptions, an account 100,000. Remove one with `removePushSubscription`.',
  too_many_refunds:
    'The purchase has 100 refunds, or refunds of 2,000 lines, which is the most. Cancel it, or refund outside of untag.',
  too_many_registrations: 'Too many registrations wait for review, or came from your network today. Try again later.',
  too_many_requests_open: 'Too many requests for help are open. Close those that are done.',
  too_many_sign_ins: 'Too many sign-ins failed. Wait until `Retry-After`.',
  too_many_stores: 'The account has the maximum number of stores.',
  too_many_users: 'The account has the maximum number of users. Remove one.',
  too_many_webhooks: 'An account has at most 100 webhooks for test data and 100 for live data. Delete one.',
  too_many_recalls: 'An account has at most 500 active recalls. End some with `endRecall`.',
  too_many_zones: 'A store has at most 500 zones.',
  too_soon: 'This is not allowed yet. Try again at `retryAt`.',
  transaction_used: 'Another customer has earned points with this transaction.',
  user_exists: 'This address belongs to a user of the account. Change it with `updateUser`.',
  user_not_allowed: 'Users may not call this operation. It is for keys, agents or callers without a key.',
  email_missing: 'The identity provider names no e-mail address. Add the claim `email` there.',
  email_not_verified: 'The identity provider has not verified the e-mail address of this person.',
  email_domain_not_listed: 'The domain of the e-mail address is not in `--oidc-domains`.',
  linked_to_other_identity:
    'The identity provider signed in another person with this address before. Remove the user and send a new invitation.',
  user_not_invited: 'No user has this address. Ask an owner or admin for an invitation.',
  version_moved: 'The policy changed meanwhile. Read it again.',
  webhook_disabled: 'The webhook is disabled. `disabledReason` in `fetchWebhooks` has the cause.',
})

/** `details[].code`: what is wrong with one field. */
export const DETAIL_TEXTS = codes({
  invalid: 'The value is not allowed; `message` states the rule.',
  missing: 'Add the field.',
  unknown_field: 'The operation has no such field. Check the spelling.',
  not_json: 'The body is not valid JSON.',
  bad_characters: 'The text contains a NUL or half of a surrogate pair, which cannot be stored. Send valid Unicode.',
  too_many_prices:
    'An offer has at most 20,000 own prices: price lists × products. Use fewer different prices, products or stores.',
  system_field: 'The system sets this field. Send it back unchanged, or leave it out.',
  repeated: 'Another record of the same call, page or file has this value already.',
  too_many: 'Too many entries; `message` names the limit.',
  too_big: 'The value is too large; `message` names the limit.',
  not_supported: 'The system does not accept this; `message` has the cause.',
  system_not_built: 'untag has no connector for this system.',
  url_refused: 'The cloud does not send to this address. Use a public HTTPS address.',
  credentials_refused: 'The till or ERP system refused the credentials; `message` has its status.',
  system_refused: 'The till or ERP system refused the request; `message` has its status.',
  unknown_product: 'The store does not sell this product.',
  product_unknown: 'No catalogue of the account has this product.',
  unit_differs: 'Lot, expiry or serial differ between field, code and tag; `message` names both. Scan the unit again.',
  upc_not_accepted:
    'The code is a UPC or another code with a leading zero. Set `acceptUpc` with `updateAccountSettings`, or send an EAN.',
  tag_unprogrammed: 'The tag contains its factory value, which many tags share. Write an EPC of its own to the tag.',
  label_missing: 'The product is sold by weight. Send the code that the scale printed.',
  label_misread: 'The check digits of the label do not fit. Scan it again.',
  password_common: 'Programs guess this password first: use several words, or a password manager.',
  password_own_name: 'The password consists of the name or address of the person: use several other words.',
  owner_of_all_stores: 'An owner has all stores: leave out `storeIds`, or choose another role.',
  name_taken: 'The name is taken in this spelling or another; `message` names both. Send a name that differs.',
  tag_number_taken:
    'The tag number is registered in another spelling, which `message` names. Send that one, or use another number.',
  weighed_item: 'Weighed goods carry no tags. Leave the tag out.',
  wrong_code: 'This is not the code of the loyalty program.',
  too_many_programs:
    'The store has the maximum number of loyalty programs, or of characters of their rewards and tiers. Change one.',
  too_many_devices: 'The store has the maximum number of devices. Remove one.',
  too_many_operators: 'The store has the maximum number of operators. Remove one.',
  too_many_units: 'The basket or order has too many units. Make two of it.',
  coupon_too_high: 'The coupons exceed the goods of one VAT rate. Lower the coupons.',
  several_sales: 'The tags were sold in several sales. Send one return for each.',
  too_many_items: 'The line names more tags than it has units.',
  tags_missing: 'The pieces of the line have different tags. Name the tags of those that came back.',
  not_an_image: 'The file is not an image that the cloud can read.',
  damaged_image: 'The image file is damaged.',
  too_many_pixels: 'The image has too many pixels. Send a smaller one.',
  needs_too_much_memory: 'Reading the file takes more memory than the cloud gives to one file. Simplify or split it.',
  takes_too_long: 'Reading the file takes over 30 s. Simplify or split it.',
  weak_key: 'The key of the agent is unsafe. The enrolment makes another one.',
  clock_wrong: 'The clock of the machine is wrong; `message` has the time. Set it and enrol again.',
  wrong_ledger: 'The batch belongs to another ledger than this agent uses.',
  gap: 'Rows are missing before this batch. The agent sends them again.',
  broken_chain: 'The hash chain of the batch does not fit the rows before it.',
})

/** `errors[].code` of rows in imports and of records in pushes to tills, and faults of uploaded product files. */
export const ROW_TEXTS = codes({
  too_many_cells: 'A CSV row has more cells than the header. Quote cells that contain the separator, such as `1,99`.',
  empty_file: 'The file is empty. Add a header and at least one product.',
  no_header: 'The first row of the first sheet must name the columns. Start with the template.',
  unknown_column: 'The header names a column that does not exist.',
  missing_column: 'The header lacks a required column.',
  repeated_column: 'The header names a column twice.',
  too_many_rows: 'A file holds at most 10,000 products. Delete empty rows.',
  too_many_columns: 'A file holds at most 100 columns.',
  too_many_texts: 'The workbook is far larger than its products. Save them in a new one.',
  too_many_parts: 'The workbook is far larger than its products. Save them in a new one.',
  too_large_unpacked: 'The workbook is far larger than its products. Save them in a new one.',
  encrypted: 'The workbook has a password. Save it as `.xlsx` without one.',
  not_a_workbook: 'The file is not a workbook. Send `.xlsx` or `.csv`.',
  not_a_spreadsheet: 'The file is not a spreadsheet. Send `.xlsx` or `.csv`.',
  damaged: 'The file is damaged. Open it in a spreadsheet program and save it again.',
  dtd: 'The workbook contains a document type definition. Save it again without one.',
  refused: 'The till or ERP system refused the record; `message` has the cause.',
  deposit_article_missing: 'The sale has a deposit. Set `depositArticle` in the credentials.',
  refund_article_missing: 'The refund is for an amount, not for goods. Set `refundArticle` in the credentials.',
  refund_not_supported: 'The system does not accept such a refund; `message` has the cause.',
  unknown_tax: 'The system has no tax of this rate. Add it there.',
  too_old: 'The system does not accept records of this age; `message` has the limit.',
  not_paid: 'The purchase is not paid, so there is no sale to push.',
  taken_back: 'More was refunded than `refunds[]` of the record shows.',
})

/**
 * `reason` of a denial: of `verifyProtectedItem`, `verifySecurityTagDeactivation`, the agent's `POST /v1/authorize`
 * and denial events, in the order of the checks.
 */
export const DENIAL_TEXTS = codes({
  token_invalid: 'The token is forged, damaged or for another device. Show it again; then call staff.',
  token_expired: 'The token or receipt has expired. Request a new one.',
  token_revoked: 'It was revoked. Request a new one. Goods of a cancelled or returned purchase stay.',
  device_unknown: 'The device is not registered in this store. Call `registerDevice`.',
  device_revoked: 'The device is out of service. Call `updateDevice`.',
  store_mismatch: 'Device, receipt and purchase belong to different stores. Go to the right store.',
  locker_mismatch:
    'The order of this pick-up code is in another locker, or in none. Go to the right locker, or ask an operator for the goods.',
  clock_untrusted:
    'The agent does not know the time. Connect it; until then operators release at `staff_assisted` devices.',
  policy_stale:
    'The policy is missing or over 80 hours old, or the key set has ended. Connect the agent; meanwhile operators release at `staff_assisted` devices.',
  device_not_capable: 'The device cannot do this action. Use another device.',
  technology_mismatch: 'The device cannot read or release this kind of tag. Use another device.',
  item_unknown:
    'The item is not registered here. Call `registerProtectedItems`; offline, show the receipt at a device that reads no tags.',
  recalled:
    'A recall stops the item, whatever its status is. It must stay: set it aside, and see `fetchRecalls` for the reason.',
  item_not_paid: 'The item is not paid, or its `itemStatus` keeps it here. Pay first, or end the hold.',
  no_tagged_goods: 'The purchase has no tagged goods, or `securityTagMode` is `none`. There is nothing to release.',
  already_redeemed:
    'The right is used up: each tag is released once. If it is still on, staff remove it by hand. Operators open fixtures again.',
  authorization_outstanding:
    'Another device holds the right, or this device is moving to another agent. Wait `retryAfter` seconds. Staff may use their `operatorId` instead.',
  action_not_allowed: 'The policy forbids this action, also for staff. Change it with `updateProtectionPolicy`.',
  workflow_not_allowed:
    'The policy allows this only in another workflow. `untag policy explain` shows which rule applies.',
  manual_assistance_required:
    'The policy requires staff, or the agent is offline and got no receipt. Sign in an operator; if that fails, connect the agent.',
  limit_exceeded:
    'Receipts while isolated, approvals of this operator, or requests to the receipt home. Sign in an operator or another one, or connect the agent.',
  tag_not_read: 'The device can read the tag, but did not. Hold the goods to it, then send `epc` or `tagUid`.',
})

/** `reason` of `protection.exception.raised`. Each reason means that a person must look at the matter. */
export const EXCEPTION_TEXTS = codes<ExceptionKind>({
  gate_alarm: 'An unpaid tag left. `detail` starts with severity and cause. Record the cause with `disposeAlarm`.',
  gate_bulk_alarm: 'Many unpaid items left together. Each has its own `gate_alarm`.',
  gate_replenishment: 'Many tags passed at once, so staff are probably moving goods. The siren is silent for a while.',
  late_status: 'The alarm was needless: the item was paid, or a receipt covers it.',
  late_reads: 'A reader reported tags too late to alarm. Check its network.',
  unexpected_release:
    'A release contact moved without a command, or twice for one. A second tag was pulled off, or a key was used.',
  door_forced: 'The door of a cabinet was opened without a release. The station shows it until the door is shut.',
  door_left_open: 'The door of a cabinet stayed open too long.',
  emergency_started: 'An emergency input became active. One event for each device that opened, and one for the input.',
  emergency_ended:
    'The emergency input cleared. One event for each device that opened, and one for the input; one exception counts those of an agent.',
  device_tested:
    'A technician tested the release of a new device, or walked a tag through a gate. Nothing was sold. Check who was at the device.',
  release_jammed: 'The contact was closed before the release, or did not move after it. Check the lock.',
  event_incomplete: 'A device reported more than its event can hold. `detail` names what is missing. Check the device.',
  gate_events_dropped:
    'A gate reported more than 600 events, or 100 of tags that are not registered, in a minute. Its alarms still worked.',
  double_redeem: 'One unit was released twice, by agents that could not reach each other.',
  late_redeem: 'A receipt was honoured after it had expired.',
  released_after_refund:
    'A unit was released whose line was refunded or whose item came back. The item is on hold: find it, or the money is lost.',
  released_on_hold:
    'A unit was released on hold, recalled, reserved or in transit; the agent could not know it yet. Find the goods.',
  redeemed_after_revocation: 'A revoked token, or the receipt of a cancelled purchase, was used afterwards.',
  cancelled_after_release: 'A purchase was cancelled, but its goods had been released. The items are on hold.',
  item_already_paid: 'One item was sold twice.',
  sale_tag_unknown: 'A till sold a tag that is not registered in this store. Register it, or check the till.',
  sale_of_held_item:
    'A till sold goods that are on hold, recalled, reserved or returned. Their tag still alarms: find them.',
  item_changed:
    'An agent reported a sale late, and the goods came back or moved in the cloud since. Their tag keeps its status: check the goods.',
  sale_of_more_items: 'A line of a till names the tags of more pieces than it sells. Check the goods and the till.',
  sale_of_other_product: 'A till sold a tag as another product. Check for swapped labels.',
  sale_product_unknown:
    'A till sold a product that the catalogue lacks. Import it, so that its labels can be released.',
  sale_total_differs: 'The lines of a till’s sale do not add up to its total. Check the connection of the till.',
  sale_in_future: 'The clock of a till is ahead. Set it.',
  sale_over_limit:
    'A till sold more in an hour than the policy allows (`tillSales`). Further sales release nothing. Raise the limit, or call `revokeTill`.',
  sale_of_revoked_till: 'A revoked till still reports sales. They release nothing.',
  sale_conflict:
    'Two agents or tills recorded different sales with one number. The first one counts. Compare their receipts.',
  return_unclear: 'A return arrived before its sale and does not fit it, or its sale never came. Check the receipt.',
  void_without_sale: 'A till voided a sale that never arrived. Check whether its agent still has sales to send.',
  released_then_voided: 'A till voided a sale whose goods had been released. The items are on hold: find them.',
  till_revoked: 'Sales of a revoked till are on hold. Check the goods that it sold.',
  late_payment: 'A payment arrived after its purchase had ended. The cloud refunds it.',
  payment_mismatch:
    'A provider received another amount or currency than requested. Check the provider and refund there.',
  refunded_outside:
    'A refund was made at the provider, and is booked. If goods came back, name them in `refundPayment`.',
  payment_disputed:
    'A customer disputes a payment. Answer at the provider. Money that was taken is booked until you win.',
  second_charge: 'A customer paid twice. Refund the second payment at the provider; `detail` has its reference.',
  refund_unclear:
    'Money was paid back at the provider and cannot be booked; `detail` says why. Compare both before you refund.',
  refund_failed: 'A refund failed. Fix the cause, then repeat `refundPayment` or `markPurchaseCancelled`.',
  stock_oversold: 'A checkout was paid after its stock reservation had ended, and others had reserved the last pieces.',
  lease_overridden:
    'An operator released goods while an offline agent holds a token for them. Check whether the goods left there too.',
  outcome_unknown: 'The outcome of a release is unknown. Check whether the tag is off.',
  outcome_conflict:
    'Two reports about one release contradict each other. Check the tag. The cloud treats the right as used.',
  foreign_evidence:
    'An agent reported something that only another agent may report. It has no effect. Find out what runs with its key, and revoke the agent.',
  unapplied: 'An agent reported something that the cloud does not know. The row is stored. An upgrade may apply it.',
  ledger_rollback:
    'The ledger of an agent was restored from a copy. It repairs itself, and releases nothing alone for 11 minutes. Ask who did it.',
  ledger_gap:
    'The cloud lacks rows that the agent has already deleted. The cloud does not know which releases they contain.',
  agent_fork: 'Two copies of one agent are running. Each claim needs the cloud until `resolveAgentFork`.',
  key_set_ending:
    'The key set of an agent ends in less than 30 days. Check that the agent reaches the cloud, and that the cloud has `root.json`.',
  refused_document:
    'An agent refused a document, or lacks denials. `forged acknowledgement` in the detail means that a freshness key was stolen.',
  agent_silent:
    'An agent has not contacted the cloud for some minutes. Check its power and network. It decides offline.',
  device_not_ready:
    'A device has not worked for some minutes. Read its state in `detail`, and check its power and cable.',
  policy_not_arrived: 'An agent still uses an old policy. Check its log for a refused policy.',
  disk_low:
    'The disk of the cloud is almost full. Free space, or enlarge the disk: a cloud with a full disk answers 503.',
  key_set_not_renewed:
    'The key set of the agents ends in less than 30 days. Check the clock of the cloud and `root.json`.',
  api_key_ending:
    'A program still uses an API key that ends within 12 hours. Give the program the new key of `rollApiKey`.',
  agent_too_old:
    'An agent is too old for the policy (`minAgent`) and keeps the former one. Upgrade the agent, or lower `minAgent`.',
})
