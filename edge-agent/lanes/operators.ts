import type { OperatorRecord, Verifier } from '../../policy/documents/store-documents.ts'
import type { Platform } from '../../policy/platform.ts'
import { findCardIndex, matchesVerifier, newPinVerifier, parseBadge } from '../../policy/operator-verifiers.ts'
import { lockouts, type Lockouts } from './lockouts.ts'
import { operatorLocks, type OperatorLocks } from './operator-locks.ts'

/** Proof of an operator's identity. */
export type Proof =
  | { badge: string }
  | { operatorId: string; pin: string }
  /** `card`: upper-case hex, as `parseCardNumber` returns it. `readerId`: the reader of the card. */
  | { card: string; readerId: string }

export type SignInResult =
  | { ok: true; session: string; operatorId: string; name: string }
  | { ok: false; reason: 'wrong' }
  /**
   * The agent lacks the store key of the policy and must log in at the cloud first. The attempt does not count as an
   * error.
   */
  | { ok: false; reason: 'no_store_key' }
  | { ok: false; reason: 'locked'; retryAfterSeconds: number }

const IDLE_MS = 15 * 60_000
const SESSIONS_LIMIT = 100

/**
 * Operators in the accepted policy. `storeKey` verifies their PINs, badges and cards; undefined if the agent lacks it.
 */
export interface StoreOperators {
  records: readonly OperatorRecord[]
  storeKey: string | undefined
}

interface Session {
  readonly operatorId: string
  readonly name: string
  atMs: number
}

const WRONG: SignInResult = { ok: false, reason: 'wrong' }

function locked(waitMs: number): SignInResult {
  return { ok: false, reason: 'locked', retryAfterSeconds: Math.ceil(waitMs / 1_000) }
}

/** Makes the operators of this store. At first, no session is open. */
export function operatorSessions(platform: Platform, operators: () => StoreOperators): Operators {
  return new Operators(platform, operators)
}

/**
 * Checks PINs, badges and cards without the network, and stores the sessions of operators in memory. A session ends
 * after 15 idle minutes.
 */
export class Operators {
  readonly #platform: Platform
  readonly #operators: () => StoreOperators
  readonly #sessions = new Map<string, Session>()
  readonly #tries: OperatorLocks
  /** Wrong cards lock the reader, because a wrong card names no operator. */
  readonly #cardTries: Lockouts
  #decoy: Verifier | undefined

  constructor(platform: Platform, operators: () => StoreOperators) {
    this.#platform = platform
    this.#operators = operators
    this.#tries = operatorLocks(platform.clock)
    this.#cardTries = lockouts(platform.clock)
  }

  /**
   * Opens a session with a badge, a name and PIN, or a card. Counts errors for `caller`, or for the reader of a card.
   */
  signIn(proof: Proof, caller: string): SignInResult {
    const { records: known, storeKey = '' } = this.#operators()
    if (known.length > 0 && storeKey === '') return { ok: false, reason: 'no_store_key' }
    if ('pin' in proof) return this.#tryPin(proof, caller, storeKey)
    if ('card' in proof) return this.#tryCard(proof.card, proof.readerId, storeKey)
    let last: SignInResult = WRONG
    for (const { operatorId, secret } of parseBadge(proof.badge)) {
      // `parseBadge` returns a second candidate with Y and Z swapped. Counts errors only for operators that exist.
      const record = this.#recordOf(operatorId)
      if (!record) continue
      last = this.#tryBadge(record, secret, caller, storeKey)
      if (last.ok) return last
    }
    return last
  }

  /** Returns the operator of a session, and restarts the session's idle time. */
  find(session: string | undefined): { operatorId: string; name: string } | undefined {
    const found = this.#activeSession(session)
    if (found) found.atMs = this.#platform.clock.elapsed()
    return found && { operatorId: found.operatorId, name: found.name }
  }

  /** Like `find`, but does not restart the idle time. Use it for scans of shoppers and for callers that only read. */
  peek(session: string | undefined): { operatorId: string; name: string } | undefined {
    const found = this.#activeSession(session)
    return found && { operatorId: found.operatorId, name: found.name }
  }

  close(session: string): void {
    this.#sessions.delete(session)
  }

  /** Checks a PIN. Answer and duration do not reveal which names exist. */
  #tryPin({ operatorId, pin }: { operatorId: string; pin: string }, caller: string, key: string): SignInResult {
    const record = this.#recordOf(operatorId)
    const kind = record ? 'known' : 'invented'
    const waitMs = this.#tries.waitMs(operatorId, caller, kind)
    if (waitMs > 0) return locked(waitMs)
    const isRight = matchesVerifier(record?.pin ?? this.#makeDecoy(), pin, key)
    if (!isRight || !record?.pin) {
      this.#tries.failed(operatorId, caller, kind)
      return WRONG
    }
    this.#tries.passed(operatorId, caller)
    return this.#begin(record)
  }

  #tryBadge(record: OperatorRecord, secret: string, caller: string, key: string): SignInResult {
    const { operatorId } = record
    const waitMs = this.#tries.waitMs(operatorId, caller)
    if (waitMs > 0) return locked(waitMs)
    if (!matchesVerifier(record.badge, secret, key)) {
      this.#tries.failed(operatorId, caller)
      return WRONG
    }
    this.#tries.passed(operatorId, caller)
    return this.#begin(record)
  }

  #tryCard(card: string, readerId: string, key: string): SignInResult {
    const waitMs = this.#cardTries.waitMs(readerId)
    if (waitMs > 0) return locked(waitMs)
    const { records } = this.#operators()
    const cards = records.map((each) => each.card)
    const record = records[findCardIndex(cards, card, key)]
    if (!record) {
      this.#cardTries.failed(readerId)
      return WRONG
    }
    this.#cardTries.passed(readerId)
    return this.#begin(record)
  }

  #begin({ operatorId, name }: OperatorRecord): SignInResult {
    const { random, clock } = this.#platform
    const oldest = this.#sessions.keys().next().value
    if (this.#sessions.size >= SESSIONS_LIMIT && oldest !== undefined) this.#sessions.delete(oldest)
    const session = Buffer.from(random.bytes(24)).toString('base64url')
    this.#sessions.set(session, { operatorId, name, atMs: clock.elapsed() })
    return { ok: true, session, operatorId, name }
  }

  #activeSession(session: string | undefined): Session | undefined {
    const found = session === undefined ? undefined : this.#sessions.get(session)
    if (!found || session === undefined) return undefined
    const isKnown = this.#recordOf(found.operatorId) !== undefined
    if (isKnown && this.#platform.clock.elapsed() - found.atMs <= IDLE_MS) return found
    this.#sessions.delete(session)
    return undefined
  }

  #recordOf(operatorId: string): OperatorRecord | undefined {
    return this.#operators().records.find((record) => record.operatorId === operatorId)
  }

  /** Verifier for unknown names, so that the check of an unknown name takes as long as the check of a known name. */
  #makeDecoy(): Verifier {
    const { random } = this.#platform
    return (this.#decoy ??= newPinVerifier(Buffer.from(random.bytes(16)).toString('hex'), random))
  }
}
