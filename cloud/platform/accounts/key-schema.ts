import { z } from 'zod'
import { iso, definedFields } from '../operations/fields.ts'
import type { ApiKeyRow } from '../persistence/tables/accounts.ts'
import { KEY_KINDS, type KeyKind } from './api-keys.ts'
import { statusOfKey } from './keys.ts'

/** A key in listings, without the key itself. */
export const KeyRecord = z.strictObject({
  keyId: z.string(),
  kind: z.enum(KEY_KINDS),
  mode: z.enum(['test', 'live']),
  name: z.string(),
  shown: z.string().describe('Start and end of the key, to recognize it.'),
  storeIds: z
    .array(z.string())
    .optional()
    .describe('Stores that the key may access; absent: all of its account and mode.'),
  status: z.enum(['active', 'expired', 'revoked']),
  createdAt: z.string(),
  lastUsedAt: z.string().nullable().describe('To the minute.'),
  expiresAt: z.string().optional(),
  revokedAt: z.string().optional(),
  replacedBy: z.string().optional().describe('keyId of its successor.'),
})

/** Converts a row. `usedMs` is the time of a later use that the database does not contain yet. */
export function toKeyRecord(row: ApiKeyRow, nowMs: number, usedMs?: number): z.infer<typeof KeyRecord> {
  const isoOr = (ms: number | null) => (ms === null ? null : iso(ms))
  return {
    keyId: row.key_id,
    kind: row.kind as KeyKind,
    mode: row.mode as 'test' | 'live',
    name: row.name,
    shown: row.shown,
    status: statusOfKey(row, nowMs),
    createdAt: iso(row.created_ms),
    lastUsedAt: isoOr(usedMs ?? row.last_used_ms),
    ...definedFields({
      storeIds: row.store_ids === null ? null : (JSON.parse(row.store_ids) as string[]),
      expiresAt: isoOr(row.expires_ms),
      revokedAt: isoOr(row.revoked_ms),
      replacedBy: row.replaced_by,
    }),
  }
}
