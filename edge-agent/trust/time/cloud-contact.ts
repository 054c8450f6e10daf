import type { Ledger } from '../../ledger/ledger.ts'

/** When the cloud was heard, by its own signed times. Kept in the ledger. */
export interface CloudContact {
  /** When it last confirmed the policy that we have, ms; 0: never. */
  readonly policyConfirmedMs: number
  /** When it was last heard at all, ms; 0: never. */
  readonly lastContactMs: number
  notePolicyConfirmed(ms: number): void
  noteContact(ms: number): void
  /** It is no later than this: what was heard later was never true. */
  rewindTo(toMs: number): void
}

const LAST_FRESH = 'last_fresh'
const LAST_CONTACT = 'last_contact_ms'

/** What this ledger remembers of it. */
export function openCloudContact({ metadata, commits }: Pick<Ledger, 'metadata' | 'commits'>): CloudContact {
  let policyConfirmedMs = Number(metadata.get(LAST_FRESH) ?? 0)
  let lastContactMs = Number(metadata.get(LAST_CONTACT) ?? 0)

  function notePolicyConfirmed(ms: number): void {
    policyConfirmedMs = ms
    commits.now(() => metadata.set(LAST_FRESH, String(ms)))
  }

  function noteContact(ms: number): void {
    lastContactMs = ms
    commits.now(() => metadata.set(LAST_CONTACT, String(ms)))
  }

  return {
    get policyConfirmedMs() {
      return policyConfirmedMs
    },
    get lastContactMs() {
      return lastContactMs
    },
    notePolicyConfirmed,
    noteContact,
    rewindTo(toMs) {
      if (policyConfirmedMs > toMs) notePolicyConfirmed(0)
      if (lastContactMs > toMs) noteContact(0)
    },
  }
}
