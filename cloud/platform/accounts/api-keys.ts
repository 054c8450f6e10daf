import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { newId } from '../../../policy/ids.ts'
import type { Platform, Randomness } from '../../../policy/platform.ts'
import { keyGenerationQuery } from '../authority/key-counters.ts'
import { tenantOf, type KeyCaller, type Mode, type Package } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'

export const KEY_KINDS = ['secret', 'publishable', 'admin'] as const
export type KeyKind = (typeof KEY_KINDS)[number]

const KIND_LETTERS: Record<KeyKind, string> = { secret: 'sk', publishable: 'pk', admin: 'ak' }
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = `${BASE62[Number(rest % 62n)]}${text}`
  return text
}

/** Makes a key: prefix, 256 random bits, and a checksum for secret scanners and against typing errors. */
function newApiKey(kind: KeyKind, mode: Mode, random: Randomness): string {
  const secret = base62(BigInt(`0x${Buffer.from(random.bytes(32)).toString('hex')}`), 43)
  const prefix = `untag_${mode}_${KIND_LETTERS[kind]}_`
  return `${prefix}${secret}${base62(BigInt(crc32(prefix + secret)), 6)}`
}

/** True if a text has the form and checksum of a key. For all other texts, no database query is needed. */
export function isKeyShaped(text: string): boolean {
  const match = /^(untag_(?:test|live)_(?:sk|pk|ak)_[0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(text)
  return match?.[1] !== undefined && base62(BigInt(crc32(match[1])), 6) === match[2]
}

/** Hash of a key. One round of SHA-256 is enough, because keys hold 256 random bits. */
export function hashOfKey(key: string): string {
  return hash('sha256', key, 'base64url')
}

export interface NewKey {
  accountId: string
  kind: KeyKind
  mode: Mode
  name: string
  storeIds?: readonly string[]
  expiresMs?: number | null
}

/** Creates a key. The database stores only its hash. */
export async function createApiKey(
  db: Db,
  wanted: NewKey,
  platform: Platform,
): Promise<{ keyId: string; key: string }> {
  const key = newApiKey(wanted.kind, wanted.mode, platform.random)
  const keyId = newId('key', platform)
  await db
    .insertInto('api_key')
    .values({
      key_id: keyId,
      account_id: wanted.accountId,
      mode: wanted.mode,
      kind: wanted.kind,
      hash: hashOfKey(key),
      shown: `${key.slice(0, 14)}…${key.slice(-4)}`,
      name: wanted.name,
      store_ids: wanted.storeIds ? JSON.stringify(wanted.storeIds) : null,
      created_ms: platform.clock.wall(),
      expires_ms: wanted.expiresMs ?? null,
    })
    .execute()
  return { keyId, key }
}

function keys(db: Db) {
  return db
    .selectFrom('api_key')
    .innerJoin('account', 'account.account_id', 'api_key.account_id')
    .select([
      'key_id',
      'api_key.account_id',
      'mode',
      'kind',
      'store_ids',
      'expires_ms',
      'revoked_ms',
      'account.package',
      'account.status',
    ])
}

const byHash = prepared((db, p: { hash: string }) =>
  keys(db).select(keyGenerationQuery(db).as('generation')).where('hash', '=', p.hash),
)
const byId = prepared((db, p: { keyId: string }) => keys(db).where('key_id', '=', p.keyId))

/** The caller of this key; undefined if the key is unknown, expired or revoked. */
export async function findKeyCaller(db: Db, key: string, nowMs: number): Promise<KeyCaller | undefined> {
  const [row] = await byHash(db, { hash: hashOfKey(key) })
  const caller = row && callerOf(row, nowMs)
  return caller && { keyGeneration: Number(row.generation ?? 0), ...caller }
}

/** Like `findKeyCaller`, by the id of the key and without `keyGeneration`. */
export async function findKeyCallerById(db: Db, keyId: string, nowMs: number): Promise<KeyCaller | undefined> {
  const [row] = await byId(db, { keyId })
  return row && callerOf(row, nowMs)
}

function callerOf(row: Awaited<ReturnType<typeof byId>>[number], nowMs: number): KeyCaller | undefined {
  if (row.status !== 'active') return undefined
  if (row.revoked_ms !== null) return undefined
  if (row.expires_ms !== null && row.expires_ms <= nowMs) return undefined
  const mode = row.mode as Mode
  return {
    kind: row.kind as KeyKind,
    keyId: row.key_id,
    accountId: row.account_id,
    mode,
    tenant: tenantOf(row.account_id, mode),
    storeIds: row.store_ids === null ? null : (JSON.parse(row.store_ids) as string[]),
    package: row.package as Package,
  }
}
