import { ROTATION_LIFE, type RotationClaims } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { publicJwk, type Signer } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { Randomness } from '../../../policy/platform.ts'
import { LedgerFailure } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import type { AgentKey } from '../../identity/identity.ts'
import { messageTimes } from '../../trust/time/cloud-contact.ts'
import type { CloudSession } from './cloud-session.ts'

/** Logs in, and renews the agent's key every 30 days or after `untag edge rotate-key`. */

interface KeyRenewalParts {
  agentId: string
  key: AgentKey
  session: CloudSession
  ledger: Pick<Ledger, 'metadata' | 'commits'>
  random: Randomness
  nowMs(): number
  log: Log
  onRefused(what: string): void
}

const RENEW_AFTER_MS = 30 * 86_400_000
/** Delay before the next attempt, if the disk could not store a change, ms. */
const POSTPONE_MS = 10 * 60_000
const KEY_SINCE = 'key_since_ms'
/** Metadata key that `untag edge rotate-key` sets while the agent runs. */
export const ROTATION_REQUESTED = 'rotate_key_asked'

/** Renews the key of one agent. */
export class KeyRenewal {
  readonly #parts: KeyRenewalParts
  #postponedUntilMs = 0

  constructor(parts: KeyRenewalParts) {
    this.#parts = parts
  }

  isDue(): boolean {
    const nowMs = this.#parts.nowMs()
    if (nowMs < this.#postponedUntilMs) return false
    const { key } = this.#parts
    const { metadata } = this.#parts.ledger
    const since = metadata.get(KEY_SINCE)
    // If the stored time is in the future, a wrong clock stored it.
    if (since === undefined || Number(since) > nowMs) this.#noteSince(nowMs)
    return (
      metadata.get(ROTATION_REQUESTED) === '1' ||
      key.pending !== undefined ||
      nowMs - Number(since ?? nowMs) > RENEW_AFTER_MS
    )
  }

  /** Returns the challenge for the broker, or undefined if the login failed. */
  async login(): Promise<string | undefined> {
    const challenge = await this.#logIn()
    if (challenge === undefined || !this.isDue()) return challenge
    const isNew = await this.#offer().catch((error: unknown) => this.#postpone(error))
    return isNew ? this.#logIn() : challenge
  }

  async #logIn(): Promise<string | undefined> {
    const { session, key } = this.#parts
    const challenge = await session.login()
    if (challenge !== undefined) return challenge
    // A restored cloud may know only a former key. The agent returns to a former key only after a successful login with
    // this key, because a refusal may have another reason.
    for (const former of key.former) {
      if (!session.wasRefused) return undefined
      const again = await session.login(former)
      if (again === undefined) continue
      key.returnTo(former)
      return again
    }
    return undefined
  }

  /** Offers a new key to the cloud. Returns true if the agent signs with the new key from now on. */
  async #offer(): Promise<boolean> {
    const { key, random, session, onRefused } = this.#parts
    key.begin(random)
    const { pending } = key
    if (!pending) return false
    const proof = this.#proof(pending.signer)
    const answer = await session.call('rotateAgentKey', { publicJwk: publicJwk(pending.x), proof })
    // 401 only means that the session has ended, so the new key may still be valid.
    if (answer.kind === 'refused' && answer.status < 500 && answer.status !== 429 && answer.status !== 401) {
      onRefused(`rotateAgentKey: ${answer.code}`)
      key.discard()
      this.#noteDone()
    }
    if (answer.kind !== 'answered') return false
    key.adopt()
    this.#noteDone()
    return true
  }

  #proof(next: Signer): string {
    const { agentId, key, nowMs } = this.#parts
    const times = messageTimes(nowMs(), ROTATION_LIFE)
    const claims: RotationClaims = { aud: agentId, ...times, formerKid: key.signer().kid }
    return signDocument(DOCUMENT_KINDS.rotation, claims, next)
  }

  #noteDone(): void {
    const { metadata, commits } = this.#parts.ledger
    commits.now(() => {
      metadata.set(ROTATION_REQUESTED, '0')
      metadata.set(KEY_SINCE, String(this.#parts.nowMs()))
    })
  }

  #noteSince(nowMs: number): void {
    const { metadata, commits } = this.#parts.ledger
    try {
      commits.now(() => metadata.set(KEY_SINCE, String(nowMs)))
    } catch (error) {
      this.#postpone(error)
    }
  }

  /** On a full disk the agent continues with the current key and retries later. */
  #postpone(error: unknown): void {
    if (error instanceof LedgerFailure) throw error
    const { nowMs, log } = this.#parts
    this.#postponedUntilMs = nowMs() + POSTPONE_MS
    log.warn({ err: error }, 'the new key of this agent could not be stored: the agent retries in ten minutes')
  }
}
