import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import {
  requireDenials,
  clearRestored,
  isRestored,
  storeForked,
  storeOnlineOnly,
} from '../../trust/revocation/untrusted-ledger.ts'
import type { LedgerState } from './sign-messages.ts'

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
 * 0017).
 */
export interface LedgerHandshake {
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
