import { EXCEPTION_KINDS, type ExceptionKind } from '../../../policy/vocabulary.ts'

/**
 * What mends each exception. Every kind also has steps in words (texts/exceptions.ts); a kind without them is a type
 * error there.
 *
 *   button   a button of the card does it
 *   page     it is done on another page, to which the card leads
 *   steps    a person does it in the store, or at another company
 */
type Fix =
  | { readonly by: 'button'; readonly button: FixButton }
  | { readonly by: 'page'; readonly page: FixPage }
  | { readonly by: 'steps' }

/** `tag`: record whether the tag is off. `fork`: choose the machine that continues. `revoke`: end the agent. */
type FixButton = 'tag' | 'fork' | 'revoke'

/** A page on which an exception is mended. */
export type FixPage = keyof typeof FIX_PAGES

/** Address of each page. `:name` is a field of the exception; without it there is no link. */
export const FIX_PAGES = {
  alarms: '/console/alarms',
  purchase: '/console/purchases?purchase=:purchaseId',
  device: '/console/agents/:deviceId',
  agents: '/console/agents',
  rules: '/console/rules',
  stock: '/console/stock',
  import: '/console/products/import',
  keys: '/console/keys',
  registerTag: '/console/operations/registerProtectedItems',
  itemStatus: '/console/operations/updateItemStatus',
} as const

/** How long an exception can wait. `now`: goods, people or machines are at risk. `later`: there is nothing to do. */
export type Urgency = 'now' | 'today' | 'later'

type Entry = Fix & { readonly urgency: Urgency }

const steps = (urgency: Urgency): Entry => ({ by: 'steps', urgency })
const on = (page: FixPage, urgency: Urgency): Entry => ({ by: 'page', page, urgency })
const press = (button: FixButton): Entry => ({ by: 'button', button, urgency: 'now' })

/** The fix of each kind of exception. A new kind is a type error until it has one. */
export const FIXES: Readonly<Record<ExceptionKind, Entry>> = {
  gate_alarm: on('alarms', 'now'),
  gate_bulk_alarm: on('alarms', 'now'),
  gate_replenishment: steps('later'),
  late_status: steps('later'),
  late_reads: on('device', 'today'),
  unexpected_release: on('device', 'now'),
  door_forced: steps('now'),
  door_left_open: steps('now'),
  emergency_started: steps('now'),
  emergency_ended: steps('today'),
  device_tested: on('device', 'later'),
  release_jammed: on('device', 'now'),
  event_incomplete: on('device', 'later'),
  gate_events_dropped: on('device', 'today'),
  double_redeem: on('purchase', 'today'),
  late_redeem: steps('today'),
  released_after_refund: on('purchase', 'now'),
  released_on_hold: steps('now'),
  redeemed_after_revocation: on('purchase', 'now'),
  cancelled_after_release: on('purchase', 'now'),
  item_already_paid: on('purchase', 'today'),
  sale_tag_unknown: on('registerTag', 'today'),
  sale_of_held_item: on('itemStatus', 'now'),
  item_changed: on('itemStatus', 'today'),
  sale_of_more_items: on('purchase', 'today'),
  sale_of_other_product: on('purchase', 'today'),
  sale_product_unknown: on('import', 'today'),
  sale_total_differs: steps('today'),
  sale_in_future: steps('today'),
  sale_over_limit: on('rules', 'now'),
  sale_of_revoked_till: steps('now'),
  sale_conflict: on('purchase', 'today'),
  return_unclear: on('purchase', 'today'),
  void_without_sale: steps('today'),
  released_then_voided: on('purchase', 'now'),
  till_revoked: steps('today'),
  late_payment: on('purchase', 'later'),
  payment_mismatch: on('purchase', 'today'),
  refunded_outside: on('purchase', 'today'),
  payment_disputed: on('purchase', 'today'),
  second_charge: on('purchase', 'today'),
  refund_unclear: on('purchase', 'today'),
  refund_failed: on('purchase', 'today'),
  stock_oversold: on('stock', 'today'),
  lease_overridden: on('purchase', 'today'),
  outcome_unknown: press('tag'),
  outcome_conflict: press('tag'),
  foreign_evidence: press('revoke'),
  unapplied: steps('today'),
  ledger_rollback: steps('today'),
  ledger_gap: steps('today'),
  agent_fork: press('fork'),
  key_set_ending: steps('today'),
  refused_document: steps('today'),
  agent_silent: on('agents', 'now'),
  device_not_ready: on('device', 'now'),
  policy_not_arrived: on('agents', 'today'),
  disk_low: steps('now'),
  key_set_not_renewed: steps('now'),
  api_key_ending: on('keys', 'now'),
  agent_too_old: on('agents', 'today'),
}

/** True if this version of the cloud knows the kind. */
export function isKnownKind(kind: string): kind is ExceptionKind {
  return Object.hasOwn(FIXES, kind)
}

/** Kinds of this urgency. */
export function kindsOf(urgency: Urgency): ExceptionKind[] {
  return EXCEPTION_KINDS.filter((kind) => FIXES[kind].urgency === urgency)
}
