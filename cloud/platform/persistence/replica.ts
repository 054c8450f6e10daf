import { sql } from 'kysely'
import type { Clock, Timers } from '../../../policy/platform.ts'
import { DatabaseUnavailable, type Db, type Replica, type ReplicaState } from './database.ts'

/** Interval of the heartbeats, ms. */
const BEAT_MS = 1_000
/** Maximum number of heartbeats in memory. */
const BEATS_KEPT = 100

/** How to use a replica. */
export interface ReplicaPlace {
  readonly url: string
  /** Maximum age of the replica's data, ms. If the data is older, the primary answers. */
  readonly maxLagMs: number
  readonly timers: Timers
  /** Called once for each change of the state. */
  onState(state: ReplicaState, cause?: unknown): void
  /** Default: 1 s. */
  readonly beatMs?: number
}

interface Beat {
  readonly value: number
  readonly sentMs: number
}

/**
 *   process ── writes heartbeat 7 at 12:00:01 ──▶ primary ── replication ──▶ replica ── shows 7 ──▶ process
 *
 * If the replica shows heartbeat 7, the replica has everything that was stored before 12:00:01 on the clock of this
 * process. No other clock is needed, and a server that does not follow this primary never shows a new heartbeat.
 */
export function watchReplica(
  place: ReplicaPlace,
  primary: Db,
  connection: { readonly reads: Db; close(): Promise<void> },
  clock: Pick<Clock, 'elapsed'>,
): Replica {
  const { maxLagMs, timers, beatMs = BEAT_MS } = place
  const startedMs = clock.elapsed()
  const beats: Beat[] = []
  let freshAtMs: number | undefined
  let isAway = false
  let reported: ReplicaState = 'used'
  let isClosed = false
  let cancel = () => undefined as void
  let running: Promise<void> = Promise.resolve()

  const isFresh = () => freshAtMs !== undefined && clock.elapsed() - freshAtMs <= maxLagMs
  const stateNow = (): ReplicaState => (isAway ? 'away' : isFresh() ? 'used' : 'late')

  function report(cause?: unknown): void {
    const state = stateNow()
    // The first heartbeat needs time to arrive.
    if (state === 'late' && clock.elapsed() - startedMs <= maxLagMs) return
    if (state === reported || isClosed) return
    reported = state
    place.onState(state, cause)
  }

  async function beat(): Promise<void> {
    const sentMs = clock.elapsed()
    // Without the primary there is no heartbeat, and the replica becomes late.
    const value = await writeBeat(primary).catch(() => undefined)
    if (value !== undefined) beats.push({ value, sentMs })
    if (beats.length > BEATS_KEPT) beats.shift()
    try {
      const seen = await readBeat(connection.reads)
      freshAtMs = beats.findLast((each) => each.value <= seen)?.sentMs ?? freshAtMs
      isAway = false
      report()
    } catch (error) {
      isAway = true
      report(error)
    }
  }

  function next(): void {
    running = beat().then(() => {
      if (!isClosed) cancel = timers.after(beatMs, next)
    })
  }
  next()

  return {
    reads: () => (stateNow() === 'used' ? connection.reads : undefined),
    status: () => ({
      state: stateNow(),
      lagMs: freshAtMs === undefined ? undefined : Math.round(clock.elapsed() - freshAtMs),
    }),
    failed(error) {
      if (!(error instanceof DatabaseUnavailable)) return
      isAway = true
      report(error)
    },
    async close() {
      isClosed = true
      cancel()
      await running
      await connection.close()
    },
  }
}

const HEARTBEAT = 'replica_heartbeat'

/**
 * Stores the next heartbeat and returns its value. Values grow with the clock of the server, so that they also grow
 * after a restore of an older database.
 */
async function writeBeat(primary: Db): Promise<number> {
  const now = sql`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`
  const { rows } = await sql<{ value: string }>`
    insert into installation (name, value) values (${HEARTBEAT}, (${now})::text)
    on conflict (name) do update set value = greatest(installation.value::bigint + 1, ${now})::text
    returning value`.execute(primary)
  return Number(rows[0]?.value)
}

async function readBeat(replica: Db): Promise<number> {
  const { rows } = await sql<{ value: string }>`select value from installation where name = ${HEARTBEAT}`.execute(
    replica,
  )
  return Number(rows[0]?.value ?? 0)
}
