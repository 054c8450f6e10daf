import type { OperatorRecord } from '../../policy/documents/store-documents.ts'
import type { Platform } from '../../policy/platform.ts'
import { findCard, isVerifiedBy, readBadge } from '../../policy/verifiers.ts'

/** Sessions of people who may approve. They are checked here, without the network, and end after 15 idle minutes. */
export interface Operators {
  /** Opens a session with a badge, with name and PIN, or with a card. */
  open(proof: Proof): OpenedSession
  /** The operator behind a session; keeps it awake. */
  find(session: string | undefined): { operatorId: string; name: string } | undefined
  /** As `find`, by somebody who only looks: it does not keep the session awake. */
  look(session: string | undefined): { operatorId: string; name: string } | undefined
  close(session: string): void
}

/** What somebody shows to say who they are. */
export type Proof =
  | { badge: string }
  | { operatorId: string; pin: string }
  /** Upper-case hex, as `readCard` gives it; `readerId`: where it was held. */
  | { card: string; readerId: string }

export type OpenedSession =
  | { ok: true; session: string; operatorId: string; name: string }
  | { ok: false; reason: 'wrong' }
  | { ok: false; reason: 'locked'; retryAfterSeconds: number }

const IDLE_MS = 15 * 60_000
const TRIES = 5
const FIRST_LOCK_MS = 60_000
const LONGEST_LOCK_MS = 3_600_000
const SESSIONS_LIMIT = 100

interface Tries {
  failed: number
  locks: number
  lockedUntil: number
}

/** `records`: the operators of the store as the accepted policy names them. */
export function operatorSessions(platform: Platform, records: () => readonly OperatorRecord[]): Operators {
  const sessions = new Map<string, { operatorId: string; name: string; atMs: number }>()
  const tries = new Map<string, Tries>()
  const now = () => platform.clock.elapsed()

  /** Five wrong tries lock the name for a minute, then longer each time. */
  function noteFailure(operatorId: string): void {
    const state = tries.get(operatorId) ?? { failed: 0, locks: 0, lockedUntil: 0 }
    state.failed++
    if (state.failed >= TRIES) {
      state.lockedUntil = now() + Math.min(FIRST_LOCK_MS * 2 ** state.locks, LONGEST_LOCK_MS)
      state.locks++
      state.failed = 0
    }
    if (tries.size > 10_000) tries.clear()
    tries.set(operatorId, state)
  }

  function lockedFor(operatorId: string): number {
    return Math.max(0, (tries.get(operatorId)?.lockedUntil ?? 0) - now())
  }

  function begin(record: OperatorRecord): OpenedSession {
    tries.delete(record.operatorId)
    const oldest = sessions.keys().next().value
    if (sessions.size >= SESSIONS_LIMIT && oldest !== undefined) sessions.delete(oldest)
    const session = Buffer.from(platform.random.bytes(24)).toString('base64url')
    sessions.set(session, { operatorId: record.operatorId, name: record.name, atMs: now() })
    return { ok: true, session, operatorId: record.operatorId, name: record.name }
  }

  function tryOne(operatorId: string, isRight: (record: OperatorRecord) => boolean): OpenedSession {
    const wait = lockedFor(operatorId)
    if (wait > 0) return { ok: false, reason: 'locked', retryAfterSeconds: Math.ceil(wait / 1_000) }
    const record = records().find((r) => r.operatorId === operatorId)
    if (record && isRight(record)) return begin(record)
    noteFailure(operatorId)
    return { ok: false, reason: 'wrong' }
  }

  /** A card names nobody: wrong ones lock the reader. */
  function tryCard(card: string, readerId: string): OpenedSession {
    const reader = `reader ${readerId}`
    const wait = lockedFor(reader)
    if (wait > 0) return { ok: false, reason: 'locked', retryAfterSeconds: Math.ceil(wait / 1_000) }
    const known = records()
    const record = known[findCard(known.map((each) => each.card), card)]
    if (!record) {
      noteFailure(reader)
      return { ok: false, reason: 'wrong' }
    }
    tries.delete(reader)
    return begin(record)
  }

  function living(session: string | undefined) {
    const found = session === undefined ? undefined : sessions.get(session)
    if (!found || session === undefined) return undefined
    const isKnown = records().some((r) => r.operatorId === found.operatorId)
    if (isKnown && now() - found.atMs <= IDLE_MS) return found
    sessions.delete(session)
    return undefined
  }

  return {
    open(proof) {
      if ('pin' in proof) return tryOne(proof.operatorId, ({ pin }) => pin !== undefined && isVerifiedBy(pin, proof.pin))
      if ('card' in proof) return tryCard(proof.card, proof.readerId)
      let last: OpenedSession = { ok: false, reason: 'wrong' }
      for (const { operatorId, secret } of readBadge(proof.badge)) {
        // A scanner that swaps Y and Z makes a second candidate: only names that exist may lock.
        if (!records().some((r) => r.operatorId === operatorId)) continue
        last = tryOne(operatorId, ({ badge }) => isVerifiedBy(badge, secret))
        if (last.ok) return last
      }
      return last
    },
    find(session) {
      const found = living(session)
      if (!found) return undefined
      found.atMs = now()
      return { operatorId: found.operatorId, name: found.name }
    },
    look(session) {
      const found = living(session)
      return found && { operatorId: found.operatorId, name: found.name }
    },
    close: (session) => void sessions.delete(session),
  }
}
