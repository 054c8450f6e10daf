import type { Platform } from '../../policy/platform.ts'
import type { Replica } from '../items/replica.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import { isRestored, untrustedReason } from '../trust/revocation/untrusted-ledger.ts'
import { decideByItem, openByStaff } from './by-item.ts'
import { decideByToken, isOnlyForCloud, openWithNewestKeys } from './by-token.ts'
import type { TokenVoider } from './void-tokens.ts'
import { decideOnline } from './online.ts'
import { NEEDS_STAFF, type RequestContext, type Grant, type Verdict } from './request.ts'
import { offlineReceipts, type OfflineReceipts, type OfflineReceiptsParts } from './offline-receipts.ts'

export interface DeciderParts extends OfflineReceiptsParts {
  platform: Pick<Platform, 'random'>
  link: CloudLink
  items: Pick<Replica, 'find' | 'namesIn' | 'confirmedMs'>
  /** Voids tokens that the agent fetched and did not use. */
  tokenVoider: Pick<TokenVoider, 'voidUnlessUsedSoon'>
}

/** `offline`: the agent decided without the cloud, or was offline when it decided. */
export interface Decided {
  verdict: Verdict
  offline: boolean
}

/**
 *   token of this ledger ─▶ by-token.ts
 *   online ─▶ online.ts: the cloud decides
 *   offline, ledger untrusted, pick-up code, or token only for the cloud ─▶ staff
 *   offline, receipt ─▶ offline-receipts.ts ─▶ by-receipt.ts; staff at a fixture ─▶ by-item.ts
 *   offline, anything else ─▶ by-item.ts
 *
 * Of the lines above, the first that applies decides the request. A verdict uses up no right.
 */
export class Decider {
  readonly #parts: DeciderParts
  readonly #receipts: OfflineReceipts

  constructor(parts: DeciderParts) {
    this.#parts = parts
    this.#receipts = offlineReceipts(parts)
  }

  async decide(context: RequestContext): Promise<Decided> {
    const { ledger, clock, link, items, tokenVoider } = this.#parts
    const { token, receipt, pickupCode } = context.request
    const opened = token === undefined ? undefined : await openWithNewestKeys(this.#parts, link, context, token)
    if (opened && !isOnlyForCloud(opened, context)) {
      // If the ledger was forked or restored, another copy of the ledger may have used the token, so staff decide. Once
      // the cloud knows of the restore, older tokens name a former generation of the ledger and are refused.
      const isUntrusted = untrustedReason(ledger, clock.now().nowMs) === 'forked' || isRestored(ledger)
      const verdict = isUntrusted ? NEEDS_STAFF : decideByToken(this.#parts, context, opened, false)
      return { verdict, offline: !link.isOnline }
    }
    const online = link.isOnline ? await decideOnline(this.#parts, link, context) : undefined
    if (online) {
      if (online.granted && online.grant?.source === 'token') tokenVoider.voidUnlessUsedSoon(online.grant.nonce)
      return { verdict: online, offline: false }
    }
    if (opened || pickupCode !== undefined || untrustedReason(ledger, clock.now().nowMs))
      return { verdict: NEEDS_STAFF, offline: true }
    if (receipt !== undefined) {
      const verdict = await this.#receipts.decide(context, receipt)
      return { verdict: verdict.granted ? verdict : openByStaff(this.#parts, items, context, verdict), offline: true }
    }
    return { verdict: decideByItem(this.#parts, items, context), offline: true }
  }

  /** True if a decision about a receipt is still valid. */
  stillHolds(grant: Grant): boolean {
    return this.#receipts.stillHolds(grant)
  }
}
