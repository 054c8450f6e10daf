/** Something that is attached to this machine or answers in its network, and what to write about it. */
export interface AttachedDevice {
  kind: 'serial' | 'nfc' | 'llrp'
  /** As the plug, the driver or the address names it. */
  name: string
  /** Where it is. */
  at: string
  /** What to do before it can be used; missing where nothing is to be done. */
  fix?: string
  /** An entry for `devices`, to be completed. */
  entry: Record<string, unknown>
}

/** Looks around, for the set-up page; the agent itself knows only what its configuration names. */
export interface DeviceDiscovery {
  /** What is plugged in, and why something could not be looked for. Never rejects. */
  findAttached(): Promise<{ attached: AttachedDevice[]; notes: string[] }>
  /** The LLRP reader at `host` or `host:port`. Never rejects. */
  findLlrpReader(address: string): Promise<{ found: AttachedDevice } | { fault: string }>
}
