import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { claimedKeyId } from '../../policy/documents/signed-document.ts'
import type { Db } from '../persistence/database.ts'
import { raiseKeySetEpoch } from './key-counters.ts'

/** Which root signs the key sets of this database: agents believe the one that they were enrolled with, and no other. */

const ROOT = 'root_kid'

/** Throws when the root's file is not of the root that agents know: a cloud that signed with another would be refused by all of them. */
export async function assertKnownRoot(db: Db, kid: string): Promise<void> {
  assertRoot(await readRoot(db), kid)
  await writeRoot(db, kid)
}

/** Throws when agents know another root than this one; undefined: none yet. */
export function assertRoot(known: string | undefined, kid: string): void {
  if (known !== undefined && known !== kid) {
    throw new Error(
      `root.json is not the root key that agents of this cloud were enrolled with (${known}): put back the keys folder that belongs to it, or, when it is lost, make a new root with untag keys rotate --use root, after which every agent must be enrolled anew`,
    )
  }
}

/** The kid of the root that signs; undefined before the first start. */
export async function readRoot(db: Db): Promise<string | undefined> {
  const kept = await db.selectFrom('installation').select('value').where('name', '=', ROOT).executeTakeFirst()
  return kept?.value ?? signerOfKeySets(db)
}

/** Another root signs from now on: every key set is signed anew, in an epoch above all before. Agents follow only when they are enrolled anew. */
export async function changeRoot(db: Db, kid: string): Promise<void> {
  await writeRoot(db, kid)
  await raiseKeySetEpoch(db)
}

async function writeRoot(db: Db, value: string): Promise<void> {
  await db
    .insertInto('installation')
    .values({ name: ROOT, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()
}

/** Of databases from before that was noted. */
async function signerOfKeySets(db: Db): Promise<string | undefined> {
  const row = await db
    .selectFrom('signed_document')
    .select('jws')
    .where('kind', '=', 'keys')
    .limit(1)
    .executeTakeFirst()
  return row && claimedKeyId(row.jws, DOCUMENT_KINDS.keys)
}
