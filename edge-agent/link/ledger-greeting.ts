import { ONLINE_ONLY } from '../decisions/authorize.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'
import type { LedgerView } from './messages.ts'

/** What the agent says of its ledger at each login, and what it does on the answer (contracts §5, rollback). */
export interface LedgerGreetings {
  readonly view: LedgerView
  take(answer: { generation: number; onlineOnlyUntilMs: number | null }): void
}

/** Greets for this ledger. */
export function ledgerGreeting(ledger: Ledger, log: Log): LedgerGreetings {
  let greeted = false
  return {
    view: {
      get generation() {
        return ledger.generation
      },
      // Before the first login as it was found: what was written since would hide that it had been put back.
      get hello() {
        return greeted ? ledger.journal.head : ledger.openedAt
      },
      get resync() {
        return ledger.cloudGeneration.underWay
      },
    },
    take({ generation, onlineOnlyUntilMs }) {
      greeted = true
      if (generation > ledger.generation) log.warn({ generation }, 'the ledger had been put back: it goes on as a new generation')
      ledger.adopt(generation)
      const until = String(onlineOnlyUntilMs ?? 0)
      if ((ledger.marks.get(ONLINE_ONLY) ?? '0') !== until) ledger.commits.now(() => ledger.marks.set(ONLINE_ONLY, until))
    },
  }
}
