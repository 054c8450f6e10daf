import { execFileSync } from 'node:child_process'
import { statfsSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import Sqlite from 'better-sqlite3'

/** Machine and commit of a result. Only results of the same machine can be compared. */
export interface Machine {
  cpu: string
  cores: number
  memoryGiB: number
  system: string
  node: string
  openssl: string
  sqlite: string
  fileSystem: string
  /** Mean load in the minute before the start. If it is above 1, other programs were running. */
  load: number
  /** The measured commit, with `+` if files differ from it; empty outside a repository. */
  commit: string
}

/**
 * Magic numbers of file systems (statfs(2)). On a file system in memory a durable commit costs nothing, so such figures
 * have no meaning.
 */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: 'ext',
  0x01021994: 'tmpfs',
  0x9123683e: 'btrfs',
  0x58465342: 'xfs',
  0x794c7630: 'overlay',
}

export function describeMachine(folder: string): Machine {
  const db = new Sqlite(':memory:')
  const { version } = db.prepare<[], { version: string }>('SELECT sqlite_version() AS version').get() ?? {
    version: 'unknown',
  }
  db.close()
  const { type } = statfsSync(folder)
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()} ${process.arch}`,
    node: process.version,
    openssl: process.versions.openssl,
    sqlite: version,
    fileSystem: FILE_SYSTEMS[type] ?? `0x${type.toString(16)}`,
    load: loadavg()[0] ?? 0,
    commit: commitOf(),
  }
}

function commitOf(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '+'}`
  } catch {
    return ''
  }
}
