import { noteChange } from '../../cloud/platform/accounts/audit-operations.ts'
import { INSTALLATION, issuersOf } from '../../cloud/platform/authority/key-loader.ts'
import { loadKeyFiles, addSealingKey, discardOtherSealingKeys } from '../../cloud/platform/authority/key-files.ts'
import { rotateKey, type RotatedUse } from '../../cloud/platform/authority/rotate-key.ts'
import { sealer, resealAll, sealingKeyId } from '../../cloud/platform/authority/sealing.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import { keyPlaceOf, secretFiles, type KeySettings } from '../../host/secret-files.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type {
  KEYS_REVOKE_OPTIONS,
  KEYS_ROTATE_OPTIONS,
  KEYS_CHECK_OPTIONS,
  RESEAL_OPTIONS,
} from '../../host/settings/cloud-data.ts'
import {
  accountNamed,
  assertOwnKeyFiles,
  withKnownDatabase,
  type DatabaseLocation,
  assertKnownDatabase,
} from '../../host/known-database.ts'
import { existsSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { changeRoot, readRoot, assertNamedKeys, readSigningKeys } from '../../cloud/platform/authority/signing-keys.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { printTable, counted } from '../../host/output.ts'
import { pathExists } from '../../host/private-files.ts'

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
