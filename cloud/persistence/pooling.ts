/**
 * What a connection to PostgreSQL is. `session`: one session of the server. `transaction`: a connection to a pooler such
 * as PgBouncer in transaction mode, which may use another session for each transaction.
 */
export const POOLINGS = ['session', 'transaction'] as const
export type Pooling = (typeof POOLINGS)[number]
