/** A device that is attached to this machine or answers in its network, with a suggested entry. */
export interface AttachedDevice {
  kind: 'serial' | 'nfc' | 'llrp'
  /** Name that the USB plug, the driver or the address gives. */
  name: string
  /** Where it is. */
  at: string
  /** What to do before the device can be used, if anything. */
  fix?: string
  /** An entry for `devices`, to be completed. */
  entry: Record<string, unknown>
}

/** Finds devices for the set-up page. */
export interface DeviceDiscovery {
  /** Attached devices, and why a search failed. Never rejects. */
  findAttached(): Promise<{ attached: AttachedDevice[]; notes: string[] }>
  /** The LLRP reader at `host` or `host:port`. Never rejects. */
  findLlrpReader(address: string): Promise<{ found: AttachedDevice } | { fault: string }>
}
