import type { PolicyClaims } from '../../policy/documents/store-documents.ts'

/** Reasons why an agent refuses every request for a configured device, although the hardware may work. */
export const REGISTRATION_FAULTS = ['unknown_device', 'device_of_another_agent', 'decommissioned_device'] as const
export type RegistrationFault = (typeof REGISTRATION_FAULTS)[number]

/** A configured device that the agent must not use, because the policy does not list it for this agent. */
interface RefusedDevice {
  state: RegistrationFault
  /** Reason and remedy, for people. */
  detail: string
}

const DETAILS: Record<RegistrationFault, (storeId: string) => string> = {
  unknown_device: (storeId) =>
    `store ${storeId} has no device with this id, so the agent refuses every release and ignores an emergency input: correct deviceId in the configuration, or register the device in this store with registerDevice and use the id from the answer`,
  device_of_another_agent: (storeId) =>
    `another agent of store ${storeId} drives this device, so this agent refuses every release: remove it from this configuration, or move it to this agent with updateDevice and agentId`,
  decommissioned_device: (storeId) =>
    `this device of store ${storeId} was decommissioned, so the agent refuses every release: register it again with registerDevice and use the new id, or remove it from the configuration`,
}

/**
 * Checks a configured device against the accepted policy, by the same rules as decisions. Returns undefined if the
 * agent may use the device. Do not call it for devices that only send their reads or scans to another device (`feeds`),
 * because these devices need no registration.
 */
export function refusedDevice(
  { aud: storeId, devices }: Pick<PolicyClaims, 'aud' | 'devices'>,
  agentId: string,
  deviceId: string,
): RefusedDevice | undefined {
  const state = faultOf(
    devices.find((device) => device.deviceId === deviceId),
    agentId,
  )
  return state && { state, detail: DETAILS[state](storeId) }
}

function faultOf(device: PolicyClaims['devices'][number] | undefined, agentId: string): RegistrationFault | undefined {
  if (!device) return 'unknown_device'
  if (device.agentId !== null && device.agentId !== agentId) return 'device_of_another_agent'
  return device.revoked ? 'decommissioned_device' : undefined
}
