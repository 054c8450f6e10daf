import type { Cancel, Timers } from '../../policy/platform.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'

/**
 * Voids tokens: the ledger refuses the token for ever, and a journal row lets the cloud free its lease (ADR leases).
 * Steps that were used before stay used.
 */
export interface TokenVoider {
  /** Voids the token now. Safe to repeat. */
  voidNow(nonce: string): void
  /** Voids the token if none of its steps was used. Resolves when the void is durable or has failed. */
  voidIfUnused(nonce: string): Promise<void>
  /** Voids the token after 30 s if it is still unused. */
  voidUnlessUsedSoon(nonce: string): void
  stop(): void
}

/** Time in which a fetched token must be used, ms. */
const VOID_AFTER_MS = 30_000
/** Maximum token lifetime plus clock guard, s. */
const LONGEST_TOKEN_LIFE_S = 660
/** Maximum voided nonces in memory. Voiding a token twice is harmless. */
const VOIDED_LIMIT = 1_000
/**
 * Maximum timers. If no timer is left, an unused token is not voided, and its right stays leased until the token
 * expires.
 */
const TIMERS_LIMIT = 1_000

/** Opens the voider for tokens of this ledger. */
export function openTokenVoider({
  ledger,
  timers,
  nowMs,
  log,
}: {
  ledger: Pick<Ledger, 'commits' | 'claims' | 'journal'>
  timers: Timers
  nowMs(): number
  log: Log
}): TokenVoider {
  const voided = new Set<string>()
  const timersByNonce = new Map<string, Cancel>()

  function voidToken(nonce: string, onlyUnused: boolean): Promise<void> {
    return ledger.commits
      .durably(() => {
        const used = ledger.claims.claimedSteps(nonce)
        if (voided.has(nonce) || (onlyUnused && used > 0)) return false
        const atMs = nowMs()
        ledger.claims.deny(nonce, Math.floor(atMs / 1_000) + LONGEST_TOKEN_LIFE_S)
        // If a step was used, the time of the row is 1 ms later, so that a claim of the same millisecond comes first.
        ledger.journal.append({ atMs: Math.floor(atMs) + (used > 0 ? 1 : 0), evidence: { kind: 'void', nonce } })
        return true
      })
      .then((isVoided) => {
        if (voided.size >= VOIDED_LIMIT) voided.clear()
        if (isVoided) voided.add(nonce)
      })
      .catch((error: unknown) => {
        if (error instanceof LedgerFull)
          log.warn({}, 'the disk is full: a token was not voided and stays leased until it expires')
        else log.error({ err: error }, 'a token could not be voided and stays leased until it expires')
      })
  }

  return {
    voidNow: (nonce) => void voidToken(nonce, false),
    voidIfUnused: (nonce) => voidToken(nonce, true),
    voidUnlessUsedSoon(nonce) {
      if (timersByNonce.has(nonce) || timersByNonce.size >= TIMERS_LIMIT) return
      const cancel = timers.after(VOID_AFTER_MS, () => {
        timersByNonce.delete(nonce)
        void voidToken(nonce, true)
      })
      timersByNonce.set(nonce, cancel)
    },
    stop() {
      for (const cancel of timersByNonce.values()) cancel()
      timersByNonce.clear()
    },
  }
}
