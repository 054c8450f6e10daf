import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto'
import { assert } from '../../../policy/assert.ts'
import type { Randomness } from '../../../policy/platform.ts'
import { sql } from 'kysely'
import type { Database } from '../persistence/database.ts'

/**
 * Encrypts secrets that the cloud must read again, with AES-256-GCM. A sealed text can be opened only in its table and
 * row (see `SEALED_COLUMNS`). The form of a sealed text is `{key id}.{base64url of iv, ciphertext, tag}`. The key id
 * allows rotation: the newest key seals, and older keys still open their texts.
 */
export interface Sealer {
  /** `context` names table and row. `open` needs the same context. */
  seal(plain: Uint8Array, context: string): string
  /** Throws if the key is missing or the text was sealed with another context. */
  open(sealed: string, context: string): Buffer
  /** True if the newest key sealed the text. */
  isCurrent(sealed: string): boolean
}

export const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16

/** Name of a key in sealed texts; reveals nothing about the key. */
export function sealingKeyId(key: Uint8Array): string {
  return `k${createHash('sha256').update('untag/sealing-key/1').update(key).digest('hex').slice(0, 12)}`
}

/** Seals with the first of these 32-byte keys and opens with any of them. */
export function sealer(keys: readonly Uint8Array[], random: Randomness): Sealer {
  const [current] = keys
  assert(current && keys.every((key) => key.length === KEY_BYTES), 'sealing needs keys of 32 bytes')
  const byId = new Map(keys.map((key) => [sealingKeyId(key), key]))
  const currentId = sealingKeyId(current)
  return {
    seal(plain, context) {
      const iv = random.bytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current, iv).setAAD(Buffer.from(context))
      return `${currentId}.${Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url')}`
    },
    open(sealed, context) {
      const dot = sealed.indexOf('.')
      if (dot < 0) return openUnnamed(sealed, context, keys)
      const key = byId.get(sealed.slice(0, dot))
      if (!key)
        throw new Error(
          `sealed with the key ${sealed.slice(0, dot)}, which is missing: restore it from your backup of keys`,
        )
      return openWith(key, sealed.slice(dot + 1), context)
    },
    isCurrent: (sealed) => sealed.startsWith(`${currentId}.`),
  }
}

/** Opens a text of the first format, which has no key id. Tries each key. */
function openUnnamed(sealed: string, context: string, keys: readonly Uint8Array[]): Buffer {
  let fault: unknown
  for (const key of keys) {
    try {
      return openWith(key, sealed, context)
    } catch (error) {
      fault = error
    }
  }
  throw fault
}

function openWith(key: Uint8Array, sealed: string, context: string): Buffer {
  const bytes = Buffer.from(sealed, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES)).setAAD(Buffer.from(context))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
}

/** Sealer with a key derived from a secret that only the caller has. The cloud does not store the secret. */
export function sealerFromText(secret: string, random: Randomness): Sealer {
  return sealer([new Uint8Array(hkdfSync('sha256', secret, 'untag/seal/1', '', KEY_BYTES))], random)
}

/** A database column with sealed texts. Add it to `SEALED_COLUMNS` when you seal a new column. */
interface SealedColumn {
  readonly table: string
  /** Column with the id of the row. */
  readonly id: string
  readonly column: string
  /** Context that the sealed text is bound to. */
  contextOf(id: string): string
}

const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: 'sealed_secret', id: 'name', column: 'sealed', contextOf: (name) => name },
  { table: 'signing_key', id: 'kid', column: 'sealed', contextOf: (kid) => `signing_key/${kid}` },
  { table: 'psp_config', id: 'config_id', column: 'sealed', contextOf: (id) => `psp_config/${id}` },
  {
    table: 'integration_connection',
    id: 'connection_id',
    column: 'sealed',
    contextOf: (id) => `integration_connection/${id}`,
  },
  { table: 'erasure', id: 'erasure_id', column: 'sealed', contextOf: (id) => `erasure/${id}` },
  { table: 'store_key', id: 'store_id', column: 'sealed', contextOf: (id) => `store_key/${id}` },
  { table: 'operator', id: 'operator_id', column: 'sealed', contextOf: (id) => `operator/${id}` },
  { table: 'webhook', id: 'webhook_id', column: 'secret', contextOf: (id) => `webhook/${id}` },
  { table: 'webhook', id: 'webhook_id', column: 'old_secret', contextOf: (id) => `webhook/${id}` },
  { table: 'console_user', id: 'user_id', column: 'totp_secret', contextOf: (id) => `console_user/${id}` },
  { table: 'user_session', id: 'session_id', column: 'totp_next', contextOf: (id) => `user_session/${id}` },
  {
    table: 'push_subscription',
    id: 'subscription_id',
    column: 'sealed',
    contextOf: (id) => `push_subscription/${id}`,
  },
]

/** Maximum number of rows per transaction. */
const PAGE = 200

/** Seals each text of an older key again with the newest key. Returns the number of texts. May be repeated. */
export async function resealAll(database: Database, sealer: Sealer): Promise<number> {
  let count = 0
  for (const column of SEALED_COLUMNS) {
    let after: string | undefined = ''
    while (after !== undefined) {
      const page = await resealPage(database, column, after, sealer)
      count += page.count
      after = page.next
    }
  }
  return count
}

function resealPage(
  database: Database,
  { table, id, column, contextOf }: SealedColumn,
  after: string,
  sealer: Sealer,
): Promise<{ count: number; next: string | undefined }> {
  const [from, key, text] = [sql.table(table), sql.ref(id), sql.ref(column)]
  return database.write(async (db) => {
    const { rows } = await sql<{
      id: string
      sealed: string | null
    }>`SELECT ${key} AS id, ${text} AS sealed FROM ${from} WHERE ${key} > ${after} ORDER BY ${key} LIMIT ${PAGE}`.execute(
      db,
    )
    const old = rows.flatMap((row) =>
      row.sealed === null || sealer.isCurrent(row.sealed) ? [] : [{ id: row.id, sealed: row.sealed }],
    )
    for (const row of old) {
      const context = contextOf(row.id)
      const sealed = sealer.seal(sealer.open(row.sealed, context), context)
      // If the row changed meanwhile, this update has no effect, because the other writer sealed the text with the
      // newest key.
      await sql`UPDATE ${from} SET ${text} = ${sealed} WHERE ${key} = ${row.id} AND ${text} = ${row.sealed}`.execute(db)
    }
    return { count: old.length, next: rows.length === PAGE ? rows.at(-1)?.id : undefined }
  })
}
