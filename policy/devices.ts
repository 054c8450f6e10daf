import { z } from 'zod'
import { DEFAULT_WORKFLOW, DEVICE_TYPES, PROTECTION_TECHNOLOGIES, WORKFLOW_TYPES } from './vocabulary.ts'
import type { DeviceType, ProtectionAction, ProtectionTechnology, WorkflowType } from './vocabulary.ts'
import type { IdentifierKind } from './item-identifiers.ts'

/** What a device can do, in the specification's words. */
export const DeviceCapabilities = z.strictObject({
  canDeactivateLabel: z.boolean(),
  canDetachHardTag: z.boolean(),
  canReadReceiptQr: z.boolean(),
  canReadUhfRfid: z.boolean(),
  canReadHfNfc: z.boolean(),
  canUnlockFixture: z.boolean(),
  supportsOfflineAuth: z.boolean(),
})
export type DeviceCapabilities = z.infer<typeof DeviceCapabilities>

/** A device as decisions see it, and as the signed policy carries it to the agents. */
export const DeviceFacts = z.strictObject({
  deviceId: z.string(),
  storeId: z.string(),
  deviceType: z.enum(DEVICE_TYPES),
  /** The device's own, else the store's, else that of its type. */
  workflowType: z.enum(WORKFLOW_TYPES),
  capabilities: DeviceCapabilities,
  supportedTechnologies: z.array(z.enum(PROTECTION_TECHNOLOGIES)),
  agentId: z.string().nullable(),
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
  supportsOfflineAuth: true,
}

/** What a device of each type can do and speak when its registration leaves it open. */
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

/** What is stated of a device; what is left open stays as it is. */
type StatedAbilities = { [K in keyof DeviceCapabilities]?: boolean | undefined } & {
  supportedTechnologies?: ProtectionTechnology[] | undefined
}

/** Completes what a registration states: stated technologies say what can be read, and the other way round. */
export function completeCapabilities(deviceType: DeviceType, stated: StatedAbilities): Abilities {
  const { capabilities, technologies } = TYPE_DEFAULTS[deviceType]
  return changeCapabilities({ capabilities, supportedTechnologies: technologies }, stated)
}

/** The abilities with what is stated now: stated technologies say what can be read, and the other way round. */
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

/** The workflow that counts: the device's own, else its store's, else that of its type. */
export function resolveWorkflow(
  deviceType: DeviceType,
  own?: WorkflowType | null,
  store?: WorkflowType | null,
): WorkflowType {
  return own ?? store ?? DEFAULT_WORKFLOW[deviceType]
}

/** Whether a device can carry out an action at all. Leaving is only ever decided at a gate. */
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

/** Whether a device that nobody watches can read tags: a receipt by itself releases nothing there, only the tags that it covers. */
export function releasesByTag({ workflowType, capabilities, deviceType }: DeviceFacts): boolean {
  const isWatched = workflowType === 'staff_assisted' || workflowType === 'pos_integrated'
  return deviceType !== 'exit_gate' && !isWatched && (capabilities.canReadUhfRfid || capabilities.canReadHfNfc)
}

/** The action by which a device releases tags, or null for one that does not. */
export function releaseActionOf(device: DeviceFacts): 'deactivate_label' | 'detach_hard_tag' | null {
  if (device.capabilities.canDeactivateLabel) return 'deactivate_label'
  return device.capabilities.canDetachHardTag ? 'detach_hard_tag' : null
}

/** Whether a device has the reader that an identifier of this kind comes from. */
export function canRead(device: DeviceFacts, kind: IdentifierKind): boolean {
  if (kind === 'epc') return device.capabilities.canReadUhfRfid
  if (kind === 'tagUid') return device.capabilities.canReadHfNfc
  return true
}
