import type pg from 'pg'
import { openDatabase, createTables } from '../../cloud/platform/persistence/open-database.ts'
import { counted, errorText } from '../output.ts'
import {
  compareTable,
  isSame,
  type ComparedTable,
  keyText,
  sizeOf,
  type Row,
  type Table,
  canonicalValue,
  type Column,
} from './rows.ts'
import { COPYING } from '../../cloud/platform/persistence/migrate.ts'
import { RAISE_LISTING_NUMBERS } from '../../cloud/platform/persistence/listing-numbers.ts'
import { openConnection } from '../../cloud/platform/persistence/sqlite.ts'

/** The SQLite database that is copied, in the state that it had when this program opened it. */
interface Source {
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
interface SourceTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly key: readonly string[]
  readonly references: readonly string[]
}

/** Opens the database for reading. */
function openSource(file: string): Source {
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

/** The PostgreSQL database that receives the copy. */
interface Target {
  /** Server and database, without user and password. */
  readonly name: string
  /** Id of the incomplete copy that the database contains; undefined if the database is empty. */
  readonly copyId: string | undefined
  /** Names of the applied migrations, without the mark of the copy. */
  migrations(): Promise<readonly string[]>
  /** Creates the tables and marks the database as incomplete copy, in one transaction. */
  begin(copyId: string): Promise<void>
  /** Columns that both databases have. Throws if the tables differ. */
  tableLike(table: SourceTable): Promise<Table>
  /** Throws if PostgreSQL has a table that SQLite lacks. */
  assertNoOtherTables(tables: readonly SourceTable[]): Promise<void>
  count(table: SourceTable): Promise<number>
  /** Adds rows in one transaction. */
  add(table: Table, rows: readonly Row[]): Promise<void>
  /** All rows in the order of their keys. */
  rows(table: Table): AsyncIterable<Row>
  /** Updates the planner's statistics, and removes the mark: clouds may use the database now. */
  finish(): Promise<void>
  close(): Promise<void>
}

const APPLICATION = 'untag database copy'
/** Session lock of a copy. Other programs on this database do not use this number. */
const COPY_LOCK = 7_201_122
/** Maximum wait for the session of a killed copy to end. */
const LOCK_TIMEOUT = '10s'
const FETCHED_ROWS = 1_000

/** Connects and locks the database for this copy. Throws if the database is in use, or has other content. */
async function openTarget(url: string): Promise<Target> {
  const { default: driver } = await import('pg')
  const client = new driver.Client({
    connectionString: url,
    application_name: APPLICATION,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    // All values as PostgreSQL prints them: rows.ts converts them.
    types: { getTypeParser: () => (text: string) => text } as pg.CustomTypesConfig,
  })
  client.on('error', () => undefined)
  await client.connect().catch((error: unknown) => {
    throw new Error(`the database of --to cannot be reached: ${errorText(error)}`, { cause: error })
  })
  try {
    await lock(client)
    await assertUnused(client)
    // Only the last commit must be flushed at once. PostgreSQL flushes its log in order, so the last flush makes all
    // earlier commits durable too.
    await client.query('SET synchronous_commit = off')
    return targetOn(client, url, await startedCopy(client))
  } catch (error) {
    await client.end()
    throw error
  }
}

async function texts(client: pg.Client, text: string, values: unknown[] = []): Promise<string[]> {
  const { rows } = await client.query<[string]>({ text, values, rowMode: 'array' })
  return rows.map(([value]) => value)
}

/** Waits for the end of a killed copy, whose session continues until the server notices the closed connection. */
async function lock(client: pg.Client): Promise<void> {
  await client.query(`SET lock_timeout = '${LOCK_TIMEOUT}'`)
  await client.query(`SELECT pg_advisory_lock(${COPY_LOCK})`).catch((error: unknown) => {
    throw (error as { code?: string }).code === '55P03'
      ? new Error('another copy into this database is running: wait for its end')
      : error
  })
}

/** Counts the sessions of other roles too, whose kind PostgreSQL hides. Its own workers have no role. */
async function assertUnused(client: pg.Client): Promise<void> {
  const [encoding] = await texts(client, 'SHOW server_encoding')
  if (encoding !== 'UTF8') throw new Error(`the database has the encoding ${encoding}: create one with ENCODING 'UTF8'`)
  const [others] = await texts(
    client,
    `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
     AND usesysid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
     AND application_name IS DISTINCT FROM $1`,
    [APPLICATION],
  )
  if (others !== '0')
    throw new Error(`the database has ${counted(Number(others), 'other connection')}: stop every program that uses it`)
}

/** Id of the incomplete copy in the database; undefined for an empty one. */
async function startedCopy(client: pg.Client): Promise<string | undefined> {
  const tables = await tableNames(client)
  if (tables.length === 0) return undefined
  const marks = tables.includes('migration')
    ? await texts(client, 'SELECT name FROM migration WHERE starts_with(name, $1)', [COPYING])
    : []
  if (marks[0] === undefined)
    throw new Error('the database is not empty, and its content is no incomplete copy: choose an empty database')
  return marks[0].slice(COPYING.length)
}

function tableNames(client: pg.Client): Promise<string[]> {
  return texts(client, 'SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1')
}

function targetOn(client: pg.Client, url: string, copyId: string | undefined): Target {
  const { host, pathname } = new URL(url)
  return {
    name: `${host}${pathname}`,
    copyId,
    migrations: () => texts(client, 'SELECT name FROM migration WHERE NOT starts_with(name, $1) ORDER BY 1', [COPYING]),
    async begin(id) {
      await client.query('BEGIN')
      await createTables(client)
      await client.query('INSERT INTO migration (name) VALUES ($1)', [`${COPYING}${id}`])
      await client.query('COMMIT')
    },
    tableLike: (table) => tableLike(client, table),
    async assertNoOtherTables(tables) {
      const others = (await tableNames(client)).filter(
        (name) => name !== 'migration' && !tables.some((table) => table.name === name),
      )
      if (others.length > 0) throw new Error(`SQLite lacks the tables ${others.join(', ')}: this is a fault of untag`)
    },
    count: async ({ name }) => Number((await texts(client, `SELECT count(*) FROM "${name}"`))[0]),
    async add({ name, columns }, rows) {
      const listed = columns.map((column) => `"${column.name}"`).join(', ')
      const arrays = columns.map((column, i) => `$${i + 1}::${column.type}[]`).join(', ')
      await client.query(
        `INSERT INTO "${name}" (${listed}) SELECT * FROM unnest(${arrays})`,
        columns.map((_, i) => rows.map((row) => row[i] ?? null)),
      )
    },
    rows: (table) => rowsOf(client, table),
    async finish() {
      await client.query(RAISE_LISTING_NUMBERS)
      await client.query('ANALYZE')
      await client.query('SET synchronous_commit = on')
      await client.query('DELETE FROM migration WHERE starts_with(name, $1)', [COPYING])
    },
    close: () => client.end(),
  }
}

async function tableLike(client: pg.Client, source: SourceTable): Promise<Table> {
  const { rows } = await client.query<{ name: string; type: string }>(
    `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
     WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`,
    [`"${source.name}"`],
  )
  const columns = rows.filter((row): row is Column => /^(?:bigint|double precision|text)$/.test(row.type))
  const names = columns.map(({ name }) => name)
  if (columns.length < rows.length || names.toSorted().join() !== source.columns.toSorted().join())
    throw new Error(`the columns of the table ${source.name} differ: this is a fault of untag`)
  return { name: source.name, columns, key: source.key.map((name) => names.indexOf(name)) }
}

async function* rowsOf(client: pg.Client, { name, columns, key }: Table): AsyncIterable<Row> {
  const listed = columns.map((column) => `"${column.name}"`).join(', ')
  // SQLite sorts texts by bytes, and NULL first.
  const order = key.map((i) => `"${columns[i]?.name}"${columns[i]?.type === 'text' ? ' COLLATE "C"' : ''} NULLS FIRST`)
  await client.query('BEGIN READ ONLY')
  await client.query(`DECLARE copied NO SCROLL CURSOR FOR SELECT ${listed} FROM "${name}" ORDER BY ${order.join(', ')}`)
  try {
    for (;;) {
      const { rows } = await client.query<unknown[]>({ text: `FETCH ${FETCHED_ROWS} FROM copied`, rowMode: 'array' })
      for (const values of rows) yield columns.map((column, i) => canonicalValue(column, values[i]))
      if (rows.length < FETCHED_ROWS) return
    }
  } finally {
    await client.query('ROLLBACK')
  }
}

/** Reports the number of copied or compared rows. */
type OnProgress = (done: number, total: number) => void

/** A copy from SQLite to PostgreSQL. */
export interface CopyRequest {
  readonly file: string
  readonly url: string
  /**
   * Called before the first row is stored, with the id of the incomplete copy in PostgreSQL. Returns the id of this
   * copy; throws if the incomplete copy is another one.
   */
  begin(target: string, startedId: string | undefined): string
  /** Called when all rows are checked, and before a cloud may use the copy. */
  complete(): void
  readonly onCopied?: OnProgress
  readonly onChecked?: OnProgress
  /** Maximum rows of one transaction. */
  readonly chunkRows?: number
}

/** Maximum rows and characters of one transaction. */
const CHUNK_ROWS = 2_000
const CHUNK_SIZE = 4_000_000

const fail = (error: Error) => {
  throw error
}

/**
 *   migrate SQLite ─▶ lock PostgreSQL ─▶ make tables, mark as incomplete ─▶ add rows ─▶ compare all rows ─▶ unmark
 *
 * Rows are added in the order of their keys. A copy that runs again continues after the last row of each table.
 * Resolves after the comparison.
 */
export async function copyDatabase(request: CopyRequest): Promise<ComparedTable[]> {
  const { file, url } = request
  await (await openDatabase({ file }, fail)).close()
  const source = openSource(file)
  try {
    const target = await openTarget(url)
    try {
      const id = request.begin(target.name, target.copyId)
      if (target.copyId === undefined) await target.begin(id)
      const compared = await copyRows(request, source, target)
      request.complete()
      await target.finish()
      return compared
    } finally {
      await target.close()
    }
  } finally {
    source.close()
  }
}

async function copyRows(request: CopyRequest, source: Source, target: Target): Promise<ComparedTable[]> {
  if ((await target.migrations()).join() !== source.migrations.join())
    throw new Error(
      'the incomplete copy was started by another version of untag: use that version, or an empty database',
    )
  await target.assertNoOtherTables(source.tables)
  const tables: { table: Table; present: number }[] = []
  let total = 0
  for (const each of source.tables) {
    total += source.count(each)
    tables.push({ table: await target.tableLike(each), present: await target.count(each) })
  }
  let done = tables.reduce((sum, { present }) => sum + present, 0)
  request.onCopied?.(done, total)
  for (const { table, present } of tables) {
    for (const chunk of chunksOf(source.rows(table, present), request.chunkRows ?? CHUNK_ROWS)) {
      await target.add(table, chunk).catch((error: unknown) => fail(explained(table, chunk, error)))
      done += chunk.length
      request.onCopied?.(done, total)
    }
  }
  return check(
    request,
    source,
    target,
    tables.map(({ table }) => table),
    total,
  )
}

/**
 * If a row contains a NUL character, which PostgreSQL cannot store, returns an error that names the row. Otherwise
 * returns the error of PostgreSQL.
 */
function explained(table: Table, chunk: readonly Row[], error: unknown): Error {
  const nul = chunk.find((row) => row.some((value) => value?.includes('\0')))
  if (nul === undefined) return error as Error
  return new Error(
    `a row of the table ${table.name} contains a NUL character, which PostgreSQL cannot store (${keyText(table, nul)}): change it in SQLite first`,
    { cause: error },
  )
}

function* chunksOf(rows: Iterable<Row>, maxRows: number): Iterable<Row[]> {
  let chunk: Row[] = []
  let size = 0
  for (const row of rows) {
    chunk.push(row)
    size += sizeOf(row)
    if (chunk.length < maxRows && size < CHUNK_SIZE) continue
    yield chunk
    chunk = []
    size = 0
  }
  if (chunk.length > 0) yield chunk
}

async function check(
  { onChecked }: CopyRequest,
  source: Source,
  target: Target,
  tables: readonly Table[],
  total: number,
): Promise<ComparedTable[]> {
  let checked = 0
  const compared: ComparedTable[] = []
  for (const table of tables)
    compared.push(
      await compareTable(table, source.rows(table, 0), target.rows(table), () => onChecked?.(++checked, total)),
    )
  const wrong = compared.filter((table) => !isSame(table))
  if (wrong.length === 0) return compared
  const shown = wrong.map(({ name, differences }) => `${name}: ${differences.join('; ')}`).join('. ')
  throw new Error(`the copy differs in ${counted(wrong.length, 'table')} (${shown}): copy again into an empty database`)
}
