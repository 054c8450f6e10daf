import type { Cancel, Timers } from '../../policy/platform.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'

/**
 * Giving tokens up: a row of the ledger that refuses one for ever, and the word to the cloud that frees what it leased
 * (contracts §4). Steps that were used before stay used.
 */
export interface TokenVoider {
  /** Gives it up now. Said again, nothing more happens. */
  voidNow(nonce: string): void
  /** The same, unless a step of it was used; resolves when that is written down, or cannot be. */
  voidIfUnused(nonce: string): Promise<void>
  /** It was fetched for a scan: it is given up unless it is used soon. */
  voidUnlessUsedSoon(nonce: string): void
  stop(): void
}

/** What was fetched for a scan and not used by then is given up, ms. */
const VOID_AFTER_MS = 30_000
/** As long as any token can live, with the guard, seconds. */
const LONGEST_TOKEN_LIFE_S = 660
/** Nonces that are remembered; to give one up twice does no harm. */
const VOIDED_LIMIT = 1_000
/** Timers at once; a token beyond them ends by itself. */
const TIMERS_LIMIT = 1_000

/** Gives up tokens of this ledger. */
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
        // A claim of the same moment came before it.
        ledger.journal.append({ atMs: Math.floor(atMs) + (used > 0 ? 1 : 0), evidence: { kind: 'void', nonce } })
        return true
      })
      .then((isVoided) => {
        if (voided.size >= VOIDED_LIMIT) voided.clear()
        if (isVoided) voided.add(nonce)
      })
      .catch((error: unknown) => {
        if (error instanceof LedgerFull)
          log.warn({}, 'the disk is full: a token could not be given up and ends by itself')
        else log.error({ err: error }, 'a token could not be given up: it ends by itself')
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
