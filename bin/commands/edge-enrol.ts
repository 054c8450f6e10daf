import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { adoptLedger, enrol, storeFirstDocuments } from '../../edge-agent/enrolment/enrol.ts'
import { findIdentity, readIdentity, writeIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import { LedgerDamaged, openLedgerFile } from '../../edge-agent/ledger/file/ledger-file.ts'
import type { Fetch } from '../../edge-agent/link/wire/http-client.ts'
import type { Platform } from '../../policy/platform.ts'
import { agentFetch, connectionFault } from '../api-client.ts'
import { credentialFile } from '../../host/credential-file.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { makeFolder } from '../../host/replace-file.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import type { EDGE_ENROL_OPTIONS } from '../../host/settings/edge.ts'
import { readCa } from '../../host/tls/private-ca.ts'

/** Enrols an agent with a code of the cloud, and prints its ids. */
export async function runEnrol(settings: Values<typeof EDGE_ENROL_OPTIONS>): Promise<void> {
  const { cloud, code, data, name, replace, json, ca: caFile } = settings
  const missing = [
    cloud === undefined && '--cloud BASE_URL is needed',
    code === undefined && '--code CODE is needed: create one with createEnrolmentCode',
  ].filter((m) => m !== false)
  if (cloud === undefined || code === undefined) throw new WrongUsage(missing)
  const ca = caFile === undefined ? undefined : readCa('--ca', caFile)
  const options = { cloud, code, data, replace, ...(name !== undefined && { name }), ...(ca !== undefined && { ca }) }
  const identity = await enrolAgent(options, realPlatform())
  const enrolled = JSON.stringify({ agentId: identity.agentId, storeId: identity.storeId })
  process.stdout.write(json ? `${enrolled}\n` : `enrolled ${enrolled}\n`)
}

/** Enrols an agent in the folder `data`. `ca`: certificates of a private CA, which the agent stores. */
export async function enrolAgent(
  settings: { cloud: string; code: string; data: string; name?: string; replace?: boolean; ca?: string },
  platform: Platform,
): Promise<Identity> {
  const { data } = settings
  makeFolder(data)
  const lock = lockDataDir(join(data, 'agent.lock'), `an agent runs with the data in ${data}: stop it first`)
  try {
    const known = settings.replace ? predecessorIn(data) : readIdentity(data, secretFiles)
    if (known && !settings.replace)
      throw new Error(
        `${data} already contains agent ${known.agentId}: choose another folder with --data, or replace that agent with --replace`,
      )
    const ledger = join(data, 'ledger.db')
    const isReadable = existsSync(ledger) ? isSound(ledger, settings.replace === true) : undefined
    // Runs before the enrolment, so that a full disk does not consume the enrolment code.
    credentialFile(data, platform.random).ensure()
    // A replacement keeps the CA of its predecessor.
    const ca = settings.ca ?? known?.ca
    const fetch = agentFetch(ca)
    let fault: string | undefined
    const noting: Fetch = (url, init) =>
      fetch(url, init).catch((error: unknown) => {
        fault = connectionFault(error, settings.cloud, '--cloud')
        throw error
      })
    const enrolled = await enrol({ ...settings, ...(known && { former: known }), platform, fetch: noting })
    if (!enrolled.ok) throw new Error(`enrolment failed: ${fault ?? enrolled.why}`)
    if (isReadable === false) renameDamagedLedger(ledger, platform)
    // The new agent continues the existing ledger, which contains the used release rights.
    if (isReadable) adoptLedger(ledger, known, enrolled.identity)
    if (isReadable !== undefined) {
      // The replica belongs to the predecessor. The new agent fetches its own replica.
      for (const suffix of ['', '-wal', '-shm']) rmSync(join(data, `items.db${suffix}`), { force: true })
    }
    storeFirstDocuments(ledger, enrolled.identity, enrolled.documents, platform)
    const identity = { ...enrolled.identity, ...(ca !== undefined && { ca }) }
    writeIdentity(data, identity, secretFiles)
    return identity
  } finally {
    lock.release()
  }
}

/** The identity of the predecessor, if it is readable. */
function predecessorIn(data: string): Identity | undefined {
  const known = findIdentity(data, secretFiles)
  if (known !== 'damaged') return known
  process.stderr.write(
    'The identity of the former agent is damaged, so the cloud cannot replace it. Find it with fetchAgents and revoke it with revokeAgent: this releases its devices and receipt home.\n',
  )
  return undefined
}

/** True if the ledger is readable. Throws if it is damaged and must not be renamed. */
function isSound(ledger: string, mayRename: boolean): boolean {
  try {
    openLedgerFile(ledger).close()
    return true
  } catch (error) {
    if (error instanceof LedgerDamaged && mayRename) return false
    throw error
  }
}

/** Renames a damaged ledger, after its write-ahead log: SQLite would apply that log to the next ledger. */
function renameDamagedLedger(ledger: string, { clock }: Platform): void {
  const aside = ledger.replace(/\.db$/, `-damaged-${new Date(clock.wall()).toISOString().replaceAll(/[:.]/g, '-')}.db`)
  for (const suffix of ['-wal', '-shm', ''])
    if (existsSync(ledger + suffix)) renameSync(ledger + suffix, aside + suffix)
  process.stderr.write(
    `The ledger is damaged and was renamed to ${aside}. Rows that the cloud had not received are lost.\n`,
  )
}
