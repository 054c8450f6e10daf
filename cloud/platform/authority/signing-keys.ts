import {
  keyId,
  newKey,
  createSigner,
  type KeyRecord,
  type KeyState,
  type KeyUse,
  type Signer,
} from '../../../policy/documents/keys.ts'
import type { Randomness } from '../../../policy/platform.ts'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { type Sealer, sealingKeyId } from './sealing.ts'
import type { KeyFiles } from './key-files.ts'
import { assertRoot } from './known-root.ts'

/** Rows of signing keys. The public key is stored in clear, the secret key is sealed. */

export interface SigningKey {
  record: KeyRecord
  /** Time of the last state change, ms since 1970. */
  changedMs: number
  /** Set only for an active key. */
  signer: Signer | undefined
}

/** Error text if no sealing key opens the database's secrets. */
const WRONG_MASTER_KEY =
  'the master key is not the one this database was sealed with: restore the keys folder that belongs to it'

/** Reads the keys of this issuer. Opens the secrets of active keys. */
export async function readSigningKeys(db: Db, iss: string, sealer: Sealer): Promise<SigningKey[]> {
  const rows = await db
    .selectFrom('signing_key')
    .selectAll()
    .where('iss', '=', iss)
    .orderBy('created_ms')
    .orderBy('kid')
    .execute()
  return rows.map((row) => ({
    record: recordOf(row),
    changedMs: row.changed_ms,
    signer: row.state === 'active' ? createSigner(row.x, openSecret(sealer, row.sealed, row.kid)) : undefined,
  }))
}

function recordOf(row: Row<'signing_key'>): KeyRecord {
  return {
    kid: row.kid,
    alg: 'EdDSA',
    x: row.x,
    use: row.key_use as KeyUse,
    iss: row.iss,
    state: row.state as KeyState,
  }
}

function openSecret(sealer: Sealer, sealed: string, kid: string): Buffer {
  try {
    return sealer.open(sealed, `signing_key/${kid}`)
  } catch (cause) {
    throw new Error(WRONG_MASTER_KEY, { cause })
  }
}

/** Dependencies for creating a key. */
export interface KeyMaker {
  sealer: Sealer
  random: Randomness
  nowMs: number
}

/**
 * Creates missing active and next keys. The key set lists the next key early, so that agents know it before it signs.
 */
export async function makeMissingKeys(
  db: Db,
  iss: string,
  uses: readonly KeyUse[],
  { sealer, random, nowMs }: KeyMaker,
): Promise<void> {
  const existing = await db
    .selectFrom('signing_key')
    .select(['key_use', 'state'])
    .where('iss', '=', iss)
    .where('state', 'in', ['active', 'next'])
    .execute()
  for (const use of uses) {
    for (const state of ['active', 'next'] as const) {
      if (existing.some((row) => row.key_use === use && row.state === state)) continue
      const { x, secret } = newKey(random)
      const kid = keyId(x)
      const sealed = sealer.seal(secret, `signing_key/${kid}`)
      await db
        .insertInto('signing_key')
        .values({ kid, iss, key_use: use, x, sealed, state, created_ms: nowMs, changed_ms: nowMs })
        .execute()
    }
  }
}

/** Names of the keys that a database needs. A name reveals nothing about its key. */
export interface KeyNames {
  /** kid of the root key that agents trust. */
  root?: string | undefined
  /** Names of the sealing keys that open the database's signing keys. */
  sealing: string[]
}

/** Throws if the files lack these keys. Needs no database. */
export function assertNamedKeys({ root, sealing }: KeyNames, files: KeyFiles): void {
  assertRoot(root, files.root.signer.kid)
  const own = new Set(files.sealingKeys.map(sealingKeyId))
  if (!sealing.every((name) => own.has(name))) throw new Error(WRONG_MASTER_KEY)
}
