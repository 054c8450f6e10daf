import type { ExceptionKind } from '../../policy/vocabulary.ts'
import { newId } from '../../policy/ids.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'
import type { Trust } from './trust.ts'

interface KeySetExpiryParts {
  platform: Platform
  ledger: Pick<Ledger, 'metadata' | 'commits' | 'journal'>
  storeId: string
  trust: Pick<Trust, 'keysEndS'>
  log: Log
}

/**
 * Warning time before the key set expires, s. The merchant needs this time to find the holder of the root key (ADR
 * signed-documents).
 */
const ALARM_BEFORE_S = 30 * 86_400
const DAY_MS = 86_400_000
const WARNED = 'key_set_warned_ms'

/**
 * Returns a check to call with trusted time, ms. In the last 30 days of the key set, the check stores one exception a
 * day.
 */
export function watchKeySetExpiry({
  platform,
  ledger: { metadata, commits, journal },
  storeId,
  trust,
  log,
}: KeySetExpiryParts): (nowMs: number) => void {
  let warnedMs = Number(metadata.get(WARNED) ?? 0)
  return (nowMs) => {
    const { keysEndS } = trust
    const leftS = (keysEndS ?? Number.POSITIVE_INFINITY) - nowMs / 1_000
    if (leftS > ALARM_BEFORE_S || nowMs - warnedMs < DAY_MS) return
    warnedMs = nowMs
    const event = {
      type: 'protection.exception.raised' as const,
      eventId: newId('evt', platform),
      occurredAt: new Date(nowMs).toISOString(),
      storeId,
      reason: 'key_set_ending' satisfies ExceptionKind,
      detail: `the key set ends in ${Math.max(0, Math.floor(leftS / 86_400))} days, and the agent has no newer one`,
    }
    commits
      .durably(() => {
        metadata.set(WARNED, String(nowMs))
        journal.append({ atMs: nowMs, event })
      })
      .catch((error: unknown) => log.error({ err: error }, 'could not report that the key set ends soon'))
  }
}
