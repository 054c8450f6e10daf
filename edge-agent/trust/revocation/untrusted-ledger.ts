import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import { DENY_SEQ } from './denials.ts'

/**
 * Why this ledger alone decides nothing: its agent was revoked, there are two of it, or it was put back. While that is so each
 * claim needs the cloud's yes (contracts §5), which a revoked agent does not get any more.
 */
export type LedgerDoubt = 'revoked' | 'forked' | 'put_back'

/** The mark until when nothing is decided alone, trusted ms: the ledger was put back and may have forgotten. */
const ONLINE_ONLY = 'online_only_until'
/** What it has forgotten comes back with the deny list: up to this number it must have been taken, however late that is. */
const DENIALS_AWAITED = 'denials_awaited'
/** The agent found its ledger behind the watermark, and the cloud has not seen that yet. */
const RESTORED = 'restored'
const FORKED = 'forked'
const REVOKED = 'revoked'
const REVOKERS_LIMIT = 8

type Kept = Pick<Ledger, 'marks' | 'commits'>
type Doubted = Pick<Ledger, 'marks' | 'isBehindWatermark'>

/** The doubt about this ledger as the cloud last told it; kept over restarts. */
export function ledgerDoubt(ledger: Doubted, nowMs: number): LedgerDoubt | undefined {
  const { marks } = ledger
  if (revokers(marks).length > 0) return 'revoked'
  if (marks.get(FORKED) === '1') return 'forked'
  if (isRestored(ledger)) return 'put_back'
  const isWhole = Number(marks.recall(DENY_SEQ) ?? 0) >= Number(marks.recall(DENIALS_AWAITED) ?? 0)
  return Number(marks.get(ONLINE_ONLY) ?? 0) > nowMs || !isWhole ? 'put_back' : undefined
}

/** Keeps that the cloud says that there are two of this ledger, or no longer. Answers whether that is new. */
export function noteForked(ledger: Kept, isForked: boolean): boolean {
  return note(ledger, FORKED, isForked ? '1' : '0')
}

/**
 * Keeps that the cloud has revoked this agent, by a word signed with this key: only another identity takes that away, or the end of
 * that key. Answers whether that is new.
 */
export function noteRevoked(ledger: Kept, kid: string): boolean {
  const before = revokers(ledger.marks)
  if (!before.includes(kid)) note(ledger, REVOKED, [...before, kid].slice(-REVOKERS_LIMIT).join(' '))
  return before.length === 0
}

/** Whoever stole one of these keys may have revoked this agent by it: if it was the cloud, that says so again instead of the next login. */
export function noLongerRevokedBy(ledger: Kept, kids: readonly string[]): void {
  const before = revokers(ledger.marks)
  const left = before.filter((kid) => !kids.includes(kid))
  if (left.length < before.length) note(ledger, REVOKED, left.join(' ') || '0')
}

/** With which keys the words were signed that revoke this agent. */
function revokers(marks: Kept['marks']): string[] {
  return (marks.get(REVOKED) ?? '0').split(' ').filter((kid) => kid !== '0')
}

/** Whether this ledger was restored and the cloud is to be told so at the next login. */
export function isRestored({ marks, isBehindWatermark }: Doubted): boolean {
  return isBehindWatermark || marks.recall(RESTORED) === '1'
}

/** Keeps that this ledger was restored, for it may be opened again after a reboot, which the watermark does not outlive. */
export function keepRestored(ledger: Kept, log: Log): void {
  log.warn(
    {},
    'the ledger was restored: it lacks rows of before. Nothing is released without the cloud until that has seen it',
  )
  try {
    note(ledger, RESTORED, '1')
  } catch (error) {
    // Gates must alarm all the same (P6), and the watermark says so as long as this machine runs.
    if (!(error instanceof LedgerFull)) throw error
  }
}

/** In a transaction: the cloud has seen that this ledger was restored. */
export function endRestored(marks: Kept['marks']): void {
  if (marks.get(RESTORED) === '1') marks.set(RESTORED, '0')
}

/** In a transaction: nothing is decided alone before the deny list was taken up to here. */
export function awaitDenials(marks: Kept['marks'], seq: number): void {
  marks.set(DENIALS_AWAITED, String(seq))
}

/** Keeps until when nothing is decided alone; null: not at all. */
export function noteOnlineOnly(ledger: Kept, untilMs: number | null): void {
  note(ledger, ONLINE_ONLY, String(untilMs ?? 0))
}

function note({ marks, commits }: Kept, name: string, value: string): boolean {
  if ((marks.get(name) ?? '0') === value) return false
  commits.now(() => marks.set(name, value))
  return true
}
