import type { Signer } from '../../../policy/documents/keys.ts'
import type { Platform, Clock } from '../../../policy/platform.ts'
import { UNTAG_VERSION } from '../../../policy/version.ts'
import type { Log } from '../../log.ts'
import type { Identity } from '../../identity/identity.ts'
import type { CallLimits, CloudAnswer, HttpClient } from '../wire/http-client.ts'
import type { MessageSigner, LedgerState } from './sign-messages.ts'
import type { StoreKeys } from '../../identity/store-keys.ts'
import type { Trust } from '../../trust/trust.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import {
  requireDenials,
  clearRestored,
  isRestored,
  storeForked,
  storeOnlineOnly,
} from '../../trust/revocation/untrusted-ledger.ts'

/** Answer of the cloud about this ledger, at each login. */
export interface HandshakeAnswer {
  generation: number
  /** Number of the newest deny list entry. The list contains the uses and denials that a restored ledger may lack. */
  denySeq: number
  onlineOnlyUntilMs: number | null
  forked: boolean
}

/**
 * The state of the ledger that the agent sends at each login, and the reaction of the agent to the cloud's answer (ADR
 * agents).
 */
interface LedgerHandshake {
  readonly state: LedgerState
  onAnswer(answer: HandshakeAnswer): void
  /** Stores whether the ledger is forked. Returns true if the state changed. */
  onForked(isForked: boolean): boolean
}

/** Opens the handshake for this ledger. */
export function ledgerHandshake(ledger: Ledger, log: Log): LedgerHandshake {
  let isAnswered = false

  function onForked(isForked: boolean): boolean {
    if (!storeForked(ledger, isForked)) return false
    if (isForked)
      log.warn(
        { ledger: ledger.ledgerId },
        'there are two copies of this ledger: each release needs the cloud until you decide with resolveAgentFork',
      )
    else log.info({ ledger: ledger.ledgerId }, 'this ledger is trusted again')
    return true
  }

  return {
    state: {
      get generation() {
        return ledger.generation
      },
      // Until the cloud has answered once, `head` is the position at the start, because newer rows would hide a
      // rollback.
      get head() {
        return isAnswered ? ledger.journal.head : ledger.openedAt
      },
      get restored() {
        return isRestored(ledger)
      },
      get resync() {
        return ledger.cloudGeneration.resync
      },
    },
    onForked,
    onAnswer({ generation, denySeq, onlineOnlyUntilMs, forked }) {
      isAnswered = true
      const isNew = generation > ledger.generation
      if (isNew) log.warn({ generation }, 'the ledger was restored: it continues as a new generation')
      ledger.startGeneration(generation, () => {
        requireDenials(ledger.metadata, denySeq)
        clearRestored(ledger.metadata)
      })
      if (isNew) ledger.acceptPosition()
      storeOnlineOnly(ledger, onlineOnlyUntilMs)
      onForked(forked)
    },
  }
}

/**
 * Logs in again if the policy names a store key that the agent lacks. The store key changes when an agent is revoked.
 */
export interface StoreKeyLogin {
  /** Time until the next login for the key is due, ms. Undefined if the agent holds the key. */
  readonly waitMs: number | undefined
  run(): Promise<void>
}

interface StoreKeyLoginParts {
  clock: Pick<Clock, 'elapsed'>
  trust: Pick<Trust, 'policy'>
  keys: Pick<StoreKeys, 'find'>
  login(): Promise<unknown>
}

/** Delay before the next login, if the last one did not deliver the key, ms. */
const RETRY_MS = 5_000

/** Creates the check. The first login for a key is due at once. */
export function storeKeyLogin({ clock, trust, keys, login }: StoreKeyLoginParts): StoreKeyLogin {
  let requested: { id: string; atMs: number } | undefined

  function missing(): string | undefined {
    const id = trust.policy?.storeKey
    return keys.find(id) === undefined ? id : undefined
  }

  return {
    get waitMs() {
      const id = missing()
      if (id === undefined) return undefined
      return id === requested?.id ? Math.max(0, requested.atMs + RETRY_MS - clock.elapsed()) : 0
    },
    async run() {
      const id = missing()
      if (id === undefined) return
      requested = { id, atMs: clock.elapsed() }
      // If this login fails, the access token of the last login stays valid.
      await login()
    },
  }
}

/**
 * The login at the cloud, and whether the cloud is reachable. The agent signs a challenge of the cloud and receives an
 * access token for 15 minutes. The link calls `goOnline` when it has also fetched the documents.
 */

interface CloudSessionParts {
  platform: Platform
  identity: Identity
  http: HttpClient
  messages: MessageSigner
  log: Log
  nowMs(): number
  onChange(): void
  onRefused(what: string): void
  /** Called with the ledger part of each login answer. */
  onHandshake(ledger: HandshakeAnswer): void
  /**
   * Called with the store key of each login answer. With this key, the agent checks PINs, badges and cards of
   * operators.
   */
  onStoreKey(key: unknown): void
  /** Called with the signed revocation that a revoked agent receives in place of a login. */
  onCommand(command: string): void
}

/** Time limit of one call, ms. The limit is short, because a person waits at the station. */
export const CALL_MS = 3_000
/**
 * Time limit for item pages and event batches, ms. The limit is long, because a line may have only 64 kbit/s and no
 * person waits.
 */
const TRANSFER_MS = 120_000
/** Characters that a line of 64 kbit/s sends in 1 ms. */
const SENT_PER_MS = 8
const TRANSFERS: ReadonlySet<string> = new Set(['fetchSignedDocuments', 'reportProtectionEvents'])
/** Time until the next login, ms. An access token expires after 15 minutes. */
const LOGIN_MS = 12 * 60_000

/** Logs in with the agent's key and renews the access token. */
export class CloudSession {
  readonly #parts: CloudSessionParts
  #token: string | undefined
  #loginDueAtMs = 0
  #wasRefused = false
  #offlineSinceMs: number | null
  /** The last logged cause of a failed login. The log gets each cause once, not at each attempt. */
  #loggedCause: string | undefined

  constructor(parts: CloudSessionParts) {
    this.#parts = parts
    this.#offlineSinceMs = parts.platform.clock.wall()
  }

  get isOnline(): boolean {
    return this.#offlineSinceMs === null
  }

  get offlineSinceMs(): number | null {
    return this.#offlineSinceMs
  }

  /** True if a new login is due. */
  get isLoginDue(): boolean {
    return this.#parts.platform.clock.elapsed() >= this.#loginDueAtMs
  }

  /** True if the cloud rejected the last login with 401. */
  get wasRefused(): boolean {
    return this.#wasRefused
  }

  goOnline(): void {
    if (this.isOnline) return
    this.#offlineSinceMs = null
    this.#loggedCause = undefined
    const { log, identity, onChange } = this.#parts
    log.info({ cloud: identity.cloud }, 'the cloud is online')
    onChange()
  }

  goOffline(why: string): void {
    this.#token = undefined
    if (!this.isOnline) return
    const { platform, log, onChange } = this.#parts
    this.#offlineSinceMs = platform.clock.wall()
    log.warn({ why }, 'the cloud is offline: this agent decides alone')
    onChange()
  }

  /**
   * Logs in with `by`, by default with the current key. Returns the challenge for the broker, or undefined if the login
   * failed.
   */
  async login(by?: Signer): Promise<string | undefined> {
    const { platform, onCommand, onStoreKey } = this.#parts
    const challenge = await this.#challenge()
    const body = challenge === undefined ? undefined : await this.#answer(challenge, by)
    if (!body) return undefined
    const { accessToken, mqttChallenge, revoked, ledger, storeKey } = body
    if (typeof revoked === 'string') onCommand(revoked)
    if (typeof accessToken !== 'string' || typeof mqttChallenge !== 'string') return undefined
    this.#reportHandshake(ledger)
    onStoreKey(storeKey)
    this.#token = accessToken
    this.#loginDueAtMs = platform.clock.elapsed() + LOGIN_MS
    return mqttChallenge
  }

  /**
   * Calls an operation with the access token. The link goes offline if there is no answer, or if the token is no longer
   * valid.
   */
  async call(operation: string, body: object): Promise<CloudAnswer> {
    if (this.#token === undefined) return { kind: 'unreachable' }
    const limits = limitsOf(operation, body)
    const answer = await this.#parts.http.post(operation, body, { token: this.#token, ...limits })
    if (answer.kind === 'unreachable') this.goOffline(`${operation} was not answered`)
    if (answer.kind === 'refused' && answer.status === 401) this.goOffline('the login has ended')
    return answer
  }

  async #challenge(): Promise<string | undefined> {
    const { http, identity } = this.#parts
    const answer = await http.post('agentLogin', { agentId: identity.agentId }, { timeoutMs: CALL_MS })
    if (answer.kind === 'unreachable') this.#logCause(answer.why)
    const challenge = answer.kind === 'answered' ? answer.body['challenge'] : undefined
    return typeof challenge === 'string' ? challenge : undefined
  }

  #logCause(why = 'the answer is not one of the cloud'): void {
    const { log, identity } = this.#parts
    if (why === this.#loggedCause) return
    this.#loggedCause = why
    log.warn({ why, cloud: identity.cloud }, 'the cloud cannot be reached')
  }

  async #answer(challenge: string, by: Signer | undefined): Promise<Record<string, unknown> | undefined> {
    const { http, identity, messages, nowMs, onRefused } = this.#parts
    const assertion = messages.assertion(challenge, nowMs(), by)
    const body = { agentId: identity.agentId, assertion, release: UNTAG_VERSION }
    const answer = await http.post('agentLogin', body, { timeoutMs: CALL_MS })
    this.#wasRefused = answer.kind === 'refused' && answer.status === 401
    if (answer.kind === 'refused') onRefused(`login: ${answer.code}: ${answer.message}`)
    return answer.kind === 'answered' ? answer.body : undefined
  }

  #reportHandshake(ledger: unknown): void {
    const { generation, denySeq, onlineOnlyUntil, forked } = (ledger ?? {}) as {
      generation?: unknown
      denySeq?: unknown
      onlineOnlyUntil?: unknown
      forked?: unknown
    }
    if (!Number.isSafeInteger(generation) || !Number.isSafeInteger(denySeq)) return
    const untilMs = typeof onlineOnlyUntil === 'string' ? Date.parse(onlineOnlyUntil) : NaN
    this.#parts.onHandshake({
      generation: generation as number,
      denySeq: denySeq as number,
      onlineOnlyUntilMs: Number.isNaN(untilMs) ? null : untilMs,
      forked: forked === true,
    })
  }
}

/** A long request needs time to send before the answer can start, and a long answer needs time to arrive. */
function limitsOf(operation: string, body: object): CallLimits {
  if (!TRANSFERS.has(operation)) return { timeoutMs: CALL_MS }
  const { batch } = body as { batch?: unknown }
  const sendingMs = typeof batch === 'string' ? Math.ceil(batch.length / SENT_PER_MS) : 0
  return { timeoutMs: CALL_MS + sendingMs, totalMs: TRANSFER_MS }
}
