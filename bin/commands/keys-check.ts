import { INSTALLATION } from '../../cloud/platform/authority/key-loader.ts'
import { assertNamedKeys, readSigningKeys, readRoot } from '../../cloud/platform/authority/signing-keys.ts'
import { loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { sealer } from '../../cloud/platform/authority/sealing.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import { keyPlaceOf, secretFiles } from '../../host/secret-files.ts'
import type { Values } from '../../host/options.ts'
import { printTable } from '../../host/output.ts'
import { pathExists } from '../../host/private-files.ts'
import { realPlatform } from '../../host/platform.ts'
import type { KEYS_CHECK_OPTIONS } from '../../host/settings/cloud-data.ts'
import { assertOwnKeyFiles, withKnownDatabase } from '../../host/known-database.ts'

/** Signing keys that the command shows. */
const SHOWN_LIMIT = 1_000

/**
 * Checks that the key files belong to the database, and lists the signing keys. Changes nothing, so that it can also
 * check a copy of the keys.
 */
export async function runKeysCheck(settings: Values<typeof KEYS_CHECK_OPTIONS>): Promise<void> {
  const place = keyPlaceOf(settings)
  assertOwnKeyFiles(place, settings.data)
  if (!pathExists(place.root))
    throw new Error(`${place.root} does not exist: copy the root key that belongs to this database there`)
  const { random } = realPlatform()
  const files = await loadKeyFiles(place, secretFiles, random)
  const keys = await withKnownDatabase(settings, async ({ reads }) => {
    assertNamedKeys({ root: await readRoot(reads), sealing: [] }, files)
    // Opens the secret of each active key, which fails with a foreign master key.
    await readSigningKeys(reads, INSTALLATION, sealer(files.sealingKeys, random))
    return signingKeys(reads)
  })
  const root = files.root.signer.kid
  printTable(
    settings.json,
    { ok: true, root, masterKeys: files.sealingKeys.length, keys },
    {
      head: ['KEY', 'USE', 'STATE', 'SINCE', 'STORE OR ISSUER'],
      rows: [
        ...keys.map(({ kid, use, state, iss, since }) => [kid, use, state, since, iss]),
        [root, 'root', 'active', '', place.root],
      ],
      empty: '',
    },
  )
  if (!settings.json) process.stdout.write(`${place.master} and ${place.root} belong to this database\n`)
}

async function signingKeys(db: Db) {
  const rows = await db
    .selectFrom('signing_key')
    .select(['kid', 'iss', 'key_use', 'state', 'changed_ms'])
    .where('state', 'in', ['next', 'active', 'retiring', 'revoked'])
    .orderBy('iss')
    .orderBy('key_use')
    .orderBy('created_ms')
    .limit(SHOWN_LIMIT)
    .execute()
  return rows.map((row) => ({
    kid: row.kid,
    use: row.key_use,
    state: row.state,
    iss: row.iss,
    since: new Date(row.changed_ms).toISOString(),
  }))
}
