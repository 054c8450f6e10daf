import pg from 'pg'
import { assert } from '../../../policy/assert.ts'
import type { Program } from '../child.ts'
import { OPERATIONS, shopsContender, type Engine, type Load, type Operation } from './contender.ts'

/**
 * Tables of counters, and the search index. The comparison skips these tables. The cloud updates the rows of the
 * counters, but the bare routes append new rows to them. A new product adds a row to the index only for words that its
 * block does not have yet.
 */
const COUNTERS = /^(?:added_|store_day|product_count|product_word)/
const ONE: Load = { name: 'one', accounts: 1, connections: 1 }
/**
 * Maximum attempts. The first request also creates the account's keys, and a job of the cloud may add a row, so the
 * comparison is repeated.
 */
const TRIES = 4

/** Throws if a bare operation adds a different number of rows than the cloud. */
export async function assertSameRows(client: Program, bare: Engine, cloud: Engine): Promise<void> {
  for (const operation of OPERATIONS) {
    for (let tries = 1; ; tries++) {
      const [ours, theirs] = [await addedBy(client, operation, bare), await addedBy(client, operation, cloud)]
      if (ours === theirs) break
      assert(tries < TRIES, `${operation.name} adds ${ours} on bare pg, and ${theirs} in the cloud`)
    }
  }
}

/** Maximum requests that `assertSameRows` sends per operation. */
export const SPARE_REQUESTS = TRIES

/** Sends one request and returns the number of new rows of each table, as text. */
async function addedBy(client: Program, operation: Operation, engine: Engine): Promise<string> {
  const before = await countRows(engine)
  await shopsContender({ engine, load: ONE, operation, client }, 1).slice()
  const after = await countRows(engine)
  const changes = [...after].map(([table, rows]) => [table, rows - (before.get(table) ?? 0)] as const)
  return changes.flatMap(([table, rows]) => (rows === 0 ? [] : [`${rows} ${table}`])).join(', ')
}

async function countRows({ url }: Engine): Promise<Map<string, number>> {
  const db = new pg.Client({ connectionString: url })
  await db.connect()
  try {
    const { rows: tables } = await db.query<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'public' order by 1`,
    )
    const counts = new Map<string, number>()
    for (const { name } of tables) {
      if (COUNTERS.test(name)) continue
      const { rows } = await db.query<{ count: string }>(`select count(*) from "${name}"`)
      counts.set(name, Number(rows[0]?.count))
    }
    return counts
  } finally {
    await db.end()
  }
}
