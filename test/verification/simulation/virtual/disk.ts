import type { Database as Connection, Statement } from 'better-sqlite3'
import { copyFileSync, existsSync, mkdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/**
 * A disk that survives its process: real SQLite on files in memory. After a crash the next process gets a copy of these
 * files. Commits are flushed (synchronous=FULL), so they survive a power cut. If a connection does not flush, a power
 * cut loses all data since the connection was opened. A dead process may still write, but only into files that no
 * process reads.
 */
export interface Disk {
  /** Folder with the files of the current process. */
  readonly folder: string
  /** Watches the commits of a new connection. */
  watch(connection: Connection, name: string): Connection
  /** Read-only connection of the current process. */
  readonly reading: Connection | undefined
  /** Gives the next process a copy of the current files. The process that ended keeps the original files. */
  processEnded(how: { powerCut: boolean }): void
  /** Gives the next process the files of an old copy. */
  restore(copy: string): void
  /** Copies the current files for a later `restore`, and returns the folder. */
  copy(): string
  /** Makes the next commit fail with this fault; later commits work. */
  failNext(fault: DiskFault): void
  heal(): void
  close(): void
}

/** `full`: rejected and rolled back. `io-lost`: I/O error, not written. `io-kept`: I/O error, but written. */
export type DiskFault = 'full' | 'io-lost' | 'io-kept'

export interface DiskWatcher {
  /** Called before and after a commit. The process may die in both calls. */
  beforeCommit(): void
  afterCommit(connection: Connection): void
  /** Called when a commit fails because of a fault of this disk. */
  onFault?(): void
  isAlive(): boolean
}

/** True if a fault of this disk caused the error. */
export function isDiskFault(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: unknown }
  return code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_FSYNC' || (cause !== undefined && isDiskFault(cause))
}

const SUFFIXES = ['', '-wal'] as const

/** Creates a disk below `root`. `template`: folder with the initial files. */
export function newDisk(root: string, names: readonly string[], watcher: DiskWatcher, template?: string): Disk {
  return new SurvivingDisk(root, names, watcher, template)
}

class SurvivingDisk implements Disk {
  readonly #root: string
  readonly #names: readonly string[]
  readonly #watcher: DiskWatcher
  readonly #connections: { connection: Connection; name: string; walBytes: number; life: number }[] = []
  #life = 0
  #copies = 0
  #fault: DiskFault | undefined
  #folder: string

  constructor(root: string, names: readonly string[], watcher: DiskWatcher, template?: string) {
    this.#root = root
    this.#names = names
    this.#watcher = watcher
    this.#folder = this.#newFolder()
    if (template !== undefined) this.#copyAll(template, this.#folder)
  }

  get folder(): string {
    return this.#folder
  }

  watch(connection: Connection, name: string): Connection {
    const wal = `${connection.name}-wal`
    this.#connections.push({
      connection,
      name,
      walBytes: existsSync(wal) ? statSync(wal).size : 0,
      life: this.#lifeOf(connection),
    })
    if (connection.readonly) return connection
    const prepare = connection.prepare.bind(connection) as (sql: string) => Statement
    const watched = (sql: string) => (sql === 'COMMIT' ? this.#watchCommit(connection, prepare(sql)) : prepare(sql))
    Object.defineProperty(connection, 'prepare', { value: watched })
    return connection
  }

  get reading(): Connection | undefined {
    return this.#connections.find((c) => c.life === this.#life && c.connection.readonly && c.connection.open)
      ?.connection
  }

  processEnded({ powerCut }: { powerCut: boolean }): void {
    const current = this.#life
    this.#copyAll(this.#leave(), this.#folder)
    if (!powerCut) return
    for (const { connection, name, walBytes, life: opened } of this.#connections) {
      if (opened !== current || connection.readonly || !connection.open) continue
      const flushes = connection.pragma('synchronous', { simple: true }) === 2
      const wal = join(this.#folder, `${name}-wal`)
      if (!flushes && existsSync(wal)) truncateSync(wal, Math.min(walBytes, statSync(wal).size))
    }
  }

  copy(): string {
    const to = join(this.#root, `copy-${++this.#copies}`)
    mkdirSync(to, { recursive: true })
    this.#copyAll(this.#folder, to)
    return to
  }

  restore(copy: string): void {
    this.#leave()
    this.#copyAll(copy, this.#folder)
  }

  failNext(next: DiskFault): void {
    this.#fault = next
  }

  heal(): void {
    this.#fault = undefined
  }

  close(): void {
    for (const { connection } of this.#connections) connection.close()
    rmSync(this.#root, { recursive: true, force: true })
  }

  #newFolder(): string {
    const made = join(this.#root, String(++this.#life))
    mkdirSync(made, { recursive: true })
    return made
  }

  #copyAll(from: string, to: string): void {
    for (const name of this.#names) {
      for (const suffix of SUFFIXES)
        if (existsSync(join(from, name + suffix))) copyFileSync(join(from, name + suffix), join(to, name + suffix))
    }
  }

  #failure(code: string, text: string): Error {
    return Object.assign(new Error(text), { code })
  }

  /**
   * Number of the process that owns the connection's file. The folder of that file has this number as its name. A
   * process that died during its start may open a file late, so the connection may belong to an earlier process.
   */
  #lifeOf(connection: Connection): number {
    return Number(basename(dirname(connection.name)))
  }

  #watchCommit(connection: Connection, statement: Statement): Statement {
    const commit = statement.run.bind(statement)
    const isAlive = () => this.#lifeOf(connection) === this.#life && this.#watcher.isAlive()
    const run = () => {
      if (!isAlive()) return commit()
      this.#watcher.beforeCommit()
      const failing = isAlive() ? this.#fault : undefined
      this.#fault = undefined
      if (failing) this.#watcher.onFault?.()
      if (failing === 'full') throw this.#failure('SQLITE_FULL', 'database or disk is full')
      if (failing === 'io-lost') throw this.#failure('SQLITE_IOERR_FSYNC', 'disk I/O error')
      const done = commit()
      // The data is on the disk now, even if the process will get an error.
      if (isAlive()) this.#watcher.afterCommit(connection)
      if (failing === 'io-kept') throw this.#failure('SQLITE_IOERR_FSYNC', 'disk I/O error')
      return done
    }
    Object.defineProperty(statement, 'run', { value: run })
    return statement
  }

  #leave(): string {
    const before = this.#folder
    this.#folder = this.#newFolder()
    return before
  }
}
