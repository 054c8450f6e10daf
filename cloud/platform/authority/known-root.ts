import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { claimedKeyId } from '../../../policy/documents/signed-document.ts'
import type { Db } from '../persistence/database.ts'
import { readValue, writeValue } from '../persistence/installation.ts'
import { raiseKeySetEpoch } from './key-counters.ts'

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
export function assertRoot(known: string | undefined, kid: string): void {
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
