import { z } from 'zod'
import { DEFAULT_WORKFLOW, DEVICE_TYPES, PROTECTION_TECHNOLOGIES, WORKFLOW_TYPES } from './vocabulary.ts'
import type { DeviceType, ProtectionAction, ProtectionTechnology, WorkflowType } from './vocabulary.ts'
import type { IdentifierKind } from './item-identifiers.ts'

/** Capabilities of a device, with the field names of the specification. */
export const DeviceCapabilities = z.strictObject({
  canDeactivateLabel: z.boolean(),
  canDetachHardTag: z.boolean(),
  canReadReceiptQr: z.boolean(),
  canReadUhfRfid: z.boolean(),
  canReadHfNfc: z.boolean(),
  canUnlockFixture: z.boolean(),
  supportsOfflineAuth: z
    .boolean()
    .describe(
      'Without an agent: the device claims tokens in its own memory while it is offline. Default false: it redeems each token at the cloud first.',
    ),
})
export type DeviceCapabilities = z.infer<typeof DeviceCapabilities>

/** Facts about a device: input of the decision rules, and part of the signed policy. */
export const DeviceFacts = z.strictObject({
  deviceId: z.string(),
  storeId: z.string(),
  deviceType: z.enum(DEVICE_TYPES),
  /** Result of `resolveWorkflow`. */
  workflowType: z.enum(WORKFLOW_TYPES),
  capabilities: DeviceCapabilities,
  supportedTechnologies: z.array(z.enum(PROTECTION_TECHNOLOGIES)),
  agentId: z.string().nullable(),
  /** The till beside it: only its sales release here (ADR till-sales). Absent: all. */
  tillId: z.string().optional(),
  revoked: z.boolean(),
})
export type DeviceFacts = z.infer<typeof DeviceFacts>

const NO_CAPABILITIES: DeviceCapabilities = {
  canDeactivateLabel: false,
  canDetachHardTag: false,
  canReadReceiptQr: false,
  canReadUhfRfid: false,
  canReadHfNfc: false,
  canUnlockFixture: false,
  supportsOfflineAuth: false,
}

/** Defaults for a registration that omits capabilities or technologies. */
const TYPE_DEFAULTS: Record<DeviceType, { capabilities: DeviceCapabilities; technologies: ProtectionTechnology[] }> = {
  pos_deactivator: {
    capabilities: { ...NO_CAPABILITIES, canDeactivateLabel: true, canReadReceiptQr: true },
    technologies: ['am', 'rf'],
  },
  self_checkout_detacher: {
    capabilities: { ...NO_CAPABILITIES, canDetachHardTag: true, canReadUhfRfid: true, canReadHfNfc: true },
    technologies: ['am', 'rf', 'uhf_rfid', 'hf_nfc', 'mechanical_lock'],
  },
  exit_gate: {
    capabilities: { ...NO_CAPABILITIES, canReadReceiptQr: true, canReadUhfRfid: true },
    technologies: ['uhf_rfid'],
  },
  handheld_reader: {
    capabilities: { ...NO_CAPABILITIES, canReadReceiptQr: true, canReadUhfRfid: true, canReadHfNfc: true },
    technologies: ['uhf_rfid', 'hf_nfc'],
  },
  cabinet_unlocker: { capabilities: { ...NO_CAPABILITIES, canUnlockFixture: true }, technologies: ['mechanical_lock'] },
}

interface Abilities {
  capabilities: DeviceCapabilities
  supportedTechnologies: ProtectionTechnology[]
}

/** Abilities in a request. An undefined ability stays unchanged. */
type StatedAbilities = { [K in keyof DeviceCapabilities]?: boolean | undefined } & {
  supportedTechnologies?: ProtectionTechnology[] | undefined
}

/** Completes a registration with the defaults of the device type. */
export function completeCapabilities(deviceType: DeviceType, stated: StatedAbilities): Abilities {
  const { capabilities, technologies } = TYPE_DEFAULTS[deviceType]
  return changeCapabilities({ capabilities, supportedTechnologies: technologies }, stated)
}

/**
 * Applies the abilities of a request. The technologies of a request also set the capabilities to read them. If a
 * request names no technologies, `canReadUhfRfid` and `canReadHfNfc` add or remove their technology.
 */
export function changeCapabilities(
  current: Abilities,
  { supportedTechnologies: technologies, ...booleans }: StatedAbilities,
): Abilities {
  const capabilities = { ...current.capabilities }
  if (technologies) {
    capabilities.canReadUhfRfid = technologies.includes('uhf_rfid')
    capabilities.canReadHfNfc = technologies.includes('hf_nfc')
  }
  for (const [name, value] of Object.entries(booleans)) {
    if (value !== undefined) capabilities[name as keyof DeviceCapabilities] = value
  }
  if (technologies) return { capabilities, supportedTechnologies: [...new Set(technologies)] }
  const readable = { uhf_rfid: booleans.canReadUhfRfid, hf_nfc: booleans.canReadHfNfc }
  const supported = new Set(current.supportedTechnologies)
  for (const [technology, can] of Object.entries(readable) as ['uhf_rfid' | 'hf_nfc', boolean | undefined][]) {
    if (can === true) supported.add(technology)
    if (can === false) supported.delete(technology)
  }
  return { capabilities, supportedTechnologies: [...supported] }
}

/** Workflow of the device, else of its store, else of its type. */
export function resolveWorkflow(
  deviceType: DeviceType,
  own?: WorkflowType | null,
  store?: WorkflowType | null,
): WorkflowType {
  return own ?? store ?? DEFAULT_WORKFLOW[deviceType]
}

/** True if the device can perform the action. Only gates perform exit actions. */
export function canPerform(device: DeviceFacts, action: ProtectionAction): boolean {
  switch (action) {
    case 'deactivate_label':
      return device.capabilities.canDeactivateLabel
    case 'detach_hard_tag':
      return device.capabilities.canDetachHardTag
    case 'unlock_fixture':
      return device.capabilities.canUnlockFixture
    case 'authorize_exit':
    case 'suppress_alarm':
      return device.deviceType === 'exit_gate'
    case 'verify_item_status':
      return true
  }
}

/**
 * True for an unattended device, other than a gate, that reads tags. At such a device a receipt releases only tags that
 * match its entries.
 */
export function releasesByTag({ workflowType, capabilities, deviceType }: DeviceFacts): boolean {
  const isWatched = workflowType === 'staff_assisted' || workflowType === 'pos_integrated'
  return deviceType !== 'exit_gate' && !isWatched && (capabilities.canReadUhfRfid || capabilities.canReadHfNfc)
}

/** Action with which the device releases tags; null if the device cannot release tags. */
export function releaseActionOf(device: DeviceFacts): 'deactivate_label' | 'detach_hard_tag' | null {
  if (device.capabilities.canDeactivateLabel) return 'deactivate_label'
  return device.capabilities.canDetachHardTag ? 'detach_hard_tag' : null
}

/** True if the device can read this kind of identifier. */
export function canRead(device: DeviceFacts, kind: IdentifierKind): boolean {
  if (kind === 'epc') return device.capabilities.canReadUhfRfid
  if (kind === 'tagUid') return device.capabilities.canReadHfNfc
  return true
}
