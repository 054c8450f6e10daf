import pg from 'pg'
import { assert } from '../../../policy/assert.ts'

/** A query that finds inconsistent rows. */
interface Recount {
  /** The error that each row of the result shows. */
  readonly wrong: string
  readonly sql: string
}

const RECOUNTS: readonly Recount[] = [
  {
    wrong: 'stock is below zero, or differs from the reservations',
    sql: `SELECT l.product_id, l.on_hand, l.reserved, coalesce(r.held, 0) AS held FROM stock_level l
      LEFT JOIN (SELECT store_id, product_id, sum(quantity) AS held FROM stock_reservation WHERE state = 'held' GROUP BY 1, 2) r
        USING (store_id, product_id)
      WHERE l.on_hand < 0 OR l.reserved < 0 OR l.reserved <> coalesce(r.held, 0) OR l.reserved > l.on_hand`,
  },
  {
    wrong: 'a balance is not the sum of its entries',
    sql: `SELECT m.program_id, m.user_id, m.balance, coalesce(e.sum, 0) AS entries FROM loyalty_member m
      LEFT JOIN (SELECT program_id, user_id, sum(amount) FROM loyalty_entry GROUP BY 1, 2) e USING (program_id, user_id)
      WHERE m.balance < 0 OR m.balance <> coalesce(e.sum, 0)`,
  },
  {
    wrong: 'a transaction has earned twice',
    sql: `SELECT program_id, transaction_id, count(*) FROM loyalty_entry WHERE kind = 'earn' GROUP BY 1, 2 HAVING count(*) > 1`,
  },
  {
    wrong: 'a monthly sum of points differs from the entries',
    sql: `SELECT * FROM (SELECT program_id, month, kind, sum(amount) AS amount, sum(entries) AS entries FROM loyalty_month WHERE kind <> 'join' GROUP BY 1, 2, 3) m
      FULL JOIN (SELECT program_id, month, kind, sum(amount) AS sum, count(*) FROM loyalty_entry GROUP BY 1, 2, 3) e USING (program_id, month, kind)
      WHERE m.amount IS DISTINCT FROM e.sum OR m.entries IS DISTINCT FROM e.count`,
  },
  {
    wrong: 'refunds exceed a purchase',
    sql: `SELECT purchase_id, total_cent, sum(amount_cent) FROM purchase JOIN refund USING (purchase_id)
      WHERE state <> 'failed' GROUP BY 1, 2 HAVING sum(amount_cent) > total_cent`,
  },
  {
    wrong: 'a repeated check-in opened two sessions',
    sql: `SELECT user_id, count(*) FROM shopping_session WHERE user_id LIKE 'kunde-%' GROUP BY 1 HAVING count(*) > 1`,
  },
  {
    wrong: 'a repeated checkout created two purchases',
    sql: `SELECT name, count(*) FROM purchase_line WHERE name LIKE 'Kaffee %' GROUP BY 1 HAVING count(*) > 1`,
  },
  {
    wrong: 'two redemptions released one unit',
    sql: `SELECT line_id, unit_no, right_class, count(*) FROM redemption
      WHERE line_id IS NOT NULL AND outcome IS DISTINCT FROM 'failed' GROUP BY 1, 2, 3 HAVING count(*) > 1`,
  },
  {
    wrong: 'several devices hold the lease of one unit',
    sql: `SELECT u.line_id, u.unit_no, count(*) FROM authorization_unit u JOIN protection_authorization a USING (nonce)
      WHERE a.revoked_ms IS NULL AND a.right_class = 'release' GROUP BY 1, 2 HAVING count(*) > 1`,
  },
  {
    wrong: 'a device holds the lease of a cancelled purchase',
    sql: `SELECT a.purchase_id FROM protection_authorization a JOIN purchase p USING (purchase_id)
      WHERE a.revoked_ms IS NULL AND a.right_class = 'release' AND p.status = 'CANCELLED'
      AND (SELECT count(*) FROM redemption r WHERE r.nonce = a.nonce) < a.count`,
  },
  {
    wrong: 'two units are bound to one item',
    sql: `SELECT item_id, count(*) FROM purchase_unit WHERE bound = 1 GROUP BY 1 HAVING count(*) > 1`,
  },
  {
    wrong: 'the number of products differs from a recount',
    sql: `SELECT * FROM (SELECT store_id, category, sum(products) AS counted FROM product_count GROUP BY 1, 2) c
      FULL JOIN (SELECT store_id, category, count(*) FROM (SELECT store_id, category FROM store_product WHERE category IS NOT NULL
        UNION ALL SELECT store_id, '' FROM store_product) p GROUP BY 1, 2) p USING (store_id, category)
      WHERE coalesce(c.counted, 0) <> coalesce(p.count, 0)`,
  },
  {
    wrong: 'the counters of a store differ from a recount',
    sql: `SELECT * FROM (SELECT store_id, sum(sessions) AS sessions, sum(sessions_completed) AS completed, sum(receipts) AS receipts,
          sum(refunds) AS refunds, sum(revenue_cent) AS revenue FROM store_day GROUP BY 1) d
      JOIN (SELECT store_id, count(*) AS c_sessions, count(*) FILTER (WHERE completed > 0) AS c_completed FROM shopping_session GROUP BY 1) s USING (store_id)
      LEFT JOIN (SELECT store_id, count(*) FILTER (WHERE completed_ms IS NOT NULL) AS c_receipts,
          sum(total_cent) FILTER (WHERE completed_ms IS NOT NULL) AS c_revenue FROM purchase GROUP BY 1) p USING (store_id)
      LEFT JOIN (SELECT p.store_id, count(*) FILTER (WHERE r.amount_cent > 0) AS c_refunds, sum(r.amount_cent) AS c_refunded
          FROM refund r JOIN purchase p USING (purchase_id) WHERE r.counted IS NOT NULL GROUP BY 1) r USING (store_id)
      WHERE store_id IN (SELECT store_id FROM loyalty_program WHERE name = 'Punkte') AND (sessions <> c_sessions
        OR completed <> c_completed OR receipts <> c_receipts OR refunds <> coalesce(c_refunds, 0)
        OR revenue <> coalesce(c_revenue, 0) - coalesce(c_refunded, 0))`,
  },
  {
    wrong: 'VAT sums of a store differ from its purchases',
    sql: `SELECT * FROM (SELECT store_id, sum(sales_cent) AS sales FROM store_day_vat GROUP BY 1) v
      JOIN (SELECT store_id, sum(total_cent) FROM purchase WHERE completed_ms IS NOT NULL GROUP BY 1) p USING (store_id)
      WHERE store_id IN (SELECT store_id FROM loyalty_program WHERE name = 'Punkte') AND sales <> sum`,
  },
  {
    wrong: 'a purchase has not emitted checkout.completed exactly once',
    sql: `SELECT p.purchase_id, count(o.event_id) FROM purchase p
      LEFT JOIN outbox_event o ON o.type = 'checkout.completed' AND o.data::json ->> 'transactionId' = p.purchase_id
      WHERE p.completed_ms IS NOT NULL AND p.store_id IN (SELECT store_id FROM loyalty_program WHERE name = 'Punkte')
      GROUP BY 1 HAVING count(o.event_id) <> 1`,
  },
  {
    wrong: 'an offer was published several times',
    sql: `SELECT data::json ->> 'offerId', count(*) FROM outbox_event WHERE type = 'offer.published' GROUP BY 1 HAVING count(*) > 1`,
  },
  {
    wrong: 'an offer is active and was not published',
    sql: `SELECT offer_id FROM offer JOIN offer_group g USING (group_id) WHERE g.status = 'ACTIVE'
      AND offer_id NOT IN (SELECT data::json ->> 'offerId' FROM outbox_event WHERE type = 'offer.published')`,
  },
  {
    wrong: 'journal rows of an agent are missing',
    sql: `SELECT agent_id, last_seq, count(seq) FROM agent LEFT JOIN journal_row USING (agent_id)
      GROUP BY 1, 2 HAVING count(seq) <> last_seq OR count(seq) <> count(DISTINCT seq)`,
  },
  {
    wrong: 'journal rows of an agent are not applied',
    sql: `SELECT agent_id, seq FROM journal_row WHERE applied = 0`,
  },
  {
    wrong: 'a release that an agent reported is not stored once with its outcome',
    sql: `SELECT j.body::json -> 'evidence' ->> 'redemptionId', count(r.redemption_id) FROM journal_row j
      LEFT JOIN redemption r ON r.redemption_id = j.body::json -> 'evidence' ->> 'redemptionId' AND r.outcome = 'confirmed'
      WHERE j.body::json -> 'evidence' ->> 'kind' = 'claim' GROUP BY 1 HAVING count(r.redemption_id) <> 1`,
  },
  {
    wrong: 'two events have one number',
    sql: `SELECT seq, count(*) FROM outbox_event WHERE seq IS NOT NULL GROUP BY 1 HAVING count(*) > 1`,
  },
]

/** Compares counters, balances and stock with the rows that they sum up. Returns what differs. */
export async function recount(databaseUrl: string): Promise<string[]> {
  return withClient(databaseUrl, async (client) => {
    const wrong: string[] = []
    for (const { wrong: what, sql } of RECOUNTS) {
      const { rows } = await client.query<Record<string, unknown>>(sql)
      if (rows.length > 0) wrong.push(`${what} (${rows.length} rows): ${JSON.stringify(rows[0])}`)
    }
    return wrong
  })
}

/** Ids of all events that a webhook must receive. */
export async function eventsToDeliver(databaseUrl: string): Promise<string[]> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ event_id: string }>(
      `SELECT event_id FROM outbox_event WHERE type = 'checkout.completed'`,
    )
    return rows.map(({ event_id }) => event_id)
  })
}

/** Number of offers whose start is due. */
export async function dueOffers(databaseUrl: string): Promise<number> {
  return withClient(databaseUrl, async (client) => {
    const { rowCount } = await client.query('SELECT FROM offer_group WHERE due_ms <= extract(epoch FROM now()) * 1000')
    return rowCount ?? 0
  })
}

/** Identity of the receipt of a purchase, in hex. */
export async function receiptIdentity(databaseUrl: string, purchaseId: string): Promise<string | undefined> {
  return withClient(databaseUrl, async (client) => {
    const sql = 'SELECT cti FROM purchase WHERE purchase_id = $1'
    const { rows } = await client.query<{ cti: string | null }>(sql, [purchaseId])
    return rows[0]?.cti ?? undefined
  })
}

/** Id of the only account. */
export async function accountIn(databaseUrl: string): Promise<string> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ account_id: string }>('SELECT account_id FROM account')
    assert(rows.length === 1 && rows[0] !== undefined, 'there is one account')
    return rows[0].account_id
  })
}

async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
