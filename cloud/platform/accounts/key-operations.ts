import { z } from 'zod'
import { keyCaller, type AccountCaller, rolesFrom } from '../foundation/caller.ts'
import { invalid, notFound } from '../foundation/failure.ts'
import { Id, Success, text, Timestamp } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import { ownStore } from '../stores/own-store.ts'
import {
  findKey,
  listKeys,
  KeyRecord,
  toKeyRecord,
  addKey,
  earlier,
  OVERLAP_HOURS,
  revokeKey,
  rollKey,
  statusOfKey,
} from './keys.ts'
import type { KeyUsage } from '../foundation/ports.ts'
import type { Db } from '../persistence/database.ts'

/** Minimum time between two recorded uses of a key, ms. */
const RESOLUTION_MS = 60_000
/**
 * Maximum number of keys in memory. A full table is cleared. The only effect is that the database may store a use
 * twice.
 */
const SEEN_LIMIT = 50_000
/** Number of keys in one transaction. The number is small, so that other writes do not wait long. */
const BATCH = 200

/** Makes an empty table of key uses. */
export function keyUsage(): KeyUsage {
  const seen = new Map<string, number>()
  let unwritten = new Map<string, number>()
  return {
    note(keyId, nowMs) {
      const last = seen.get(keyId)
      if (last !== undefined && Math.abs(nowMs - last) < RESOLUTION_MS) return
      if (seen.size >= SEEN_LIMIT) seen.clear()
      seen.set(keyId, nowMs)
      if (unwritten.size < SEEN_LIMIT) unwritten.set(keyId, nowMs)
    },
    lastUsedMs: (keyId) => seen.get(keyId),
    async flush(database) {
      if (unwritten.size === 0) return
      const writing = [...unwritten]
      unwritten = new Map()
      try {
        for (let i = 0; i < writing.length; i += BATCH)
          await database.write((db) => writeUsage(db, writing.slice(i, i + BATCH)))
      } catch (error) {
        // The next flush retries these uses, unless newer uses have replaced them.
        unwritten = new Map([...writing, ...unwritten])
        throw error
      }
    },
  }
}

async function writeUsage(db: Db, used: readonly (readonly [keyId: string, ms: number])[]): Promise<void> {
  for (const [keyId, ms] of used) {
    await db
      .updateTable('api_key')
      .set({ last_used_ms: ms })
      .where('key_id', '=', keyId)
      .where((eb) => eb.or([eb('last_used_ms', 'is', null), eb('last_used_ms', '<', ms)]))
      .execute()
  }
}

/** Maximum number of stores that a key can be bound to. */
const BOUND_STORES_LIMIT = 100

const NewKeyAnswer = z.strictObject({ ...Success, keyId: z.string(), key: z.string().describe('Shown once.') })

/**
 * True if the caller may see the key. The key must have the caller's account and mode, only stores of the caller, and
 * no admin rights.
 */
function mayKnow(caller: AccountCaller, row: Row<'api_key'>): boolean {
  if (row.account_id !== caller.accountId || row.mode !== caller.mode || row.kind === 'admin') return false
  const own = caller.storeIds
  if (own === null) return true
  const theirs = row.store_ids === null ? null : (JSON.parse(row.store_ids) as string[])
  return theirs !== null && theirs.every((storeId) => own.includes(storeId))
}

/** Time at which the key of the caller ends, ms since 1970; null: never. It may have changed during the request. */
async function expiryOf({ db, caller }: Call): Promise<number | null> {
  return (await findKey(db, keyCaller(caller).keyId))?.expires_ms ?? null
}

async function ownKey(call: Call, keyId: string): Promise<Row<'api_key'>> {
  const row = await findKey(call.db, keyId)
  if (!row || !mayKnow(keyCaller(call.caller), row)) throw notFound('key')
  return row
}

export const createApiKey = operation({
  name: 'createApiKey',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Creates a key in the mode of the calling key. The response is the only one that shows it.',
  description:
    '`storeIds` binds the key to some of your stores. A bound key creates keys for its own stores only, and a key with an expiry creates keys that expire no later. The command line creates admin keys.',
  refusals: ['too_many_keys'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    kind: z.enum(['secret', 'publishable']),
    name: text(120),
    storeIds: z.array(Id).min(1).max(BOUND_STORES_LIMIT).optional(),
    expiresAt: Timestamp.optional(),
  }),
  response: NewKeyAnswer,
  example: { kind: 'publishable', name: 'web shop' },
  async run(call, { kind, name, storeIds, expiresAt }) {
    const caller = keyCaller(call.caller)
    const expiresMs = expiresAt === undefined ? null : Date.parse(expiresAt)
    if (expiresMs !== null && expiresMs <= call.nowMs) throw invalid('expiresAt', 'must be in the future')
    const bound = [...new Set(storeIds ?? caller.storeIds ?? [])]
    for (const storeId of storeIds ? bound : []) await ownStore(call, storeId)
    const wanted = {
      accountId: caller.accountId,
      mode: caller.mode,
      kind,
      name,
      expiresMs: earlier(expiresMs, await expiryOf(call)),
      ...(bound.length > 0 && { storeIds: bound }),
    }
    const made = await addKey(call.db, wanted, call.nowMs, call.services.platform)
    call.changed(made.keyId)
    return { success: true as const, ...made }
  },
})

export const fetchApiKeys = operation({
  name: 'fetchApiKeys',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Lists the keys of the account in the mode of the calling key, without the keys themselves.',
  changes: false,
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, keys: z.array(KeyRecord) }),
  example: {},
  async run(call) {
    const caller = keyCaller(call.caller)
    const rows = (await listKeys(call.db, caller.accountId, caller.mode)).filter((row) => mayKnow(caller, row))
    return {
      success: true as const,
      keys: rows.map((row) => toKeyRecord(row, call.nowMs, call.services.keyUsage.lastUsedMs(row.key_id))),
    }
  },
})

export const rollApiKey = operation({
  name: 'rollApiKey',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Replaces a key by a new one. Both work until the overlap ends.',
  refusals: ['key_ended', 'too_many_keys'],
  changes: true,
  secretResponse: true,
  request: z.strictObject({
    keyId: Id,
    overlapHours: z
      .int()
      .min(0)
      .max(OVERLAP_HOURS.max)
      .optional()
      .describe(`Default ${OVERLAP_HOURS.default}; 0 ends the old key at once.`),
  }),
  response: NewKeyAnswer,
  example: { keyId: 'key_01KANX6Y7C3V9Q2M8R5T4W6Z1B', overlapHours: 24 },
  async run(call, { keyId, overlapHours = OVERLAP_HOURS.default }) {
    const made = await rollKey(
      call.db,
      await ownKey(call, keyId),
      overlapHours,
      call.nowMs,
      call.services.platform,
      await expiryOf(call),
    )
    call.changed(keyId)
    return { success: true as const, ...made }
  },
})

export const revokeApiKey = operation({
  name: 'revokeApiKey',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Revokes a key at once.',
  description: 'A key may revoke itself. `warnings` reports that, and if no secret key is left.',
  changes: true,
  request: z.strictObject({ keyId: Id }),
  response: KeyRecord.extend({ ...Success, warnings: z.array(z.string()).optional() }),
  example: { keyId: 'key_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { keyId }) {
    const row = await revokeKey(call.db, await ownKey(call, keyId), call.nowMs)
    call.changed(keyId)
    const warnings = await warningsAfter(call, row)
    return {
      success: true as const,
      ...toKeyRecord(row, call.nowMs, call.services.keyUsage.lastUsedMs(keyId)),
      ...(warnings.length > 0 && { warnings }),
    }
  },
})

async function warningsAfter(call: Call, { key_id, kind }: Row<'api_key'>): Promise<string[]> {
  const caller = keyCaller(call.caller)
  if (kind !== 'secret') return []
  const left = (await listKeys(call.db, caller.accountId, caller.mode)).filter(
    (row) => row.kind === 'secret' && statusOfKey(row, call.nowMs) === 'active',
  )
  return [
    ...(key_id === caller.keyId
      ? ['this call revoked the key that it was sent with: the next call with this key gets 401']
      : []),
    ...(left.length === 0
      ? [`no ${caller.mode} secret key of the account is left: create one with the command line`]
      : []),
  ]
}
