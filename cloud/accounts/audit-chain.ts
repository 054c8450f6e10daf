import { hash } from 'node:crypto'
import { canonicalJson } from '../operations/idempotency.ts'
import type { AuditEntryRow } from '../persistence/tables/accounts.ts'

/**
 *   "" ─▶ entry 1 ─▶ entry 2 ─▶ …     hash(n) = SHA-256 of [n, hash(n−1), entry n], canonical JSON
 *
 * Nobody changes, removes, adds or swaps a sealed entry without all hashes after it being others.
 */
export const BEFORE_FIRST = ''

/** The link of an entry that is number `seq` of its tenant's chain: base64url. */
export function linkOf(
  seq: number,
  previous: string,
  { entry_id, tenant, at_ms, actor, operation, entity_id, request_id }: AuditEntryRow,
): string {
  return hash(
    'sha256',
    canonicalJson([seq, previous, { entry_id, tenant, at_ms, actor, operation, entity_id, request_id }]),
    'base64url',
  )
}
