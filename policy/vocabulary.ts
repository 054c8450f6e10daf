/** Enumerations of the specification. */

export const PROTECTION_TECHNOLOGIES = ['am', 'rf', 'uhf_rfid', 'hf_nfc', 'mechanical_lock'] as const
export type ProtectionTechnology = (typeof PROTECTION_TECHNOLOGIES)[number]

/** Item facts that policy rules need. */
export const ITEM_FACT_NAMES = ['category', 'brand', 'price'] as const
export type ItemFactName = (typeof ITEM_FACT_NAMES)[number]

export const DEVICE_TYPES = [
  'pos_deactivator',
  'self_checkout_detacher',
  'exit_gate',
  'handheld_reader',
  'cabinet_unlocker',
] as const
export type DeviceType = (typeof DEVICE_TYPES)[number]

export const WORKFLOW_TYPES = ['staff_assisted', 'self_service', 'automatic_exit', 'pos_integrated'] as const
export type WorkflowType = (typeof WORKFLOW_TYPES)[number]

export const PROTECTION_ACTIONS = [
  'deactivate_label',
  'detach_hard_tag',
  'suppress_alarm',
  'authorize_exit',
  'unlock_fixture',
  'verify_item_status',
] as const
export type ProtectionAction = (typeof PROTECTION_ACTIONS)[number]

export const ITEM_STATUSES = [
  'sellable',
  'paid',
  'reserved_bopis',
  'picked_up',
  'returned',
  'transfer_in_transit',
  'cancelled',
  'exception_hold',
] as const
export type ItemStatus = (typeof ITEM_STATUSES)[number]

export const SCAN_SOURCES = ['pos', 'sco', 'exit_gate', 'associate_handheld', 'customer_phone', 'service_desk'] as const
export type ScanSource = (typeof SCAN_SOURCES)[number]

/** `scanSource` of each device type. */
export const SCAN_SOURCE_OF: Readonly<Record<DeviceType, ScanSource>> = {
  pos_deactivator: 'pos',
  self_checkout_detacher: 'sco',
  exit_gate: 'exit_gate',
  handheld_reader: 'associate_handheld',
  cabinet_unlocker: 'pos',
}

export const TAG_TECHNOLOGIES = ['NfcA', 'NfcB', 'NfcV', 'IsoDep', 'MifareClassic', 'MifareUltralight'] as const
export type TagTechnology = (typeof TAG_TECHNOLOGIES)[number]

export const SECURITY_TAG_MODES = ['none', 'manual', 'station', 'rfid'] as const
export type SecurityTagMode = (typeof SECURITY_TAG_MODES)[number]

export const AUTHORIZATION_STATES = ['issued', 'redeemed', 'expired', 'revoked'] as const
export type AuthorizationState = (typeof AUTHORIZATION_STATES)[number]

/**
 * What a person found out about a gate alarm. `real`: theft. `unintentional`: the shopper forgot to pay. `tag_left_on`:
 * the goods are paid, but the tag is still active. `staff_error`: staff carried goods out. `phantom`: no goods left.
 */
export const ALARM_DISPOSITIONS = ['real', 'unintentional', 'tag_left_on', 'staff_error', 'phantom'] as const
export type AlarmDisposition = (typeof ALARM_DISPOSITIONS)[number]

/** What an operator does about an alarm at a gate: take care of it, or end it with a disposition. */
export const ALARM_STEPS = ['acknowledged', ...ALARM_DISPOSITIONS] as const
export type AlarmStep = (typeof ALARM_STEPS)[number]

/** Outcome of a command to a device. `unknown`: nothing shows whether the device moved. */
export const OUTCOMES = ['confirmed', 'failed', 'unknown'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** Reasons of a denial, in the order of the checks. The first failed check is reported. */
export const DENY_REASONS = [
  'token_invalid',
  'token_expired',
  'token_revoked',
  'device_unknown',
  'device_revoked',
  'store_mismatch',
  'locker_mismatch',
  'clock_untrusted',
  'policy_stale',
  'device_not_capable',
  'technology_mismatch',
  'item_unknown',
  'recalled',
  'item_not_paid',
  'no_tagged_goods',
  'already_redeemed',
  'authorization_outstanding',
  'action_not_allowed',
  'workflow_not_allowed',
  'manual_assistance_required',
  'limit_exceeded',
  'tag_not_read',
] as const
export type DenyReason = (typeof DENY_REASONS)[number]

/** Right classes: a unit has one right of each class. `verify_item_status` uses none. */
export const RIGHT_CLASSES = ['release', 'exit', 'open'] as const
export type RightClass = (typeof RIGHT_CLASSES)[number]

const CLASS_OF: Record<ProtectionAction, RightClass | null> = {
  deactivate_label: 'release',
  detach_hard_tag: 'release',
  authorize_exit: 'exit',
  suppress_alarm: 'exit',
  unlock_fixture: 'open',
  verify_item_status: null,
}

/** Right class that an action uses, or null. Opening a fixture uses it only for paid goods, see `rightUsedFor`. */
export function rightClassOf(action: ProtectionAction): RightClass | null {
  return CLASS_OF[action]
}

/**
 * True if an authorized action drives an output: a lock, detacher, deactivator, barrier or the release of a gate.
 * Exactly these actions use a right and have an outcome.
 */
export function drivesOutput(action: ProtectionAction): boolean {
  return rightClassOf(action) !== null
}

/** Default workflow of each device type. A device or its store may set another workflow. */
export const DEFAULT_WORKFLOW: Record<DeviceType, WorkflowType> = {
  pos_deactivator: 'staff_assisted',
  handheld_reader: 'staff_assisted',
  cabinet_unlocker: 'staff_assisted',
  self_checkout_detacher: 'self_service',
  exit_gate: 'automatic_exit',
}

/** Kinds of exceptions: what `reason` of `protection.exception.raised` may be. Older and newer agents may report others. */
export const EXCEPTION_KINDS = [
  'gate_alarm',
  'gate_bulk_alarm',
  'gate_replenishment',
  'late_status',
  'late_reads',
  'unexpected_release',
  'door_forced',
  'door_left_open',
  'emergency_started',
  'emergency_ended',
  'device_tested',
  'release_jammed',
  'event_incomplete',
  'gate_events_dropped',
  'double_redeem',
  'late_redeem',
  'released_after_refund',
  'released_on_hold',
  'redeemed_after_revocation',
  'cancelled_after_release',
  'item_already_paid',
  'sale_tag_unknown',
  'sale_of_held_item',
  'item_changed',
  'sale_of_more_items',
  'sale_of_other_product',
  'sale_product_unknown',
  'sale_total_differs',
  'sale_in_future',
  'sale_over_limit',
  'sale_of_revoked_till',
  'sale_conflict',
  'return_unclear',
  'void_without_sale',
  'released_then_voided',
  'till_revoked',
  'late_payment',
  'payment_mismatch',
  'refunded_outside',
  'payment_disputed',
  'second_charge',
  'refund_unclear',
  'refund_failed',
  'stock_oversold',
  'lease_overridden',
  'outcome_unknown',
  'outcome_conflict',
  'foreign_evidence',
  'unapplied',
  'ledger_rollback',
  'ledger_gap',
  'agent_fork',
  'key_set_ending',
  'refused_document',
  'agent_silent',
  'device_not_ready',
  'policy_not_arrived',
  'disk_low',
  'key_set_not_renewed',
  'api_key_ending',
  'agent_too_old',
] as const
export type ExceptionKind = (typeof EXCEPTION_KINDS)[number]

/** Reasons of `protection.exception.raised` that are alarms of a gate. */
export const GATE_ALARMS: ReadonlySet<string> = new Set(['gate_alarm', 'gate_bulk_alarm'])
