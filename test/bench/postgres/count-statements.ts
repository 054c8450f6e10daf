import pg from 'pg'

/** Counts of what this process sent to PostgreSQL. */
export interface StatementCounts {
  statements: number
  /** Statements that were sent when all earlier statements of the connection had been answered. */
  roundTrips: number
  transactions: number
  /** Transactions that the server aborted because of a conflict (40001) or a deadlock (40P01). */
  conflicts: number
}

/** Starts counting on all connections of this process. */
export function countStatements(): StatementCounts {
  const counts: StatementCounts = { statements: 0, roundTrips: 0, transactions: 0, conflicts: 0 }
  const prototype = pg.Client.prototype as unknown as { query(...values: unknown[]): unknown }
  const { query } = prototype
  const unanswered = new WeakMap<object, number>()
  const add = (client: object, change: 1 | -1) => {
    const before = unanswered.get(client) ?? 0
    unanswered.set(client, before + change)
    return before
  }
  prototype.query = function (this: object, ...values: unknown[]): unknown {
    counts.statements++
    if (add(this, 1) === 0) counts.roundTrips++
    if ((values[0] as { text?: unknown } | undefined)?.text === 'commit') counts.transactions++
    const answer = Reflect.apply(query, this, values) as unknown
    if (answer instanceof Promise)
      answer.catch((error: unknown) => noteConflict(counts, error)).finally(() => void add(this, -1))
    return answer
  }
  return counts
}

function noteConflict(counts: StatementCounts, error: unknown): void {
  const { code } = error as { code?: string }
  if (code === '40001' || code === '40P01') counts.conflicts++
}
