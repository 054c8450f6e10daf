import { openConnection } from '../../cloud/platform/persistence/sqlite.ts'
import { canonicalValue, type Row, type Table } from './rows.ts'

/** The SQLite database that is copied, in the state that it had when this program opened it. */
export interface Source {
  /** Tables with data, each after the tables that it references. */
  readonly tables: readonly SourceTable[]
  /** Names of the applied migrations. */
  readonly migrations: readonly string[]
  count(table: SourceTable): number
  /** Rows in the order of their keys, without the first `skipped` ones. Only one table can be read at a time. */
  rows(table: Table, skipped: number): Iterable<Row>
  close(): void
}

/** A table of SQLite. `key` has names of columns. */
export interface SourceTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly key: readonly string[]
  readonly references: readonly string[]
}

/** Opens the database for reading. */
export function openSource(file: string): Source {
  const db = openConnection(file, { readonly: true })
  try {
    // Pins the snapshot, so that all reads see the same rows.
    db.exec('BEGIN')
    const texts = (query: string) => db.prepare<[], string>(query).pluck().all()
    return {
      migrations: texts('SELECT name FROM migration ORDER BY name'),
      tables: inOrderOfReferences(
        // Leaves out virtual tables and their shadow tables: they are search indexes, which PostgreSQL computes by
        // itself.
        texts(
          "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT IN ('migration', 'sqlite_schema') AND name NOT LIKE 'sqlite\\_stat_' ESCAPE '\\' ORDER BY name",
        ).map((name) => {
          const columns = texts(`SELECT name FROM pragma_table_info('${name}')`)
          const key = texts(`SELECT name FROM pragma_table_info('${name}') WHERE pk > 0 ORDER BY pk`)
          const references = texts(`SELECT DISTINCT "table" FROM pragma_foreign_key_list('${name}')`)
          return { name, columns, key: key.length > 0 ? key : columns, references }
        }),
      ),
      count: ({ name }) => Number(db.prepare(`SELECT count(*) FROM "${name}"`).pluck().get()),
      *rows({ name, columns, key }, skipped) {
        const order = key.map((i) => `"${columns[i]?.name}"`).join(', ')
        const listed = columns.map((column) => `"${column.name}"`).join(', ')
        const statement = db.prepare<[number], unknown[]>(
          `SELECT ${listed} FROM "${name}" ORDER BY ${order} LIMIT -1 OFFSET ?`,
        )
        statement.raw(true).safeIntegers(true)
        for (const values of statement.iterate(skipped))
          yield columns.map((column, i) => canonicalValue(column, values[i]))
      },
      close: () => db.close(),
    }
  } catch (error) {
    db.close()
    throw error
  }
}

/** Sorts tables so that referenced tables come first. */
function inOrderOfReferences(tables: readonly SourceTable[]): SourceTable[] {
  const sorted: SourceTable[] = []
  const waiting = new Set(tables)
  while (waiting.size > 0) {
    const ready = [...waiting].filter(({ name, references }) =>
      references.every((other) => other === name || sorted.some((table) => table.name === other)),
    )
    if (ready.length === 0)
      throw new Error(`tables reference each other: ${[...waiting].map((t) => t.name).join(', ')}`)
    for (const table of ready) waiting.delete(table)
    sorted.push(...ready)
  }
  return sorted
}
