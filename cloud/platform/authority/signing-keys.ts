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
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { claimedKeyId } from '../../../policy/documents/signed-document.ts'
import { readValue, writeValue } from '../persistence/installation.ts'
import { raiseKeySetEpoch } from './key-counters.ts'

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

/** The root key of this database. Agents trust only the root that they were enrolled with. */

const ROOT = 'root_kid'

/**
 * Stores the root at the first start. Throws if agents trust another root, because these agents would reject the cloud.
 */
export async function assertKnownRoot(db: Db, kid: string): Promise<void> {
  assertRoot(await readRoot(db), kid)
  await writeValue(db, ROOT, kid)
}

/** Throws if agents trust another root key. `known` is undefined before the first start. */
function assertRoot(known: string | undefined, kid: string): void {
  if (known !== undefined && known !== kid) {
    throw new Error(
      `root.json is not the root key that agents of this cloud were enrolled with (${known}): restore the keys folder that belongs to it. If it is lost, create a new root with untag keys rotate --use root, and enrol every agent again`,
    )
  }
}

/** kid of the root key; undefined before the first start. */
export async function readRoot(db: Db): Promise<string | undefined> {
  return (await readValue(db, ROOT)) ?? signerOfKeySets(db)
}

/**
 * Changes the root and signs every key set again in a new epoch. Agents trust the new root key only after re-enrolment.
 */
export async function changeRoot(db: Db, kid: string): Promise<void> {
  await writeValue(db, ROOT, kid)
  await raiseKeySetEpoch(db)
}

/** Reads the kid of the root from a key set, for databases that have not stored the root yet. */
async function signerOfKeySets(db: Db): Promise<string | undefined> {
  const row = await db
    .selectFrom('signed_document')
    .select('jws')
    .where('kind', '=', 'keys')
    .limit(1)
    .executeTakeFirst()
  return row && claimedKeyId(row.jws, DOCUMENT_KINDS.keys)
}
