import { hash } from 'node:crypto'
import { canonicalJson } from '../operations/idempotency.ts'
import type { AuditEntryRow } from '../persistence/tables/accounts.ts'

/**
 * Previous hash of the first entry. The hash of entry n is the SHA-256 of [n, hash of entry n−1, entry n] in canonical
 * JSON. So changing, removing, adding or swapping a sealed entry changes all later hashes (ADR 0036).
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
