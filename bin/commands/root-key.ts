import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { noteChange } from '../../cloud/accounts/audit-queries.ts'
import { INSTALLATION } from '../../cloud/authority/key-loader.ts'
import { loadKeyFiles } from '../../cloud/authority/key-files.ts'
import { changeRoot, readRoot } from '../../cloud/authority/known-root.ts'
import { lockDataDir } from '../data-dir-lock.ts'
import { realPlatform } from '../platform.ts'
import { secretFiles } from '../secret-files.ts'
import { assertOwnKeyFiles, withKnownDatabase, type Place } from './known-database.ts'

/**
 *   root.json ─▶ aside, a new one in its place ─▶ the database signs its key sets with that, in a new epoch
 *
 * For a root that was lost or stolen. A crash in between leaves a cloud that does not start and names this command; then the new one
 * is there and only the rest is done. No agent follows by itself: that is what a root is for.
 */
export async function rotateRoot({ json, ...place }: Place & { json: boolean }): Promise<void> {
  const { data } = place
  const file = join(data, 'keys', 'root.json')
  assertOwnKeyFiles(data)
  const platform = realPlatform()
  const kid = await withKnownDatabase(place, async (database) => {
    const lock = lockDataDir(
      join(data, 'cloud.lock'),
      `a cloud runs with the data in ${data}: stop it first, on every machine that uses the database`,
    )
    try {
      const known = await readRoot(database.reads)
      const isKnown =
        existsSync(file) && (await loadKeyFiles(data, secretFiles, platform.random)).root.signer.kid === known
      if (isKnown) renameSync(file, join(data, 'keys', `root-${known}.json`))
      const next = (await loadKeyFiles(data, secretFiles, platform.random)).root.signer.kid
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
    `every agent must be enrolled anew now: revokeAgent, createEnrolmentCode, untag edge enrol --replace; the other machines of the cloud need the new ${file}\n`,
  )
  process.stdout.write(`${json ? JSON.stringify({ kid, keys: [{ iss: 'root', kid }] }) : `${kid} signs now (root)`}\n`)
}
