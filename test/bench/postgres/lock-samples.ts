import pg from 'pg'

/** Time between two samples, ms. */
const EVERY_MS = 10

/** Share of the busy connections that waited for a lock. */
export interface LockSamples {
  /** Connections in a transaction or a statement, summed over all samples. */
  busy: number
  /** Those of them that waited for a lock of another transaction. */
  waiting: number
}

/** Samples the connections of a database until `stop` is called. */
export async function sampleLocks(url: string): Promise<{ stop(): Promise<LockSamples> }> {
  const db = new pg.Client({ connectionString: url, application_name: 'lock samples' })
  await db.connect()
  const seen: LockSamples = { busy: 0, waiting: 0 }
  let isSampling = false
  let last: Promise<void> = Promise.resolve()
  const sample = async () => {
    isSampling = true
    const { rows } = await db.query<{ busy: string; waiting: string }>({
      name: 'locks',
      text: `select count(*) as busy, count(*) filter (where wait_event_type = 'Lock') as waiting
        from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'`,
    })
    seen.busy += Number(rows[0]?.busy)
    seen.waiting += Number(rows[0]?.waiting)
    isSampling = false
  }
  const timer = setInterval(() => {
    if (!isSampling) last = sample()
  }, EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await last
      await db.end()
      return seen
    },
  }
}
