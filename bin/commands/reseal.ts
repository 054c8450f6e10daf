import { join } from 'node:path'
import { addSealingKey, discardOtherSealingKeys } from '../../cloud/platform/authority/key-files.ts'
import { resealAll, sealer, sealingKeyId } from '../../cloud/platform/authority/sealing.ts'
import { counted } from '../../host/output.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { keyPlaceOf, secretFiles } from '../../host/secret-files.ts'
import type { Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { RESEAL_OPTIONS } from '../../host/settings/cloud-data.ts'
import { assertKnownDatabase, assertOwnKeyFiles, withKnownDatabase } from '../../host/known-database.ts'

/**
 *   new key in master.key ─▶ encrypt every secret with it ─▶ delete old keys (with --drop-old-keys)
 *
 * After a crash the old keys are still in the file. Run the command again to complete the change. Stop the cloud first,
 * because it reads `master.key` only at its start.
 */
export async function runReseal(settings: Values<typeof RESEAL_OPTIONS>): Promise<void> {
  const { data, dropOldKeys, json } = settings
  await assertKnownDatabase(settings)
  const place = keyPlaceOf(settings)
  assertOwnKeyFiles(place, data)
  await withKnownDatabase(settings, async (database) => {
    const lock = lockDataDir(join(data, 'cloud.lock'), `a cloud runs with the data in ${data}: stop it first`)
    try {
      const { random } = realPlatform()
      const keys = addSealingKey(place, secretFiles, random)
      const [current] = keys
      if (!current) throw new Error('no key was made')
      const resealed = await resealAll(database, sealer(keys, random))
      if (dropOldKeys) discardOtherSealingKeys(place, secretFiles, current)
      const keyId = sealingKeyId(current)
      const oldKeys = dropOldKeys ? 0 : keys.length - 1
      process.stdout.write(
        json
          ? `${JSON.stringify({ keyId, resealed, oldKeys })}\n`
          : `${keyId} now encrypts ${counted(resealed, 'secret')}; master.key keeps ${counted(oldKeys, 'older key')}\n`,
      )
    } finally {
      lock.release()
    }
  })
}
