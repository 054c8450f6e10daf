import type { Signer } from '../../../policy/documents/keys.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Log } from '../../log.ts'
import type { Identity } from '../../identity/identity.ts'
import type { CallLimits, CloudAnswer, HttpClient } from '../wire/http-client.ts'
import type { Greeting } from './ledger-greeting.ts'
import type { Messages } from './messages.ts'

/** The login at the cloud, and whether the cloud is there. */
export interface Session {
  readonly isOnline: boolean
  readonly offlineSinceMs: number | null
  /** Whether a new login is due. */
  readonly isOld: boolean
  /** The last login was answered, with a no. */
  readonly wasRefused: boolean
  /** Logs in, `by` another key than the present one if need be; answers the challenge for the broker, or undefined when there was no yes. */
  login(by?: Signer): Promise<string | undefined>
  /** A call with the login; no answer means that there is no connection. */
  call(operation: string, body: object): Promise<CloudAnswer>
  goOnline(): void
  goOffline(why: string): void
}

export interface SessionParts {
  platform: Platform
  identity: Identity
  http: HttpClient
  messages: Messages
  log: Log
  nowMs(): number
  onChange(): void
  onRefused(what: string): void
  /** What the cloud says of our ledger, at each login. */
  onGreeting(ledger: Greeting): void
  /** The key of the operators' verifiers, as the login answer contains it. */
  onStoreKey(key: unknown): void
  /** Instead of a login, a word for an agent that was revoked. */
  onCommand(command: string): void
}

/** How long one call may take: a person waits at the station. */
export const CALL_MS = 3_000
/** Whole pages of items may come over a line of 64 kbit/s, and batches of events go the other way: for them nobody waits. */
const TRANSFER_MS = 120_000
const SENT_PER_MS = 8
const TRANSFERS: ReadonlySet<string> = new Set(['fetchSignedDocuments', 'reportProtectionEvents'])
/** A login ends after 15 minutes; a new one is made well before. */
const LOGIN_MS = 12 * 60_000

/** Logs in with the agent's key and keeps the access token fresh. */
export function openSession(parts: SessionParts): Session {
  const { platform, identity, http, messages, log } = parts
  let token: string | undefined
  let oldAtMs = 0
  let wasRefused = false
  let offlineSinceMs: number | null = platform.clock.wall()

  function goOffline(why: string): void {
    token = undefined
    if (offlineSinceMs !== null) return
    offlineSinceMs = platform.clock.wall()
    log.warn({ why }, 'the cloud is out of reach: this agent decides alone')
    parts.onChange()
  }

  function greet(ledger: unknown): void {
    const { generation, denySeq, onlineOnlyUntil, forked } = (ledger ?? {}) as {
      generation?: unknown
      denySeq?: unknown
      onlineOnlyUntil?: unknown
      forked?: unknown
    }
    if (!Number.isSafeInteger(generation) || !Number.isSafeInteger(denySeq)) return
    const untilMs = typeof onlineOnlyUntil === 'string' ? Date.parse(onlineOnlyUntil) : NaN
    parts.onGreeting({
      generation: generation as number,
      denySeq: denySeq as number,
      onlineOnlyUntilMs: Number.isNaN(untilMs) ? null : untilMs,
      forked: forked === true,
    })
  }

  return {
    get isOnline() {
      return offlineSinceMs === null
    },
    get offlineSinceMs() {
      return offlineSinceMs
    },
    get isOld() {
      return platform.clock.elapsed() >= oldAtMs
    },
    get wasRefused() {
      return wasRefused
    },
    goOffline,
    goOnline() {
      if (offlineSinceMs === null) return
      offlineSinceMs = null
      log.info({ cloud: identity.cloud }, 'the cloud is in reach')
      parts.onChange()
    },
    async login(by) {
      const { agentId } = identity
      const first = await http.post('agentLogin', { agentId }, { timeoutMs: CALL_MS })
      const challenge = first.kind === 'answered' ? first.body['challenge'] : undefined
      if (typeof challenge !== 'string') return undefined
      const second = await http.post(
        'agentLogin',
        { agentId, assertion: messages.assertion(challenge, parts.nowMs(), by) },
        { timeoutMs: CALL_MS },
      )
      wasRefused = second.kind === 'refused' && second.status === 401
      if (second.kind === 'refused') parts.onRefused(`login: ${second.code}`)
      if (second.kind !== 'answered') return undefined
      const { accessToken, mqttChallenge, revoked } = second.body
      if (typeof revoked === 'string') parts.onCommand(revoked)
      if (typeof accessToken !== 'string' || typeof mqttChallenge !== 'string') return undefined
      greet(second.body['ledger'])
      parts.onStoreKey(second.body['storeKey'])
      token = accessToken
      oldAtMs = platform.clock.elapsed() + LOGIN_MS
      return mqttChallenge
    },
    async call(operation, body) {
      if (token === undefined) return { kind: 'unreachable' }
      const answer = await http.post(operation, body, { token, ...limitsOf(operation, body) })
      if (answer.kind === 'unreachable') goOffline(`${operation} was not answered`)
      if (answer.kind === 'refused' && answer.status === 401) goOffline('the login has ended')
      return answer
    },
  }
}

/** What is long may take long: to send, before anything can be heard, and to arrive. */
function limitsOf(operation: string, body: object): CallLimits {
  if (!TRANSFERS.has(operation)) return { timeoutMs: CALL_MS }
  const { batch } = body as { batch?: unknown }
  const sendingMs = typeof batch === 'string' ? Math.ceil(batch.length / SENT_PER_MS) : 0
  return { timeoutMs: CALL_MS + sendingMs, wholeMs: TRANSFER_MS }
}
