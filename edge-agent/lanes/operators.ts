import type { OperatorRecord, Verifier } from '../../policy/documents/store-documents.ts'
import type { Platform } from '../../policy/platform.ts'
import { findCard, isVerifiedBy, newPinVerifier, readBadge } from '../../policy/verifiers.ts'
import { lockouts } from './lockouts.ts'
import { operatorLocks } from './operator-locks.ts'

/** Sessions of people who may approve. They are checked here, without the network, and end after 15 idle minutes. */
export interface Operators {
  /** Opens a session with a badge, with name and PIN, or with a card. `caller`: where the proof comes from; errors are counted for it. */
  open(proof: Proof, caller: string): OpenedSession
  /** The operator behind a session, who does something: it keeps the session awake. */
  find(session: string | undefined): { operatorId: string; name: string } | undefined
  /** As `find`, for what shoppers scan and for who only looks: it does not keep the session awake. */
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
  /** The agent does not hold the store key of the policy: it has to log in at the cloud first. No error is counted. */
  | { ok: false; reason: 'no_store_key' }
  | { ok: false; reason: 'locked'; retryAfterSeconds: number }

const IDLE_MS = 15 * 60_000
const SESSIONS_LIMIT = 100

/** The operators of the store as the accepted policy names them, and the key of their verifiers if the agent holds it. */
export interface StoreOperators {
  records: readonly OperatorRecord[]
  storeKey: string | undefined
}

/** Checks operators of this store; no session is open yet. */
export function operatorSessions(platform: Platform, operators: () => StoreOperators): Operators {
  const sessions = new Map<string, { operatorId: string; name: string; atMs: number }>()
  const tries = operatorLocks(platform.clock)
  /** Cards name no operator: wrong ones lock their reader. */
  const cardTries = lockouts(platform.clock)
  const records = () => operators().records
  const now = () => platform.clock.elapsed()
  let made: Verifier | undefined
  /** Checking a name that does not exist takes as long as one that does. */
  const decoy = () => (made ??= newPinVerifier(Buffer.from(platform.random.bytes(16)).toString('hex'), platform.random))

  function begin(record: OperatorRecord): OpenedSession {
    const oldest = sessions.keys().next().value
    if (sessions.size >= SESSIONS_LIMIT && oldest !== undefined) sessions.delete(oldest)
    const session = Buffer.from(platform.random.bytes(24)).toString('base64url')
    sessions.set(session, { operatorId: record.operatorId, name: record.name, atMs: now() })
    return { ok: true, session, operatorId: record.operatorId, name: record.name }
  }

  const recordOf = (operatorId: string) => records().find((record) => record.operatorId === operatorId)
  const locked = (waitMs: number): OpenedSession => ({
    ok: false,
    reason: 'locked',
    retryAfterSeconds: Math.ceil(waitMs / 1_000),
  })
  const wrong: OpenedSession = { ok: false, reason: 'wrong' }

  /** Anybody may name anybody: nothing in the answer, nor when it comes, tells which names exist. */
  function tryPin(
    { operatorId, pin }: { operatorId: string; pin: string },
    caller: string,
    key: string,
  ): OpenedSession {
    const record = recordOf(operatorId)
    const kind = record ? 'known' : 'invented'
    const waitMs = tries.waitMs(operatorId, caller, kind)
    if (waitMs > 0) return locked(waitMs)
    const isRight = isVerifiedBy(record?.pin ?? decoy(), pin, key)
    if (!isRight || !record?.pin) {
      tries.failed(operatorId, caller, kind)
      return wrong
    }
    tries.passed(operatorId, caller)
    return begin(record)
  }

  function tryBadge(record: OperatorRecord, secret: string, caller: string, key: string): OpenedSession {
    const { operatorId } = record
    const waitMs = tries.waitMs(operatorId, caller)
    if (waitMs > 0) return locked(waitMs)
    if (!isVerifiedBy(record.badge, secret, key)) {
      tries.failed(operatorId, caller)
      return wrong
    }
    tries.passed(operatorId, caller)
    return begin(record)
  }

  /** A card names nobody: wrong ones lock the reader. */
  function tryCard(card: string, readerId: string, key: string): OpenedSession {
    const waitMs = cardTries.waitMs(readerId)
    if (waitMs > 0) return locked(waitMs)
    const known = records()
    const cards = known.map((each) => each.card)
    const record = known[findCard(cards, card, key)]
    if (!record) {
      cardTries.failed(readerId)
      return wrong
    }
    cardTries.passed(readerId)
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
    open(proof, caller) {
      const { records: known, storeKey = '' } = operators()
      if (known.length > 0 && storeKey === '') return { ok: false, reason: 'no_store_key' }
      if ('pin' in proof) return tryPin(proof, caller, storeKey)
      if ('card' in proof) return tryCard(proof.card, proof.readerId, storeKey)
      let last: OpenedSession = wrong
      for (const { operatorId, secret } of readBadge(proof.badge)) {
        // A scanner that swaps Y and Z makes a second candidate: only names that exist may lock.
        const record = recordOf(operatorId)
        if (!record) continue
        last = tryBadge(record, secret, caller, storeKey)
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
