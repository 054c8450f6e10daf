import { existsSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { noteChange } from '../../cloud/platform/accounts/audit-queries.ts'
import { INSTALLATION } from '../../cloud/platform/authority/key-loader.ts'
import { loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { changeRoot, readRoot } from '../../cloud/platform/authority/known-root.ts'
import { lockDataDir } from '../data-dir-lock.ts'
import { keyPlaceOf, type KeySettings } from '../key-place.ts'
import { realPlatform } from '../platform.ts'
import { secretFiles } from '../secret-files.ts'
import { assertOwnKeyFiles, withKnownDatabase, type DatabaseLocation } from './known-database.ts'

/**
 *   rename root.json ─▶ create a new one ─▶ the cloud signs its key sets with it, in a new epoch
 *
 * Replaces a lost or stolen root key. If this command crashes, the cloud does not start; run this command again to
 * complete the change. Agents trust only the root key of their enrolment, so all agents must be re-enrolled.
 */
export async function rotateRoot({
  json,
  ...place
}: DatabaseLocation & KeySettings & { json: boolean }): Promise<void> {
  const { data } = place
  const keys = keyPlaceOf(place)
  const file = keys.root
  assertOwnKeyFiles(keys, data)
  const platform = realPlatform()
  const kid = await withKnownDatabase(place, async (database) => {
    const lock = lockDataDir(
      join(data, 'cloud.lock'),
      `a cloud runs with the data in ${data}: stop it first, on every machine that uses the database`,
    )
    try {
      const known = await readRoot(database.reads)
      const isKnown =
        existsSync(file) && (await loadKeyFiles(keys, secretFiles, platform.random)).root.signer.kid === known
      if (isKnown) renameSync(file, join(dirname(file), `root-${known}.json`))
      const next = (await loadKeyFiles(keys, secretFiles, platform.random)).root.signer.kid
      await database.write(async (db) => {
        await changeRoot(db, next)
        await noteChange(
          db,
          { tenant: INSTALLATION, actor: 'command line', operation: 'rotateSigningKey', entity_id: next },
          platform,
        )
      })
      return next
    } finally {
      lock.release()
    }
  })
  process.stderr.write(
    `Re-enrol every agent now: revokeAgent, createEnrolmentCode, untag edge enrol --replace. Copy the new ${file} to the other machines of the cloud.\n`,
  )
  process.stdout.write(`${json ? JSON.stringify({ kid, keys: [{ iss: 'root', kid }] }) : `${kid} signs now (root)`}\n`)
}
