import { hash } from 'node:crypto'
import { canonicalJson } from '../operations/idempotency.ts'
import type { AuditEntryRow } from '../persistence/tables/accounts.ts'

/**
 *   "" ─▶ entry 1 ─▶ entry 2 ─▶ …     hash(n) = SHA-256 of [n, hash(n−1), entry n], canonical JSON
 *
 * Changing, removing, adding or swapping a sealed entry changes all hashes after it (ADR 0036).
 */
export const BEFORE_FIRST = ''

/** Hash of entry number `seq` of its tenant's chain, base64url. */
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
