import pg from 'pg'

/** What this process has sent to PostgreSQL so far. `pg` waits for each answer, so a statement is a round trip. */
export interface StatementCounts {
  statements: number
  transactions: number
  /** Transactions that the server ended because they conflicted with another (40001 and 40P01). */
  conflicts: number
}

/** Counts from now on, in all connections of this process. */
export function countStatements(): StatementCounts {
  const counts: StatementCounts = { statements: 0, transactions: 0, conflicts: 0 }
  const prototype = pg.Client.prototype as unknown as { query(...values: unknown[]): unknown }
  const { query } = prototype
  prototype.query = function (this: unknown, ...values: unknown[]): unknown {
    counts.statements++
    if (values[0] === 'commit') counts.transactions++
    const answer = Reflect.apply(query, this, values) as unknown
    if (answer instanceof Promise) answer.catch((error: unknown) => noteConflict(counts, error))
    return answer
  }
  return counts
}

function noteConflict(counts: StatementCounts, error: unknown): void {
  const { code } = error as { code?: string }
  if (code === '40001' || code === '40P01') counts.conflicts++
}
