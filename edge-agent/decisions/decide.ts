import type { Platform } from '../../policy/platform.ts'
import type { Replica } from '../items/replica.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import { isRestored, ledgerDoubt } from '../trust/revocation/untrusted-ledger.ts'
import { decideByItem } from './by-item.ts'
import { decideByToken, isForCloud, openByNewestKeys } from './by-token.ts'
import type { GiveUp } from './give-up.ts'
import { decideOnline } from './online.ts'
import { FOR_STAFF, type Ask, type Grant, type Verdict } from './request.ts'
import { withHome, type WithHome, type WithHomeParts } from './with-home.ts'

export interface DecideParts extends WithHomeParts {
  platform: Pick<Platform, 'random'>
  link: CloudLink
  items: Pick<Replica, 'find' | 'confirmedMs'>
  /** Gives up tokens that the agent fetched and did not use. */
  giveUp: Pick<GiveUp, 'unlessUsed'>
}

/** `offline`: the agent decided without the cloud. */
export interface Decided {
  verdict: Verdict
  offline: boolean
}

/**
 *   token of this ledger ─▶ by-token.ts
 *   cloud in reach ─▶ online.ts
 *   offline: ledger in doubt, or a token that only the cloud may honour ─▶ staff
 *   offline: receipt ─▶ with-home.ts ─▶ by-receipt.ts
 *   offline: named item ─▶ by-item.ts
 *
 * Chooses who decides about a request. The first line that fits decides. A verdict uses up nothing.
 */
export class Decider {
  readonly #parts: DecideParts
  readonly #receipts: WithHome

  constructor(parts: DecideParts) {
    this.#parts = parts
    this.#receipts = withHome(parts)
  }

  async decide(ask: Ask): Promise<Decided> {
    const { ledger, clock, link, items, giveUp } = this.#parts
    const { token, receipt } = ask.request
    const shown = token === undefined ? undefined : await openByNewestKeys(this.#parts, link, ask, token)
    if (shown && !isForCloud(shown, ask)) {
      // The other copy of a ledger that exists twice may have used it, or this one before it was restored: only what the cloud gives
      // for this very request counts. Once the cloud has seen that it was restored, tokens of before are of another generation.
      const isDoubtful = ledgerDoubt(ledger, clock.now().nowMs) === 'forked' || isRestored(ledger)
      const verdict = isDoubtful ? FOR_STAFF : decideByToken(this.#parts, ask, shown, false)
      return { verdict, offline: !link.isOnline }
    }
    const online = link.isOnline ? await decideOnline(this.#parts, link, ask) : undefined
    if (online) {
      if (online.granted && online.grant?.source === 'token') giveUp.unlessUsed(online.grant.nonce)
      return { verdict: online, offline: false }
    }
    if (shown || ledgerDoubt(ledger, clock.now().nowMs)) return { verdict: FOR_STAFF, offline: true }
    if (receipt !== undefined) return { verdict: await this.#receipts.decide(ask, receipt), offline: true }
    return { verdict: decideByItem(this.#parts, items, ask), offline: true }
  }

  /** Whether the agent that decided about a receipt may still do so. */
  stillHolds(grant: Grant): boolean {
    return this.#receipts.stillHolds(grant)
  }
}
