import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import { counted } from '../counted.ts'
import { compareTable, isSame, type ComparedTable } from './compare.ts'
import { keyText, sizeOf, type Row, type Table } from './rows.ts'
import { openSource, type Source } from './source.ts'
import { openTarget, type Target } from './target.ts'

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
