import { decodeUnverifiedClaims, openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { Signer } from '../../policy/documents/keys.ts'
import {
  RELEASE_NOTICE_LIFE,
  ReleaseNotice,
  SILENT_SECONDS,
  type Announced,
} from '../../policy/documents/home-messages.ts'
import { type Platform, retryDelays, type Cancel } from '../../policy/platform.ts'
import type { Log } from '../log.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import { messageTimes } from '../trust/time/cloud-contact.ts'
import type { Trust } from '../trust/trust.ts'
import { peerRateLimit, type PeerRateLimit, agentKeys, storeAgent } from './store-agents.ts'
import { httpClient, type Fetch } from '../link/wire/http-client.ts'

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
/** Maximum concurrent requests to one agent. Further notices wait. */
const AT_ONCE = 8
/** Maximum waiting notices for one agent. A further notice replaces the oldest notice. */
const WAITING_LIMIT = 500

interface NoticeQueueParts {
  platform: Pick<Platform, 'timers' | 'random'>
  log: Log
  /** Sends a notice. `done`: the agent accepted the notice, or a retry is useless. */
  post(release: Announced): Promise<'done' | 'later'>
  /** Called when the queue discards its oldest notice. */
  onFull(): void
}

/**
 * Release notices for one agent. The queue sends the newest notice first, because the shopper with these goods leaves
 * now. After an attempt without an answer, the queue pauses with jitter, at most 15 s.
 */
class NoticeQueue {
  readonly #parts: NoticeQueueParts
  /** Waiting notices, newest last. */
  readonly #waiting: Announced[] = []
  #inFlight = 0
  #delays: Generator<number, never>
  #retry: Cancel | undefined
  #isStopped = false

  constructor(parts: NoticeQueueParts) {
    this.#parts = parts
    this.#delays = this.#newDelays()
  }

  get size(): number {
    return this.#waiting.length + this.#inFlight
  }

  add(release: Announced): void {
    if (this.#inFlight < AT_ONCE) void this.#deliver(release)
    else this.#enqueue(release)
  }

  stop(): void {
    this.#isStopped = true
    this.#retry?.()
  }

  async #deliver(release: Announced): Promise<void> {
    const { post, log } = this.#parts
    this.#inFlight++
    // If `post` rejects, this program has a defect. The defect must not stop the queue.
    const result = await post(release).catch((error: unknown) => {
      log.error({ err: error }, 'a release notice could not be sent')
      return 'done' as const
    })
    this.#inFlight--
    if (this.#isStopped) return
    if (result === 'later') {
      this.#enqueue(release)
      this.#retryLater()
      return
    }
    this.#delays = this.#newDelays()
    this.#retry?.()
    this.#retry = undefined
    this.#sendNext()
  }

  #retryLater(): void {
    this.#retry ??= this.#parts.platform.timers.after(this.#delays.next().value, () => {
      this.#retry = undefined
      this.#sendNext()
    })
  }

  #sendNext(): void {
    const release = this.#inFlight < AT_ONCE ? this.#waiting.pop() : undefined
    if (release) void this.#deliver(release)
  }

  #enqueue(release: Announced): void {
    if (this.#waiting.length >= WAITING_LIMIT) {
      this.#waiting.shift()
      this.#parts.onFull()
    }
    this.#waiting.push(release)
  }

  #newDelays(): Generator<number, never> {
    return retryDelays(this.#parts.platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
  }
}

/**
 * Signed notices over the local network that inform the gates of a store about released units, and about those that left. The receiver checks
 * sender, time and proof. Without an answer the sender retries. A release never waits for its notice.
 */

type NoticeReply =
  | { kind: 'taken' }
  /** No other agent of this store signed the notice. */
  | { kind: 'not_genuine' }
  /** The notice is genuine, but the gates ignore it. */
  | { kind: 'refused'; why: string }
  | { kind: 'too_many'; retryAfterSeconds: number }

interface ReleaseNoticesParts {
  platform: Platform
  agentId: string
  storeId: string
  trust: Pick<Trust, 'policy'>
  clock: Pick<AgentClock, 'now'>
  signer(): Signer
  fetch: Fetch
  log: Log
  /** Checks the proof of a genuine notice and informs the gates. Returns the reason if the proof is not valid. */
  onNotice(release: Announced, senderId: string): string | undefined
}

/** Time limit for an answer, ms. If an agent does not answer in this time, the notices for this agent wait. */
const ANSWER_WITHIN_MS = 1_000
/**
 * Rate limit of received notices per agent. The limit is above the number of releases that the devices of one agent can
 * make.
 */
const NOTICE_RATE = { perSecond: 20, burst: 60 }
/** Maximum difference of clocks in a store, s (ADR trusted-time). */
const CLOCKS_DIFFER_S = 60
/** Minimum interval of log lines about refusals or a full queue, ms. */
const LOG_EVERY_MS = 60_000

/** Opens the release notices with empty queues. */
export class ReleaseNotices {
  readonly #parts: ReleaseNoticesParts
  readonly #queues = new Map<string, NoticeQueue>()
  readonly #limit: PeerRateLimit
  #loggedMs = Number.NEGATIVE_INFINITY
  #isStopped = false

  constructor(parts: ReleaseNoticesParts) {
    this.#parts = parts
    this.#limit = peerRateLimit(parts.platform.clock, NOTICE_RATE)
  }

  /** Sends a release of this agent, or an exit at its gate, to every agent of the store that has a gate. Returns at once, never throws. */
  send(release: Announced): void {
    for (const agentId of this.#agentsWithGates()) this.#queueOf(agentId).add(release)
  }

  /** Verifies a notice of another agent and passes it to the gates. */
  receive(text: string): NoticeReply {
    const { agentId, storeId, trust, onNotice } = this.#parts
    const { iss } = decodeUnverifiedClaims(text)
    if (typeof iss !== 'string' || iss === agentId) return { kind: 'not_genuine' }
    const opened = openDocument<ReleaseNotice>(text, DOCUMENT_KINDS.release, {
      keys: agentKeys(trust, iss),
      audience: storeId,
    })
    if (!opened.ok) return { kind: 'not_genuine' }
    // The rate limit comes after the signature check, so that no agent can use up the limit of another agent.
    const retryAfterSeconds = this.#limit.take(iss)
    if (retryAfterSeconds > 0) return { kind: 'too_many', retryAfterSeconds }
    const notice = ReleaseNotice.safeParse(opened.claims)
    if (!notice.success || notice.data.iss !== iss) return { kind: 'refused', why: 'the claims describe no release' }
    if (!this.#isCurrent(notice.data)) return { kind: 'refused', why: 'the time of the notice is not current' }
    const why = onNotice(notice.data, iss)
    return why === undefined ? { kind: 'taken' } : { kind: 'refused', why }
  }

  /** Number of notices without an acknowledgement, counted once for each receiver. */
  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, { size }) => sum + size, 0)
  }

  stop(): void {
    this.#isStopped = true
    for (const queue of this.#queues.values()) queue.stop()
  }

  #queueOf(agentId: string): NoticeQueue {
    const known = this.#queues.get(agentId)
    if (known) return known
    const { platform, log } = this.#parts
    const queue = new NoticeQueue({
      platform,
      log,
      post: (release) => this.#post(agentId, release),
      onFull: () =>
        this.#warn({ agentId }, 'too many release notices wait for an agent: its gates may alarm for the oldest units'),
    })
    if (this.#isStopped) queue.stop()
    this.#queues.set(agentId, queue)
    return queue
  }

  /** The other agents of the store that have a gate. */
  #agentsWithGates(): string[] {
    const { trust, agentId } = this.#parts
    const owners = (trust.policy?.devices ?? []).flatMap(({ deviceType, revoked, agentId: owner }) =>
      deviceType === 'exit_gate' && !revoked && owner !== null && owner !== agentId ? [owner] : [],
    )
    return [...new Set(owners)].filter((id) => storeAgent(trust, id) !== undefined)
  }

  async #post(agentId: string, release: Announced): Promise<'done' | 'later'> {
    const { trust, clock, fetch, platform } = this.#parts
    const agent = storeAgent(trust, agentId)
    // Gives up if the policy no longer lists the receiver, or if the gates would ignore the notice because of its age.
    if (!agent || clock.now().nowMs / 1_000 - release.releasedS >= SILENT_SECONDS) return 'done'
    if (agent.url === null) return 'later'
    const answer = await httpClient(`${agent.url}/v1`, fetch, platform).post(
      'releases',
      { notice: this.#sign(release) },
      { timeoutMs: ANSWER_WITHIN_MS },
    )
    if (answer.kind === 'answered') return 'done'
    if (answer.kind === 'unreachable' || answer.status === 429 || answer.status >= 500) return 'later'
    this.#warn({ agentId, code: answer.code }, `another agent rejected a release notice: ${answer.message}`)
    return 'done'
  }

  #sign(release: Announced): string {
    const { agentId, storeId, clock, signer } = this.#parts
    const claims = { aud: storeId, ...messageTimes(clock.now().nowMs, RELEASE_NOTICE_LIFE), iss: agentId, ...release }
    return signDocument(DOCUMENT_KINDS.release, claims, signer())
  }

  #isCurrent({ iat, exp }: ReleaseNotice): boolean {
    const { nowMs, trust: clockTrust } = this.#parts.clock.now()
    const nowS = nowMs / 1_000
    return clockTrust !== 'none' && iat - CLOCKS_DIFFER_S <= nowS && nowS < exp + CLOCKS_DIFFER_S
  }

  #warn(fields: Record<string, unknown>, message: string): void {
    const { platform, log } = this.#parts
    const nowMs = platform.clock.elapsed()
    if (nowMs - this.#loggedMs < LOG_EVERY_MS) return
    this.#loggedMs = nowMs
    log.warn(fields, message)
  }
}
