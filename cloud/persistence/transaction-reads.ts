import type { CompiledQuery, QueryResult } from 'kysely'

/** Maximum number of results that one transaction keeps. */
const KEPT_LIMIT = 200

/**
 * Results of reads in one transaction. In a transaction with a snapshot, the same query returns the same rows until the
 * transaction writes to a table of the query. Until then, the query is sent only once. Many steps of an operation read
 * the same store, purchase or lines.
 */
export class TransactionReads {
  readonly #hasSnapshot: boolean
  readonly #results = new Map<string, { tables: ReadonlySet<string>; result: Promise<QueryResult<unknown>> }>()

  /** Without a snapshot, each query is sent, because it may return newer data. */
  constructor(hasSnapshot: boolean) {
    this.#hasSnapshot = hasSnapshot
  }

  /** Returns the stored result of this query, or calls `send` to run the query. */
  read<R>(query: CompiledQuery, send: () => Promise<QueryResult<R>>): Promise<QueryResult<R>> {
    if (!this.#hasSnapshot) return send()
    const key = JSON.stringify([query.sql, query.parameters])
    const known = this.#results.get(key)
    if (known) return known.result.then(copyOf) as Promise<QueryResult<R>>
    const result = send()
    if (this.#results.size < KEPT_LIMIT) this.#results.set(key, { tables: tablesOf(query), result })
    return result
  }

  /** Discards the results that this write may change: all results if the tables of the write are unknown. */
  written(query: CompiledQuery): void {
    const tables = query.query.kind === 'RawNode' ? undefined : tablesOf(query)
    for (const [key, kept] of this.#results)
      if (!tables || [...tables].some((table) => kept.tables.has(table))) this.#results.delete(key)
  }
}

/** Copies the rows, because the caller may change its rows. */
function copyOf<R>(result: QueryResult<R>): QueryResult<R> {
  return { ...result, rows: result.rows.map((row) => ({ ...row })) }
}

const TABLES = new WeakMap<object, ReadonlySet<string>>()

/** Names of all tables in the query. */
function tablesOf({ query }: CompiledQuery): ReadonlySet<string> {
  const known = TABLES.get(query)
  if (known) return known
  const tables = new Set<string>()
  collectTables(query, tables)
  TABLES.set(query, tables)
  return tables
}

function collectTables(node: unknown, into: Set<string>): void {
  if (typeof node !== 'object' || node === null) return
  if ((node as { kind?: unknown }).kind === 'TableNode')
    into.add((node as { table: { identifier: { name: string } } }).table.identifier.name)
  for (const part of Object.values(node)) collectTables(part, into)
}
