/**
 * Kind of the connections to PostgreSQL. `session`: one session of the server. `transaction`: a connection to a pooler
 * such as PgBouncer in transaction mode, which may use another session for each transaction.
 */
export type Pooling = 'session' | 'transaction'
