import type { Database as Connection, Statement } from 'better-sqlite3'

/**
 * Tables whose rows change rarely, and which most requests read: the caller, the store, its agents and devices, and
 * subscriptions.
 */
const SETTLED: ReadonlySet<string> = new Set([
  'account',
  'agent',
  'api_key',
  'device',
  'installation',
  'store',
  'webhook_subscription',
])

/** Maximum number of kept results of one statement. */
const RESULTS_LIMIT = 500

/** Number of the last change of each table. */
class Changes {
  #last = 0
  #lastOfAll = 0
  readonly #lastOf = new Map<string, number>()

  note(tables: Iterable<string>): void {
    this.#last++
    for (const table of tables) this.#lastOf.set(table, this.#last)
  }

  noteAll(): void {
    this.#lastOfAll = ++this.#last
  }

  /** Number of the last change of any of these tables. */
  lastOf(tables: readonly string[]): number {
    let last = this.#lastOfAll
    for (const table of tables) last = Math.max(last, this.#lastOf.get(table) ?? 0)
    return last
  }
}

/** Reads the raw rows of a statement. */
export type ReadValues = (parameters: readonly unknown[]) => unknown[][]

/** Keeps the results of one connection. */
export interface Keeper {
  /**
   * Returns a function that reads the raw rows of this statement, and keeps the rows if `SETTLED` contains all tables.
   */
  reader(text: string, statement: Statement): ReadValues
  /** Returns a function that notes a run of this statement; undefined if the statement changes nothing. */
  noter(text: string, statement: Statement): (() => void) | undefined
}

/**
 * Results of reads of the tables in `SETTLED`, for both connections of a SQLite database. A result is kept until a
 * statement that writes names one of its tables, another process commits, or a transaction is rolled back. The reading
 * connection sees a change at its commit (ADR 0054).
 */
export class KeptReads {
  readonly #version: Statement
  readonly #names: RegExp
  readonly #dependents: ReadonlyMap<string, readonly string[]>
  readonly #written = new Changes()
  readonly #committed = new Changes()
  /** Tables that the open commit changes. */
  readonly #pending = new Set<string>()
  #knownVersion: unknown

  /** `db`: the only connection of this process that writes. Its tables must exist. */
  constructor(db: Connection) {
    this.#version = db.prepare('PRAGMA data_version').pluck()
    const named = db.prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").pluck().all() as string[]
    this.#names = new RegExp(`\\b(?:${named.join('|')})\\b`, 'gi')
    this.#dependents = dependentsOf(db, named, (text) => this.#tablesIn(text))
    this.#knownVersion = this.#version.get()
  }

  /** For the writing connection. Each of its transactions must call `begin`, then `commit` or `undo`. */
  readonly writing: Keeper = {
    reader: (text, statement) => this.#reader(text, statement, this.#written),
    noter: (text, statement) => this.#noter(text, statement),
  }

  /** For the reading connection. */
  readonly reading: Keeper = {
    reader: (text, statement) => this.#reader(text, statement, this.#committed, () => this.begin()),
    noter: () => undefined,
  }

  /** Forgets everything if another process has committed since the last call. */
  begin(): void {
    const version = this.#version.get()
    if (version === this.#knownVersion) return
    this.#knownVersion = version
    this.#noteAll()
  }

  commit(): void {
    this.#committed.note(this.#pending)
    this.#pending.clear()
  }

  /** Forgets everything, because a transaction was rolled back. */
  undo(): void {
    this.#noteAll()
  }

  #noteAll(): void {
    this.#written.noteAll()
    this.#committed.noteAll()
  }

  #reader(text: string, statement: Statement, changes: Changes, check?: () => void): ReadValues {
    const read: ReadValues = (parameters) => statement.all(...parameters) as unknown[][]
    const tables = this.#tablesIn(text)
    if (tables.length === 0 || !tables.every((table) => SETTLED.has(table))) return read
    const results = new Map<string, unknown[][]>()
    let since = -1
    return (parameters) => {
      check?.()
      const last = changes.lastOf(tables)
      if (last > since || results.size >= RESULTS_LIMIT) results.clear()
      since = last
      const key = JSON.stringify(parameters)
      const known = results.get(key)
      if (known) return known
      const values = read(parameters)
      results.set(key, values)
      return values
    }
  }

  #noter(text: string, statement: Statement): (() => void) | undefined {
    if (/^\s*rollback/i.test(text)) return () => this.undo()
    if (statement.readonly) return undefined
    const tables = new Set(this.#tablesIn(text))
    // A loop over a set also visits the elements that the loop adds.
    for (const table of tables) for (const dependent of this.#dependents.get(table) ?? []) tables.add(dependent)
    return () => {
      this.#written.note(tables)
      for (const table of tables) this.#pending.add(table)
    }
  }

  /**
   * All tables and views whose names occur in the statement. The result includes all tables that the statement reads or
   * writes.
   */
  #tablesIn(text: string): string[] {
    return (text.match(this.#names) ?? []).map((name) => name.toLowerCase())
  }
}

/** For each table, the tables that SQLite may change with it, by a trigger or a foreign key. */
function dependentsOf(db: Connection, tables: readonly string[], namesIn: (text: string) => string[]) {
  const dependents = new Map<string, string[]>()
  const add = (table: string, changed: readonly string[]) =>
    dependents.set(table, [...(dependents.get(table) ?? []), ...changed])
  const triggers = db.prepare("SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger'").raw().all()
  for (const [table, text] of triggers as [string, string][]) add(table.toLowerCase(), namesIn(text))
  for (const table of tables) {
    const keys = db.pragma(`foreign_key_list(${table})`) as { table: string; on_delete: string; on_update: string }[]
    for (const { table: parent, on_delete, on_update } of keys)
      if (on_delete !== 'NO ACTION' || on_update !== 'NO ACTION') add(parent.toLowerCase(), [table.toLowerCase()])
  }
  return dependents
}
