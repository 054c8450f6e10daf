import type { Ledger } from '../../ledger/ledger.ts'

/** When the cloud was heard, by its own signed times. Kept in the ledger. */
export interface Heard {
  /** When it last confirmed the policy that we have, ms; 0: never. */
  readonly confirmedMs: number
  /** When it was last heard at all, ms; 0: never. */
  readonly lastContactMs: number
  confirm(ms: number): void
  contact(ms: number): void
  /** It is no later than this: what was heard later was never true. */
  setBack(toMs: number): void
}

const LAST_FRESH = 'last_fresh'
const LAST_CONTACT = 'last_contact_ms'

/** What this ledger remembers of it. */
export function openHeard({ marks, commits }: Pick<Ledger, 'marks' | 'commits'>): Heard {
  let confirmedMs = Number(marks.get(LAST_FRESH) ?? 0)
  let lastContactMs = Number(marks.get(LAST_CONTACT) ?? 0)

  function confirm(ms: number): void {
    confirmedMs = ms
    commits.now(() => marks.set(LAST_FRESH, String(ms)))
  }

  function contact(ms: number): void {
    lastContactMs = ms
    commits.now(() => marks.set(LAST_CONTACT, String(ms)))
  }

  return {
    get confirmedMs() {
      return confirmedMs
    },
    get lastContactMs() {
      return lastContactMs
    },
    confirm,
    contact,
    setBack(toMs) {
      if (confirmedMs > toMs) confirm(0)
      if (lastContactMs > toMs) contact(0)
    },
  }
}
