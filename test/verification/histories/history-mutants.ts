import { change, type Mutant } from '../simulation/mutants/mutant.ts'

/** Mutants that only several processes on PostgreSQL can find. */
export const HISTORY_MUTANTS: readonly Mutant[] = [
  {
    name: 'gate-lock-dropped',
    what: 'Transactions that run alone do not lock the gates.',
    changes: [change('cloud/platform/persistence/postgres.js', "; lock table ${gates.join(', ')} in share mode", '')],
  },
  {
    name: 'gates-read-committed',
    what: 'Transactions of a gate run at the level read committed, so that writes of one row do not conflict.',
    changes: [
      change(
        'cloud/platform/persistence/postgres.js',
        "startTransaction('repeatable read'",
        "startTransaction('read committed'",
      ),
    ],
  },
  {
    name: 'stock-not-checked',
    what: 'The cloud reserves more pieces than the store has.',
    changes: [
      change(
        'cloud/shop/stock/queries.js',
        "eb(eb('on_hand', '-', eb.ref('reserved')), '>=', p.quantity)",
        "eb('on_hand', '>=', 0)",
      ),
    ],
  },
  {
    name: 'answers-not-replayed',
    what: 'A repeated Idempotency-Key executes the request again.',
    changes: [
      change(
        'cloud/platform/operations/idempotency.js',
        'return { status: row.status, body: unpacked(row.body) };',
        'return undefined;',
      ),
    ],
  },
  {
    name: 'unknown-commit-repeated',
    what: 'A transaction runs again although it is unknown whether its first COMMIT succeeded.',
    changes: [change('cloud/platform/persistence/postgres.js', ' && !error.isOutcomeUnknown;', ';')],
  },
]
