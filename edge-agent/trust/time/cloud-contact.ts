import type { Ledger } from '../../ledger/ledger.ts'

/** Returns issue time and expiry, s, of a message that the agent signs at `nowMs`. */
export function messageTimes(nowMs: number, lifeS: number): { iat: number; exp: number } {
  const iat = Math.max(0, Math.floor(nowMs / 1_000))
  return { iat, exp: iat + lifeS }
}

/** Times of the last contact with the cloud, from its freshness documents. The ledger stores these times. */
export interface CloudContact {
  /** Time of the last freshness that confirmed the current policy, ms; 0: never. */
  readonly policyConfirmedMs: number
  /** Time of the last accepted freshness, ms; 0: never. */
  readonly lastContactMs: number
  notePolicyConfirmed(ms: number): void
  noteContact(ms: number): void
  /** Clears times after `toMs`. Call it when trusted time was set back. */
  rewindTo(toMs: number): void
}

const LAST_FRESH = 'last_fresh'
const LAST_CONTACT = 'last_contact_ms'

/** Reads the contact times from this ledger. */
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
