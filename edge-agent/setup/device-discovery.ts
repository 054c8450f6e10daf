/** How a device was found. `board`: a relay or input board with Modbus TCP. */
export const DEVICE_FINDINGS = ['serial', 'nfc', 'llrp', 'board'] as const
export type DeviceFinding = (typeof DEVICE_FINDINGS)[number]

/** Why a search at an address found nothing. `other_device`: what answers is no reader or board of a known kind. */
export const SEARCH_CAUSES = ['other_device', 'refused', 'unreachable', 'unknown_name'] as const
export type SearchCause = (typeof SEARCH_CAUSES)[number]

/** A device at this machine or in its network, with a suggested configuration entry. */
export interface AttachedDevice {
  kind: DeviceFinding
  /** Name from the USB device, the driver or the address. */
  name: string
  /** Port or address of the device. */
  at: string
  /** What the technician must do before the device works. Absent if the technician need do nothing. */
  fix?: string
  /** Entry for `devices`; the technician fills in the `deviceId`. */
  entry: Record<string, unknown>
}

/** Finds devices for the set-up page. */
export interface DeviceDiscovery {
  /** Returns the attached devices. `notes`: why searches failed. Never rejects. */
  findAttached(): Promise<{ attached: AttachedDevice[]; notes: string[] }>
  /** Searches for an LLRP reader or a Modbus TCP board at `host` or `host:port`. Never rejects. */
  findAtAddress(address: string): Promise<{ found: AttachedDevice } | { fault: string; cause?: SearchCause }>
}
