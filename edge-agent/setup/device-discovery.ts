/** A device at this machine or in its network, with a suggested configuration entry. */
export interface AttachedDevice {
  kind: 'serial' | 'nfc' | 'llrp'
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
  /** Searches for an LLRP reader at `host` or `host:port`. Never rejects. */
  findLlrpReader(address: string): Promise<{ found: AttachedDevice } | { fault: string }>
}
