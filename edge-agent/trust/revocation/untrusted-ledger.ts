import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Log } from '../../log.ts'
import { DENY_SEQ } from './denials.ts'

/**
 * Why this ledger is untrusted: its agent was revoked, or the ledger was forked or restored (`put_back`). Each claim
 * then needs the cloud (ADR agents). The cloud rejects revoked agents.
 */
export type UntrustedReason = 'revoked' | 'forked' | 'put_back'

/** Metadata key: trusted time until which each claim needs the cloud, ms. A restored ledger may lack claims. */
const ONLINE_ONLY = 'online_only_until'
/**
 * Metadata key: the restored ledger stays untrusted until the agent has applied the deny list up to this number. The
 * list contains the claims that the ledger lacks.
 */
const REQUIRED_DENY_SEQ = 'denials_awaited'
/** Metadata key: `1` if the ledger is behind its watermark, and the cloud has not detected the restore yet. */
const RESTORED = 'restored'
const FORKED = 'forked'
const REVOKED = 'revoked'
const REVOKING_KEYS_LIMIT = 8

type MetadataStore = Pick<Ledger, 'metadata' | 'commits'>
type RestorableLedger = Pick<Ledger, 'metadata' | 'isBehindWatermark'>

/** Returns why the ledger is untrusted, or undefined if it is trusted. The state survives restarts. */
export function untrustedReason(ledger: RestorableLedger, nowMs: number): UntrustedReason | undefined {
  const { metadata } = ledger
  if (revokingKeys(metadata).length > 0) return 'revoked'
  if (metadata.get(FORKED) === '1') return 'forked'
  if (isRestored(ledger)) return 'put_back'
  const isWhole = Number(metadata.getCached(DENY_SEQ) ?? 0) >= Number(metadata.getCached(REQUIRED_DENY_SEQ) ?? 0)
  return Number(metadata.get(ONLINE_ONLY) ?? 0) > nowMs || !isWhole ? 'put_back' : undefined
}

/** Stores whether the cloud reports a fork of this ledger. Returns true if the state changed. */
export function storeForked(ledger: MetadataStore, isForked: boolean): boolean {
  return store(ledger, FORKED, isForked ? '1' : '0')
}

/**
 * Records that the agent was revoked by a command. `kid`: the key that signed this command. Only a new enrolment or
 * the revocation of that key clears this state. Returns true if the agent was not revoked before.
 */
export function storeRevoked(ledger: MetadataStore, kid: string): boolean {
  const before = revokingKeys(ledger.metadata)
  if (!before.includes(kid)) store(ledger, REVOKED, [...before, kid].slice(-REVOKING_KEYS_LIMIT).join(' '))
  return before.length === 0
}

/** Removes revocations that compromised keys signed. The cloud repeats a real revocation at the next login. */
export function removeRevocationsBy(ledger: MetadataStore, kids: readonly string[]): void {
  const before = revokingKeys(ledger.metadata)
  const left = before.filter((kid) => !kids.includes(kid))
  if (left.length < before.length) store(ledger, REVOKED, left.join(' ') || '0')
}

/** Ids of the keys that signed revocations of this agent. */
function revokingKeys(metadata: MetadataStore['metadata']): string[] {
  return (metadata.get(REVOKED) ?? '0').split(' ').filter((kid) => kid !== '0')
}

/** True if this ledger was restored and the agent must report the restore at the next login. */
export function isRestored({ metadata, isBehindWatermark }: RestorableLedger): boolean {
  return isBehindWatermark || metadata.getCached(RESTORED) === '1'
}

/** Stores that this ledger was restored, because the watermark does not survive a reboot. */
export function storeRestored(ledger: MetadataStore, log: Log): void {
  log.warn(
    {},
    'the ledger was restored and lacks rows: each release needs the cloud until the cloud has accepted the ledger',
  )
  try {
    store(ledger, RESTORED, '1')
  } catch (error) {
    // Gates must also work while the disk is full (P6). The watermark keeps the state until the next reboot.
    if (!(error instanceof LedgerFull)) throw error
  }
}

/** Clears the restored state after the login that reported the restore. Call it in a transaction. */
export function clearRestored(metadata: MetadataStore['metadata']): void {
  if (metadata.get(RESTORED) === '1') metadata.set(RESTORED, '0')
}

/** Blocks offline decisions until the agent has applied the deny list up to `seq`. Call it in a transaction. */
export function requireDenials(metadata: MetadataStore['metadata'], seq: number): void {
  metadata.set(REQUIRED_DENY_SEQ, String(seq))
}

/** Stores the end of the online-only period, trusted ms; null clears it. */
export function storeOnlineOnly(ledger: MetadataStore, untilMs: number | null): void {
  store(ledger, ONLINE_ONLY, String(untilMs ?? 0))
}

function store({ metadata, commits }: MetadataStore, name: string, value: string): boolean {
  if ((metadata.get(name) ?? '0') === value) return false
  commits.now(() => metadata.set(name, value))
  return true
}
