import { noteChange } from '../../cloud/platform/accounts/audit-operations.ts'
import { INSTALLATION, issuersOf } from '../../cloud/platform/authority/key-loader.ts'
import { loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { rotateKey, type RotatedUse } from '../../cloud/platform/authority/rotate-key.ts'
import { sealer } from '../../cloud/platform/authority/sealing.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import { keyPlaceOf, secretFiles, type KeySettings } from '../../host/secret-files.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { KEYS_REVOKE_OPTIONS, KEYS_ROTATE_OPTIONS } from '../../host/settings/cloud-data.ts'
import { accountNamed, assertOwnKeyFiles, withKnownDatabase, type DatabaseLocation } from '../../host/known-database.ts'
import { existsSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { changeRoot, readRoot } from '../../cloud/platform/authority/signing-keys.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'

/**
 *   rename root.json ─▶ create a new one ─▶ the cloud signs its key sets with it, in a new epoch
 *
 * Replaces a lost or stolen root key. If this command crashes, the cloud does not start; run this command again to
 * complete the change. Agents trust only the root key of their enrolment, so all agents must be re-enrolled.
 */
async function rotateRoot({ json, ...place }: DatabaseLocation & KeySettings & { json: boolean }): Promise<void> {
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

/**
 * Commands that replace signing keys, by the rules of `rotateSigningKey`. A running cloud uses the new key from its
 * next request.
 */

type Settings = Values<typeof KEYS_REVOKE_OPTIONS>

/** Replaces a signing key. Signatures of the former key stay valid until they expire. */
export async function runKeysRotate(settings: Values<typeof KEYS_ROTATE_OPTIONS>): Promise<void> {
  const { use } = settings
  if (use === 'none')
    throw new WrongUsage(['--use token, receipt, policy, freshness or root is needed: what the key signs'])
  if (use === 'root') return rotateRoot(settings)
  const keys = await change({ ...settings, use }, false)
  print(settings, keys, (iss, kid) => `${kid} signs now (${settings.use}, ${iss})`)
}

/** Revokes a signing key. Everything that it signed is rejected from now on. */
export async function revokeSigningKey(settings: Settings): Promise<void> {
  const keys = await change(settings, settings.kid ?? true)
  const anew = settings.use === 'freshness' ? '; agents request a new freshness statement' : ''
  print(settings, keys, (iss, kid) => `revoked; ${kid} signs now (${settings.use}, ${iss})${anew}`)
}

function print(
  { json }: { json: boolean },
  keys: { iss: string; kid: string }[],
  line: (iss: string, kid: string) => string,
): void {
  process.stdout.write(
    `${json ? JSON.stringify({ kid: keys[0]?.kid, keys }) : keys.map(({ iss, kid }) => line(iss, kid)).join('\n')}\n`,
  )
}

async function change(
  settings: Omit<Settings, 'keyId' | 'kid'>,
  revoke: boolean | string,
): Promise<{ iss: string; kid: string }[]> {
  const { use, data } = settings
  if (use === 'none') throw new WrongUsage(['--use token, receipt, policy or freshness is needed: what the key signs'])
  // The cloud can read the new key only if the cloud's own master key encrypts the key.
  const place = keyPlaceOf(settings)
  assertOwnKeyFiles(place, data)
  const { random, clock } = realPlatform()
  const files = await loadKeyFiles(place, secretFiles, random)
  return withKnownDatabase(settings, (database) =>
    database.write(async (db) => {
      const accountId = use === 'policy' || use === 'freshness' ? INSTALLATION : await ownerNamed(db, settings.account)
      const issuers = await issuersOf(
        db,
        { use, accountId, ...(settings.mode !== 'both' && { mode: settings.mode }) },
        revoke,
      )
      const keys = []
      for (const iss of issuers)
        keys.push({
          iss,
          kid: await rotateOne(db, { iss, use, revoke }, sealer(files.sealingKeys, random), clock.wall()),
        })
      return keys
    }),
  )
}

async function rotateOne(
  db: Db,
  rotation: { iss: string; use: RotatedUse; revoke: boolean | string },
  seal: ReturnType<typeof sealer>,
  nowMs: number,
): Promise<string> {
  const platform = realPlatform()
  const kid = await rotateKey(db, rotation, { sealer: seal, random: platform.random, nowMs })
  await noteChange(
    db,
    { tenant: rotation.iss, actor: 'command line', operation: 'rotateSigningKey', entity_id: kid },
    platform,
  )
  return kid
}

async function ownerNamed(db: Db, name: string | undefined): Promise<string> {
  if (name === undefined)
    throw new WrongUsage(['--account NAME is needed: token and receipt keys belong to an account'])
  return accountNamed(db, name)
}
