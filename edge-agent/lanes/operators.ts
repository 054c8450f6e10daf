import { isDeepStrictEqual } from 'node:util'
import type { OperatorRecord, Verifier } from '../../policy/documents/store-documents.ts'
import type { Platform, Clock } from '../../policy/platform.ts'
import { findCardIndex, matchesVerifier, newPinVerifier, parseBadge } from '../../policy/operator-verifiers.ts'
import type { LaneStates } from './lane-states.ts'
import type { ScanResult } from './scan-result.ts'

/**
 * Counts wrong sign-ins of one caller. After five wrong sign-ins with one name, this caller cannot use that name for
 * a minute. Each further lock lasts twice as long.
 */
interface Lockouts {
  /**
   * Wait before the next attempt with this name, ms; 0 if an attempt is allowed. `as`: whether an operator has this
   * name; set only if the proof is a PIN.
   */
  waitMs(name: string, as?: NameKind): number
  failed(name: string, as?: NameKind): void
  passed(name: string): void
}

/** Unknown names have their own table, so that guesses cannot displace the lock of a known name. */
type NameKind = 'known' | 'invented'

const TRIES = 5
const FIRST_LOCK_MS = 60_000
const LONGEST_LOCK_MS = 3_600_000
/** A store has at most 500 operators. */
const KNOWN_LIMIT = 500
/**
 * A caller that has tried this many unknown names counts as guessing, and one with this many wrong PINs of any names in
 * ten minutes. Such a caller waits a minute after each wrong PIN, for any name.
 */
const INVENTED_LIMIT = 30
const WRONG_PINS = 40
const WRONG_PINS_MS = 600_000
const REMEMBERED_MS = 86_400_000

interface Tries {
  failed: number
  locks: number
  lockedUntil: number
  lastMs: number
}

/** Makes the counters of one caller. */
function lockouts(clock: Pick<Clock, 'elapsed'>): Lockouts {
  /** Both tables are in order of the last attempt, oldest first. */
  const known = new Map<string, Tries>()
  const invented = new Map<string, Tries>()
  let guessingUntil = 0
  /** Times of the last wrong PINs, oldest first. */
  let wrongPins: number[] = []

  function noteIn(table: Map<string, Tries>, name: string): void {
    const nowMs = clock.elapsed()
    const state = table.get(name) ?? { failed: 0, locks: 0, lockedUntil: 0, lastMs: 0 }
    state.failed++
    state.lastMs = nowMs
    if (state.failed >= TRIES) {
      state.lockedUntil = nowMs + Math.min(FIRST_LOCK_MS * 2 ** state.locks, LONGEST_LOCK_MS)
      state.locks++
      state.failed = 0
    }
    table.delete(name)
    table.set(name, state)
  }

  function dropOld(table: Map<string, Tries>, limit: number): void {
    for (const [name, { lastMs }] of table) {
      if (table.size <= limit && clock.elapsed() - lastMs < REMEMBERED_MS) return
      table.delete(name)
    }
  }

  return {
    waitMs(name, as) {
      const table = as === 'invented' ? invented : known
      const until = Math.max(table.get(name)?.lockedUntil ?? 0, as === undefined ? 0 : guessingUntil)
      return Math.max(0, until - clock.elapsed())
    },
    failed(name, as) {
      noteIn(as === 'invented' ? invented : known, name)
      dropOld(known, KNOWN_LIMIT)
      dropOld(invented, INVENTED_LIMIT)
      if (as === undefined) return
      const nowMs = clock.elapsed()
      wrongPins = [...wrongPins.filter((atMs) => nowMs - atMs < WRONG_PINS_MS), nowMs]
      if (invented.size >= INVENTED_LIMIT || wrongPins.length >= WRONG_PINS) guessingUntil = nowMs + FIRST_LOCK_MS
    },
    passed: (name) => void known.delete(name),
  }
}

/**
 * Locks operators after wrong PINs and badges.
 *
 * - 5 errors of one caller lock the operator for that caller: 1 minute, then longer (`lockouts`).
 * - 20 errors of several callers within an hour lock the operator for all callers of this agent: 15 minutes.
 *
 * A caller is a paired browser or program, or a device's own scanner. The agent stores the locks only in memory.
 */
interface OperatorLocks {
  /**
   * Wait before this caller may try this operator, ms; 0 if an attempt is allowed. `as`: whether an operator has this
   * id; set only if the proof is a PIN.
   */
  waitMs(operatorId: string, caller: string, as?: NameKind): number
  failed(operatorId: string, caller: string, as?: NameKind): void
  passed(operatorId: string, caller: string): void
}

/** Maximum callers in memory. A further caller replaces the caller whose last error is oldest. */
const CALLERS_LIMIT = 500
/** Maximum operators in memory: as many as a store may have. */
const OPERATORS_LIMIT = 500
const ERRORS = 20
/** Maximum counted errors of one caller, so that one caller alone never locks an operator for others. */
const ERRORS_OF_ONE_CALLER = 10
const COUNTED_MS = 3_600_000
const LOCK_MS = 15 * 60_000

interface OperatorErrors {
  /** The counted errors, oldest first; always fewer than `ERRORS`. */
  errors: { caller: string; atMs: number }[]
  lockedUntil: number
}

/** Makes the locks of this agent; no operator is locked. */
export function operatorLocks(clock: Pick<Clock, 'elapsed'>): OperatorLocks {
  /** Both tables are in order of the last error, oldest first. */
  const callers = new Map<string, Lockouts>()
  const operators = new Map<string, OperatorErrors>()

  function countFor(operatorId: string, caller: string): void {
    const nowMs = clock.elapsed()
    const { errors: before, lockedUntil } = operators.get(operatorId) ?? { errors: [], lockedUntil: 0 }
    const errors = before.filter(({ atMs }) => nowMs - atMs < COUNTED_MS)
    if (errors.filter((error) => error.caller === caller).length < ERRORS_OF_ONE_CALLER)
      errors.push({ caller, atMs: nowMs })
    const isLocked = errors.length >= ERRORS
    putLast(
      operators,
      operatorId,
      isLocked ? { errors: [], lockedUntil: nowMs + LOCK_MS } : { errors, lockedUntil },
      OPERATORS_LIMIT,
    )
  }

  return {
    waitMs(operatorId, caller, as) {
      const ownMs = callers.get(caller)?.waitMs(operatorId, as) ?? 0
      return Math.max(ownMs, (operators.get(operatorId)?.lockedUntil ?? 0) - clock.elapsed())
    },
    failed(operatorId, caller, as) {
      const own = callers.get(caller) ?? lockouts(clock)
      own.failed(operatorId, as)
      putLast(callers, caller, own, CALLERS_LIMIT)
      if (as !== 'invented') countFor(operatorId, caller)
    },
    passed(operatorId, caller) {
      callers.get(caller)?.passed(operatorId)
      const counted = operators.get(operatorId)
      if (counted) counted.errors = counted.errors.filter((error) => error.caller !== caller)
    },
  }
}

/** Sets an entry as the newest of the table. Drops the oldest entry above the limit. */
function putLast<V>(table: Map<string, V>, name: string, value: V, limit: number): void {
  table.delete(name)
  table.set(name, value)
  const oldest = table.keys().next().value
  if (table.size > limit && oldest !== undefined) table.delete(oldest)
}

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
interface StoreOperators {
  records: readonly OperatorRecord[]
  storeKey: string | undefined
}

interface Session {
  readonly operatorId: string
  readonly name: string
  /** What the operator signed in with. The session ends with it. */
  readonly verifier: Verifier
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
 * after 15 idle minutes, and when its PIN, badge or card is replaced.
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
    return this.#begin(record, record.pin)
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
    return this.#begin(record, record.badge)
  }

  #tryCard(card: string, readerId: string, key: string): SignInResult {
    const waitMs = this.#cardTries.waitMs(readerId)
    if (waitMs > 0) return locked(waitMs)
    const { records } = this.#operators()
    const cards = records.map((each) => each.card)
    const record = records[findCardIndex(cards, card, key)]
    if (!record?.card) {
      this.#cardTries.failed(readerId)
      return WRONG
    }
    this.#cardTries.passed(readerId)
    return this.#begin(record, record.card)
  }

  #begin({ operatorId, name }: OperatorRecord, verifier: Verifier): SignInResult {
    const { random, clock } = this.#platform
    const oldest = this.#sessions.keys().next().value
    if (this.#sessions.size >= SESSIONS_LIMIT && oldest !== undefined) this.#sessions.delete(oldest)
    const session = Buffer.from(random.bytes(24)).toString('base64url')
    this.#sessions.set(session, { operatorId, name, verifier, atMs: clock.elapsed() })
    return { ok: true, session, operatorId, name }
  }

  #activeSession(session: string | undefined): Session | undefined {
    const found = session === undefined ? undefined : this.#sessions.get(session)
    if (!found || session === undefined) return undefined
    const { pin, badge, card } = this.#recordOf(found.operatorId) ?? {}
    const isValid = [pin, badge, card].some((each) => each && isDeepStrictEqual(each, found.verifier))
    if (isValid && this.#platform.clock.elapsed() - found.atMs <= IDLE_MS) return found
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

interface LaneOperatorsParts {
  operators: Operators
  states: LaneStates
  /** True if the policy lists the device. */
  isKnown(deviceId: string): boolean
  onOperator(deviceId: string, name: string | null): void
  /** Called after an operator signed in at the device: denied tags may be granted now. */
  onSignIn(deviceId: string): void
}

/** The operators who are signed in at the lanes. */
export class LaneOperators {
  readonly #parts: LaneOperatorsParts

  constructor(parts: LaneOperatorsParts) {
    this.#parts = parts
  }

  signIn(deviceId: string, proof: Proof, callerId: string): SignInResult {
    const { operators, states, isKnown, onOperator, onSignIn } = this.#parts
    const opened = operators.signIn(proof, callerId)
    if (!opened.ok || !isKnown(deviceId)) return opened
    // Ends the session of the previous operator.
    const state = states.of(deviceId)
    if (state.operatorSession !== undefined) operators.close(state.operatorSession)
    state.operatorSession = opened.session
    onOperator(deviceId, opened.name)
    onSignIn(deviceId)
    return opened
  }

  /** Signs an operator in with a badge or card that a device has read. */
  signInWithProof(deviceId: string, proof: Proof, callerId = `device ${deviceId}`): ScanResult {
    const opened = this.signIn(deviceId, proof, callerId)
    if (!opened.ok) return { kind: 'not_understood', why: opened.reason === 'wrong' ? 'wrong_badge' : opened.reason }
    return { kind: 'operator', name: opened.name }
  }

  /** The operator at a device. Restarts the idle time, because the operator pressed a button. */
  actingAt(deviceId: string): { operatorId: string; name: string } | undefined {
    const { operators, states } = this.#parts
    return operators.find(states.find(deviceId)?.operatorSession)
  }

  nameAt(deviceId: string): string | undefined {
    const { operators, states } = this.#parts
    return operators.peek(states.find(deviceId)?.operatorSession)?.name
  }

  signOut(deviceId: string): void {
    const { operators, states, onOperator } = this.#parts
    const state = states.find(deviceId)
    if (state?.operatorSession === undefined) return
    operators.close(state.operatorSession)
    delete state.operatorSession
    onOperator(deviceId, null)
  }
}
