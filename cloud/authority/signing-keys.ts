import { keyId, newKey, signer, type KeyRecord, type KeyState, type KeyUse, type Signer } from '../../policy/documents/keys.ts'
import type { Randomness } from '../../policy/platform.ts'
import type { Db } from '../persistence/database.ts'
import type { Sealer } from './sealing.ts'

/** Signing keys as rows: the public half in the clear, the secret half sealed. */

export interface SigningKey {
  record: KeyRecord
  signer: Signer
}

/** The keys of this issuer with their secrets unsealed. */
export async function readSigningKeys(db: Db, iss: string, sealer: Sealer): Promise<SigningKey[]> {
  const rows = await db.selectFrom('signing_key').selectAll().where('iss', '=', iss).orderBy('created_ms').orderBy('kid').execute()
  return rows.map((row) => ({
    record: { kid: row.kid, alg: 'EdDSA', x: row.x, use: row.key_use as KeyUse, iss, state: row.state as KeyState },
    signer: signer(row.x, openSecret(sealer, row.sealed, row.kid)),
  }))
}

function openSecret(sealer: Sealer, sealed: string, kid: string): Buffer {
  try {
    return sealer.open(sealed, `signing_key/${kid}`)
  } catch (cause) {
    throw new Error('the master key is not the one this database was sealed with: put back the keys folder that belongs to it', { cause })
  }
}

/** Makes an active key for each use that has none. */
export async function makeMissingKeys(db: Db, iss: string, uses: readonly KeyUse[], sealer: Sealer, random: Randomness, nowMs: number): Promise<void> {
  const active = await db.selectFrom('signing_key').select('key_use').where('iss', '=', iss).where('state', '=', 'active').execute()
  for (const use of uses) {
    if (active.some((row) => row.key_use === use)) continue
    const { x, secret } = newKey(random)
    const kid = keyId(x)
    const sealed = sealer.seal(secret, `signing_key/${kid}`)
    await db.insertInto('signing_key').values({ kid, iss, key_use: use, x, sealed, state: 'active', created_ms: nowMs }).execute()
  }
}
