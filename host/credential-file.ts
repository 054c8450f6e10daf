import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  type Stats,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { newSecret } from '../edge-agent/identity/identity.ts'
import type { Randomness } from '../policy/platform.ts'
import { flushFolder } from './replace-file.ts'

/** Mode 0640: the owner may read and write, and the group may read. */
const MODE = 0o640
const SHAPE = /^untag_pair_[\w-]{32}$/

/**
 * The agent's credential for programs, in the file `DATA/credential`. The agent reads the file for every request, so
 * that a new credential is valid at once.
 */
interface CredentialFile {
  /** Undefined if the file is missing or contains no credential. Throws if the file cannot be read. */
  read(): string | undefined
  /** Returns the credential. Creates a credential if there is none. */
  ensure(): string
  /** Replaces the credential and returns the new credential. */
  renew(): string
}

/** The credential file of the agent with this data folder. */
export function credentialFile(dataDir: string, random: Randomness): CredentialFile {
  const file = fileIn(dataDir)
  const read = () => readCredential(dataDir)

  function renew(): string {
    const credential = newSecret('pair', random)
    const fresh = `${file}.${process.pid}.new`
    const fd = openSync(fresh, 'w', MODE)
    try {
      fchmodSync(fd, MODE)
      // If root runs the command, the file keeps its owner, so that the agent can still read it.
      keepOwner(fd, statSync(file, { throwIfNoEntry: false }) ?? statSync(dataDir))
      writeFileSync(fd, `${credential}\n`)
      fsyncSync(fd)
    } catch (error) {
      rmSync(fresh, { force: true })
      throw error
    } finally {
      closeSync(fd)
    }
    renameSync(fresh, file)
    flushFolder(dirname(file))
    return credential
  }

  return { read, ensure: () => read() ?? renew(), renew }
}

/** Reads the credential in this data folder. Undefined if there is none. Throws if the file cannot be read. */
export function readCredential(dataDir: string): string | undefined {
  let text: string
  try {
    text = readFileSync(fileIn(dataDir), 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  return SHAPE.test(text) ? text : undefined
}

/** HTTP header with the credential of the agent in this data folder. */
export function authorizationIn(dataDir: string): { authorization: string } {
  return { authorization: `Bearer ${readCredential(dataDir)}` }
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'credential')
}

function keepOwner(fd: number, { uid, gid }: Stats): void {
  if (uid === process.getuid?.() && gid === process.getgid?.()) return
  try {
    fchownSync(fd, uid, gid)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    process.stderr.write(
      'The new credential file has another user or group than the former one: set them with chown, or renew the credential as root.\n',
    )
  }
}
