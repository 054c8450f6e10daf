import { decodeClaims } from '../../policy/documents/decode-claims.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { Signer } from '../../policy/documents/keys.ts'
import {
  RELEASE_NOTICE_LIFE,
  ReleaseNotice,
  SILENT_SECONDS,
  type Release,
} from '../../policy/documents/release-notice.ts'
import { openDocument, signDocument } from '../../policy/documents/signed-document.ts'
import { retryDelays, type Cancel, type Platform } from '../../policy/platform.ts'
import type { Log } from '../log.ts'
import type { AgentClock } from '../trust/time/clock.ts'
import type { Trust } from '../trust/trust.ts'
import { askingLimit } from './asking-limit.ts'
import { httpClient, type Fetch } from '../link/wire/http-client.ts'
import { agentKeys, storeAgent } from './store-agents.ts'

/**
 *   release confirmed ─ signed notice ──▶ each agent of the store with a gate: sender known? fresh? proof holds? ─▶ its gates
 *                          ▲ └ no answer ─ waits, newest first
 *                          └──────────────────┘
 *
 * How the gates of a store learn what its other agents have released, over the store's own network. The release itself never
 * waits for any of this.
 */
export interface ReleaseNotices {
  /** Sends a release of this agent to every agent of the store that has a gate. Returns at once, never throws. */
  send(release: Release): void
  /** Takes a notice of another agent. */
  take(text: string): NoticeReply
  /** Notices that wait for an agent. */
  readonly waiting: number
  stop(): void
}

export type NoticeReply =
  | { kind: 'taken' }
  /** Not signed by an agent of this store. */
  | { kind: 'not_genuine' }
  /** Genuine, but it silences nothing. */
  | { kind: 'refused'; why: string }
  | { kind: 'too_many'; retryAfterSeconds: number }

export interface ReleaseNoticesParts {
  platform: Platform
  agentId: string
  storeId: string
  trust: Pick<Trust, 'policy'>
  clock: Pick<AgentClock, 'now'>
  signer(): Signer
  fetch: Fetch
  log: Log
  /** A genuine notice of this agent: checks its proof and silences the gates; why not, where it does not. */
  onNotice(release: Release, senderId: string): string | undefined
}

/** An agent that does not answer within this is offline; its notices wait, ms. */
const ANSWER_WITHIN_MS = 1_000
const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
/** Requests to one agent at once; further releases wait for their turn. */
const AT_ONCE = 8
/** Notices that wait for one agent; the oldest makes room. */
const WAITING_LIMIT = 500
/** An agent announces at most so many releases; more than its devices can make. */
const ANNOUNCING = { perSecond: 20, burst: 60 }
/** Clocks in a store may differ by so much, s. */
const CLOCKS_DIFFER_S = 60
/** Of a refusal or a full queue the log says so at most so often, ms. */
const LOG_EVERY_MS = 60_000

/** One agent that has to know. */
interface Target {
  readonly agentId: string
  /** The newest last. */
  waiting: Release[]
  inFlight: number
  delays: Generator<number, never>
  retry: Cancel | undefined
}

/** Nothing was released yet. */
export function openReleaseNotices(parts: ReleaseNoticesParts): ReleaseNotices {
  const { platform, agentId, storeId, trust, clock, signer, fetch, log } = parts
  const targets = new Map<string, Target>()
  const announcing = askingLimit(platform.clock, ANNOUNCING)
  let loggedMs = Number.NEGATIVE_INFINITY
  let isStopped = false

  const newDelays = () => retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)

  function targetOf(id: string): Target {
    const known = targets.get(id)
    if (known) return known
    const target: Target = { agentId: id, waiting: [], inFlight: 0, delays: newDelays(), retry: undefined }
    targets.set(id, target)
    return target
  }

  /** The other agents of the store that have a gate. */
  function agentsWithGates(): string[] {
    const owners = (trust.policy?.devices ?? []).flatMap(({ deviceType, revoked, agentId: owner }) =>
      deviceType === 'exit_gate' && !revoked && owner !== null && owner !== agentId ? [owner] : [],
    )
    return [...new Set(owners)].filter((id) => storeAgent(trust, id) !== undefined)
  }

  function sign(release: Release): string {
    const iat = Math.max(0, Math.floor(clock.now().nowMs / 1_000))
    const claims = { aud: storeId, iat, exp: iat + RELEASE_NOTICE_LIFE, iss: agentId, ...release }
    return signDocument(DOCUMENT_KINDS.release, claims, signer())
  }

  /** `done`: it knows, or will never take it. */
  async function post(target: Target, release: Release): Promise<'done' | 'later'> {
    const agent = storeAgent(trust, target.agentId)
    // It was revoked meanwhile, or nobody walks out with that any more.
    if (!agent || clock.now().nowMs / 1_000 - release.releasedS >= SILENT_SECONDS) return 'done'
    if (agent.url === null) return 'later'
    const answer = await httpClient(`${agent.url}/v1`, fetch, platform).post(
      'releases',
      { notice: sign(release) },
      { timeoutMs: ANSWER_WITHIN_MS },
    )
    if (answer.kind === 'answered') return 'done'
    if (answer.kind === 'unreachable' || answer.status === 429 || answer.status >= 500) return 'later'
    warn({ agentId: target.agentId, code: answer.code }, `another agent does not take a release: ${answer.message}`)
    return 'done'
  }

  function warn(fields: Record<string, unknown>, message: string): void {
    const nowMs = platform.clock.elapsed()
    if (nowMs - loggedMs < LOG_EVERY_MS) return
    loggedMs = nowMs
    log.warn(fields, message)
  }

  function keep(target: Target, release: Release): void {
    if (target.waiting.length >= WAITING_LIMIT) {
      target.waiting.shift()
      warn({ agentId: target.agentId }, 'too many releases wait for an agent: its gates may alarm for the oldest')
    }
    target.waiting.push(release)
  }

  async function deliver(target: Target, release: Release): Promise<void> {
    target.inFlight++
    // What fails here is a fault of ours, and no release depends on it.
    const result = await post(target, release).catch((error: unknown) => {
      log.error({ err: error }, 'a release could not be announced')
      return 'done' as const
    })
    target.inFlight--
    if (isStopped) return
    if (result === 'later') {
      keep(target, release)
      target.retry ??= platform.timers.after(target.delays.next().value, () => {
        target.retry = undefined
        sendNext(target)
      })
      return
    }
    target.delays = newDelays()
    target.retry?.()
    target.retry = undefined
    sendNext(target)
  }

  /** The newest first: whoever has just got a tag off is on the way out. */
  function sendNext(target: Target): void {
    const release = target.inFlight < AT_ONCE ? target.waiting.pop() : undefined
    if (release) void deliver(target, release)
  }

  function isOfNow({ iat, exp }: ReleaseNotice): boolean {
    const { nowMs, trust: known } = clock.now()
    const nowS = nowMs / 1_000
    return known !== 'none' && iat - CLOCKS_DIFFER_S <= nowS && nowS < exp + CLOCKS_DIFFER_S
  }

  return {
    send(release) {
      for (const id of agentsWithGates()) {
        const target = targetOf(id)
        if (target.inFlight < AT_ONCE) void deliver(target, release)
        else keep(target, release)
      }
    },
    take(text) {
      const { iss } = decodeClaims(text)
      if (typeof iss !== 'string' || iss === agentId) return { kind: 'not_genuine' }
      const opened = openDocument<ReleaseNotice>(text, DOCUMENT_KINDS.release, {
        keys: agentKeys(trust, iss),
        audience: storeId,
      })
      if (!opened.ok) return { kind: 'not_genuine' }
      // Counted once it is known who sends: no agent uses up what another may announce.
      const retryAfterSeconds = announcing.take(iss)
      if (retryAfterSeconds > 0) return { kind: 'too_many', retryAfterSeconds }
      const notice = ReleaseNotice.safeParse(opened.claims)
      if (!notice.success || notice.data.iss !== iss) return { kind: 'refused', why: 'the claims are not of a release' }
      if (!isOfNow(notice.data)) return { kind: 'refused', why: 'the notice is not of now' }
      const why = parts.onNotice(notice.data, iss)
      return why === undefined ? { kind: 'taken' } : { kind: 'refused', why }
    },
    get waiting() {
      return [...targets.values()].reduce((sum, { waiting, inFlight }) => sum + waiting.length + inFlight, 0)
    },
    stop() {
      isStopped = true
      for (const { retry } of targets.values()) retry?.()
    },
  }
}
