/** Something that is attached to this machine or answers in its network, and what to write about it. */
export interface Attached {
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
export interface Surroundings {
  /** What is plugged in, and why something could not be looked for. Never rejects. */
  look(): Promise<{ attached: Attached[]; notes: string[] }>
  /** The LLRP reader at `host` or `host:port`. Never rejects. */
  llrpAt(address: string): Promise<{ found: Attached } | { fault: string }>
}
