import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import {
  awaitDenials,
  endRestored,
  isRestored,
  noteForked,
  noteOnlineOnly,
} from '../../trust/revocation/untrusted-ledger.ts'
import type { LedgerView } from './sign-messages.ts'

/** What the cloud says of our ledger, at each login. */
export interface Greeting {
  generation: number
  /** How far the deny list goes, in which is what the ledger may have forgotten. */
  denySeq: number
  onlineOnlyUntilMs: number | null
  forked: boolean
}

/** What the agent says of its ledger at each login, and what it does on the answer (contracts §5, rollback). */
export interface LedgerGreetings {
  readonly view: LedgerView
  take(answer: Greeting): void
  /** There are two of this ledger, or no longer; answers whether that is new. */
  takeForked(isForked: boolean): boolean
}

/** Greets for this ledger. */
export function ledgerGreeting(ledger: Ledger, log: Log): LedgerGreetings {
  let greeted = false

  function takeForked(isForked: boolean): boolean {
    if (!noteForked(ledger, isForked)) return false
    if (isForked)
      log.warn(
        { ledger: ledger.ledgerId },
        'there are two copies of this ledger: nothing is released without the cloud’s yes until somebody decides (resolveAgentFork)',
      )
    else log.info({ ledger: ledger.ledgerId }, 'this ledger is trusted again')
    return true
  }

  return {
    view: {
      get generation() {
        return ledger.generation
      },
      // Before the first login as it was found: what was written since would hide that it had been put back.
      get hello() {
        return greeted ? ledger.journal.head : ledger.openedAt
      },
      get restored() {
        return isRestored(ledger)
      },
      get resync() {
        return ledger.cloudGeneration.underWay
      },
    },
    takeForked,
    take({ generation, denySeq, onlineOnlyUntilMs, forked }) {
      greeted = true
      const isNew = generation > ledger.generation
      if (isNew) log.warn({ generation }, 'the ledger had been put back: it goes on as a new generation')
      ledger.adopt(generation, () => {
        awaitDenials(ledger.marks, denySeq)
        endRestored(ledger.marks)
      })
      if (isNew) ledger.acceptPosition()
      noteOnlineOnly(ledger, onlineOnlyUntilMs)
      takeForked(forked)
    },
  }
}
