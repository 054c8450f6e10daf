import type { Ledger } from '../../ledger/ledger.ts'

/** Returns issue time and expiry, s, of a message that the agent signs at `nowMs`. */
export function messageTimes(nowMs: number, lifeS: number): { iat: number; exp: number } {
  const iat = Math.max(0, Math.floor(nowMs / 1_000))
  return { iat, exp: iat + lifeS }
}

/**
 * Times of the last contact with the cloud, from its freshness documents. The ledger stores these times once a minute, so
 * that an idle agent spares its disk. After a restart they are at most this much older.
 */
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

const STEP_MS = 60_000

/** Reads the contact times from this ledger. */
export function openCloudContact(ledger: Pick<Ledger, 'metadata' | 'commits'>): CloudContact {
  const policyConfirmed = openTime(ledger, LAST_FRESH)
  const contact = openTime(ledger, LAST_CONTACT)
  return {
    get policyConfirmedMs() {
      return policyConfirmed.ms
    },
    get lastContactMs() {
      return contact.ms
    },
    notePolicyConfirmed: policyConfirmed.note,
    noteContact: contact.note,
    rewindTo(toMs) {
      for (const time of [policyConfirmed, contact]) if (time.ms > toMs) time.note(0)
    },
  }
}

/** A time, ms, that is stored when it differs by a minute from what is stored. */
function openTime({ metadata, commits }: Pick<Ledger, 'metadata' | 'commits'>, name: string) {
  let storedMs = Number(metadata.get(name) ?? 0)
  let currentMs = storedMs
  return {
    get ms() {
      return currentMs
    },
    note(ms: number): void {
      currentMs = ms
      if (Math.abs(ms - storedMs) < STEP_MS) return
      commits.now(() => metadata.set(name, String(ms)))
      storedMs = ms
    },
  }
}
