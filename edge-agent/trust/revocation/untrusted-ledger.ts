import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import { DENY_SEQ } from './denials.ts'

/**
 * Why this ledger alone decides nothing: its agent was revoked, there are two of it, or it was put back. While that is so each
 * claim needs the cloud's yes (ADR 0017), which a revoked agent does not get any more.
 */
export type UntrustedReason = 'revoked' | 'forked' | 'put_back'

/** The mark until when nothing is decided alone, trusted ms: the ledger was put back and may have forgotten. */
const ONLINE_ONLY = 'online_only_until'
/** What it has forgotten comes back with the deny list: up to this number it must have been taken, however late that is. */
const REQUIRED_DENY_SEQ = 'denials_awaited'
/** The agent found its ledger behind the watermark, and the cloud has not seen that yet. */
const RESTORED = 'restored'
const FORKED = 'forked'
const REVOKED = 'revoked'
const REVOKING_KEYS_LIMIT = 8

type MetadataStore = Pick<Ledger, 'metadata' | 'commits'>
type RestorableLedger = Pick<Ledger, 'metadata' | 'isBehindWatermark'>

/** The doubt about this ledger as the cloud last told it; kept over restarts. */
export function untrustedReason(ledger: RestorableLedger, nowMs: number): UntrustedReason | undefined {
  const { metadata } = ledger
  if (revokingKeys(metadata).length > 0) return 'revoked'
  if (metadata.get(FORKED) === '1') return 'forked'
  if (isRestored(ledger)) return 'put_back'
  const isWhole = Number(metadata.getCached(DENY_SEQ) ?? 0) >= Number(metadata.getCached(REQUIRED_DENY_SEQ) ?? 0)
  return Number(metadata.get(ONLINE_ONLY) ?? 0) > nowMs || !isWhole ? 'put_back' : undefined
}

/** Keeps that the cloud says that there are two of this ledger, or no longer. Answers whether that is new. */
export function storeForked(ledger: MetadataStore, isForked: boolean): boolean {
  return store(ledger, FORKED, isForked ? '1' : '0')
}

/**
 * Keeps that the cloud has revoked this agent, by a word signed with this key: only another identity takes that away, or the end of
 * that key. Answers whether that is new.
 */
export function storeRevoked(ledger: MetadataStore, kid: string): boolean {
  const before = revokingKeys(ledger.metadata)
  if (!before.includes(kid)) store(ledger, REVOKED, [...before, kid].slice(-REVOKING_KEYS_LIMIT).join(' '))
  return before.length === 0
}

/** Whoever stole one of these keys may have revoked this agent by it: if it was the cloud, that says so again instead of the next login. */
export function removeRevocationsBy(ledger: MetadataStore, kids: readonly string[]): void {
  const before = revokingKeys(ledger.metadata)
  const left = before.filter((kid) => !kids.includes(kid))
  if (left.length < before.length) store(ledger, REVOKED, left.join(' ') || '0')
}

/** With which keys the words were signed that revoke this agent. */
function revokingKeys(metadata: MetadataStore['metadata']): string[] {
  return (metadata.get(REVOKED) ?? '0').split(' ').filter((kid) => kid !== '0')
}

/** Whether this ledger was restored and the cloud is to be told so at the next login. */
export function isRestored({ metadata, isBehindWatermark }: RestorableLedger): boolean {
  return isBehindWatermark || metadata.getCached(RESTORED) === '1'
}

/** Keeps that this ledger was restored, for it may be opened again after a reboot, which the watermark does not outlive. */
export function storeRestored(ledger: MetadataStore, log: Log): void {
  log.warn(
    {},
    'the ledger was restored: it lacks rows of before. Nothing is released without the cloud until that has seen it',
  )
  try {
    store(ledger, RESTORED, '1')
  } catch (error) {
    // Gates must alarm all the same (P6), and the watermark says so as long as this machine runs.
    if (!(error instanceof LedgerFull)) throw error
  }
}

/** In a transaction: the cloud has seen that this ledger was restored. */
export function clearRestored(metadata: MetadataStore['metadata']): void {
  if (metadata.get(RESTORED) === '1') metadata.set(RESTORED, '0')
}

/** In a transaction: nothing is decided alone before the deny list was taken up to here. */
export function requireDenials(metadata: MetadataStore['metadata'], seq: number): void {
  metadata.set(REQUIRED_DENY_SEQ, String(seq))
}

/** Keeps until when nothing is decided alone; null: not at all. */
export function storeOnlineOnly(ledger: MetadataStore, untilMs: number | null): void {
  store(ledger, ONLINE_ONLY, String(untilMs ?? 0))
}

function store({ metadata, commits }: MetadataStore, name: string, value: string): boolean {
  if ((metadata.get(name) ?? '0') === value) return false
  commits.now(() => metadata.set(name, value))
  return true
}
