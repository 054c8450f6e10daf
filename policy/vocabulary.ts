/** The words of the specification, each list once. */

export const PROTECTION_TECHNOLOGIES = ['am', 'rf', 'uhf_rfid', 'hf_nfc', 'mechanical_lock'] as const
export type ProtectionTechnology = (typeof PROTECTION_TECHNOLOGIES)[number]

/** What the rules of a policy read of an item. */
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

/** Where a device of each type scans. */
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

/** What became of a command to an actuator: `unknown` when nobody can tell whether it moved. */
export const OUTCOMES = ['confirmed', 'failed', 'unknown'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** Why something is refused, in the order in which reasons are looked for: the first match is told. */
export const DENY_REASONS = [
  'token_invalid',
  'token_expired',
  'token_revoked',
  'device_unknown',
  'device_revoked',
  'store_mismatch',
  'clock_untrusted',
  'policy_stale',
  'device_not_capable',
  'technology_mismatch',
  'item_unknown',
  'item_not_paid',
  'already_redeemed',
  'authorization_outstanding',
  'action_not_allowed',
  'workflow_not_allowed',
  'manual_assistance_required',
  'limit_exceeded',
] as const
export type DenyReason = (typeof DENY_REASONS)[number]

/** What an authorization uses up: one right per unit and class. `verify_item_status` uses nothing. */
export const RIGHT_CLASSES = ['release', 'exit', 'fixture'] as const
export type RightClass = (typeof RIGHT_CLASSES)[number]

const CLASS_OF: Record<ProtectionAction, RightClass | null> = {
  deactivate_label: 'release',
  detach_hard_tag: 'release',
  authorize_exit: 'exit',
  suppress_alarm: 'exit',
  unlock_fixture: 'fixture',
  verify_item_status: null,
}

/** The class of right that an action uses up, or null when it uses none. */
export function rightClassOf(action: ProtectionAction): RightClass | null {
  return CLASS_OF[action]
}

/**
 * Whether an authorized action drives an output of a device: a lock, a detacher, a deactivator, a barrier or the gate's
 * release. These are the actions that use up a right. Such an action has an outcome whenever it is authorized.
 */
export function drivesOutput(action: ProtectionAction): boolean {
  return rightClassOf(action) !== null
}

/** The workflow of a device that neither its own record nor its store's names. */
export const DEFAULT_WORKFLOW: Record<DeviceType, WorkflowType> = {
  pos_deactivator: 'staff_assisted',
  handheld_reader: 'staff_assisted',
  cabinet_unlocker: 'staff_assisted',
  self_checkout_detacher: 'self_service',
  exit_gate: 'automatic_exit',
}
