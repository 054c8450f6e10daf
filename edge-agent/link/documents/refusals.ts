import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'

export interface RefusalsParts {
  platform: Platform
  ledger: Pick<Ledger, 'record'>
  storeId: string
  /** Trusted time, ms. */
  nowMs(): number
  log: Log
}

/** `agent_too_old`: the document needs a later release of the agent. */
export type RefusalReason = 'refused_document' | 'agent_too_old'
/** Reports that the agent refused a message of the cloud, or that the cloud refused a call. */
export type ReportRefusal = (what: string, reason?: RefusalReason) => void

const KINDS_LIMIT = 100

/**
 * Groups refusals that differ only in numbers or key ids, because a forger can vary numbers and key ids without limit.
 */
function refusalKind(what: string): string {
  return what
    .slice(0, 300)
    .replace(/ \(.*$/s, '')
    .replace(/\d+/g, '#')
}

/** Creates a reporter that reports each kind of refusal once, because the same refusal may occur with each poll. */
export function refusalReporter({ platform, ledger, storeId, nowMs, log }: RefusalsParts): ReportRefusal {
  const reported = new Set<string>()
  return (what, reason = 'refused_document') => {
    const kind = refusalKind(what)
    if (reported.has(kind) || reported.size >= KINDS_LIMIT) return
    reported.add(kind)
    log.warn(
      { what: what.slice(0, 300) },
      'a message from the cloud was refused; further refusals of this kind are not logged',
    )
    const event = {
      type: 'protection.exception.raised' as const,
      eventId: newId('evt', platform),
      occurredAt: new Date(nowMs()).toISOString(),
      storeId,
      reason,
      detail: what.slice(0, 300),
    }
    ledger
      .record({ atMs: nowMs(), event })
      .catch((error: unknown) => log.error({ err: error }, 'a refusal could not be stored in the journal'))
  }
}
