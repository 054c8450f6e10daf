import type { Cancel } from '../policy/platform.ts'
import { sealAudit } from './accounts/seal-audit.ts'
import { pruneFormerKeys } from './agent-identity/agent-keys.ts'
import { LAST_SEEN_FLUSH_MS } from './agent-identity/last-seen.ts'
import { pruneCodes } from './agents/enrolment/enrolment.ts'
import { startRetrying } from './agents/journal/retry-unapplied.ts'
import { pruneLogins } from './agent-identity/sessions.ts'
import { cancelOverdueOrders } from './click-and-collect/expire.ts'
import { expireEarnings } from './loyalty/expire.ts'
import { startDueOffers } from './offers/due-offers.ts'
import { pruneRequests } from './assistance/requests.ts'
import { pruneAnswers } from './operations/idempotency.ts'
import { logJobFailure } from './foundation/log.ts'
import type { Services } from './operations/operation.ts'
import { pruneApprovals } from './protection/authorize/approvals.ts'
import { pruneDecisions } from './protection/records/decisions.ts'
import { pruneDenied } from './protection/rights/deny-list.ts'
import { endDueMoves } from './protection/devices/due-moves.ts'
import { pruneGiven } from './protection/rights/given-rights.ts'
import { pruneGone } from './protection/items/item-sequence.ts'
import type { AgentMessages } from './messaging/agent-messages.ts'
import { startDuePayments } from './payments/due-payments.ts'
import { releaseRefunds } from './payments/release-refunds.ts'
import type { Database } from './persistence/database.ts'
import { oldestOpen } from './persistence/positions.ts'
import { cancelUnpaid } from './scan-and-go/cancel-unpaid.ts'
import { lapseReservations } from './stock/lapse.ts'

/** Work that is due by time. Each kind is safe to run twice, and in several processes. */

const REFRESH_MS = 30_000
const HOUSEKEEPING_MS = 60_000
const SEALING_MS = 10_000
const SETTLING_MS = 5_000
/** A key that another process or the command line has revoked is told to agents within so long. */
const KEYS_MS = 2_000
const REVOKED_MS = 2_000
/** A transaction that is open at two looks in a row is logged. */
const HELD_BACK_MS = 30_000

export interface Jobs {
  stop(): Promise<void>
}

/** Starts what must be done again and again: freshness, and the clearing of what has expired. */
export function startJobs(
  database: Database,
  services: Services,
  { refresh, cutRevoked }: Pick<AgentMessages, 'refresh' | 'cutRevoked'>,
): Jobs {
  const { platform, log, authority } = services
  const cancels = new Set<Cancel>()
  const running = new Set<Promise<void>>()
  let stopped = false
  let toldKeys = 0
  let oldestId: number | undefined

  function every(ms: number, name: string, work: () => Promise<void>): void {
    const schedule = () => {
      if (stopped) return
      const cancel = platform.timers.after(ms, () => {
        cancels.delete(cancel)
        const run = work()
          .catch((error: unknown) => logJobFailure(log, error, name))
          .finally(() => {
            running.delete(run)
            schedule()
          })
        running.add(run)
      })
      cancels.add(cancel)
    }
    schedule()
  }

  /** What is over by a clock that has just jumped may not be over at all: such work waits until the time is known again. */
  function everyByTheClock(ms: number, name: string, work: () => Promise<void>): void {
    every(ms, name, async () => {
      if (authority.clock.doubt() === null) await work()
    })
  }

  every(REFRESH_MS, 'refresh', async () => {
    await refresh('news')
    const doubt = authority.clock.doubt()
    if (doubt) log.warn({ doubt }, 'nothing is signed')
    else await database.write((db) => authority.noteSigned(db, authority.clock.nowMs()))
  })
  every(KEYS_MS, 'signing keys', async () => {
    const generation = await authority.look()
    if (generation === toldKeys) return
    toldKeys = generation
    await refresh('all')
  })
  everyByTheClock(HOUSEKEEPING_MS, 'keys whose time has come', () => database.write((db) => authority.advance(db)))
  everyByTheClock(HOUSEKEEPING_MS, 'housekeeping', async () => {
    const nowMs = platform.clock.wall()
    await database.write((db) => pruneAnswers(db, nowMs))
    await database.write((db) => pruneLogins(db, nowMs))
    await database.write((db) => pruneCodes(db, nowMs))
    await database.write((db) => pruneRequests(db, nowMs))
    await database.write((db) => pruneGone(db, nowMs))
    await database.write((db) => pruneDecisions(db, nowMs))
    await database.write((db) => pruneApprovals(db, nowMs))
    await database.write((db) => pruneDenied(db, nowMs))
    await database.write((db) => pruneGiven(db, nowMs))
    await database.write((db) => pruneFormerKeys(db, nowMs))
  })
  every(SETTLING_MS, 'refunds of cancelled purchases', () => releaseRefunds(database, services))
  everyByTheClock(HOUSEKEEPING_MS, 'moving devices', () => endDueMoves(database, services))
  everyByTheClock(HOUSEKEEPING_MS, 'unpaid purchases', () => cancelUnpaid(database, services))
  everyByTheClock(HOUSEKEEPING_MS, 'overdue orders', () => cancelOverdueOrders(database, services))
  everyByTheClock(HOUSEKEEPING_MS, 'stock reservations', () => lapseReservations(database, services))
  everyByTheClock(HOUSEKEEPING_MS, 'loyalty expiry', () => expireEarnings(database, services))
  every(REVOKED_MS, 'revoked agents', cutRevoked)
  every(SEALING_MS, 'audit chain', async () => void (await sealAudit(database, platform.clock.wall())))
  every(HELD_BACK_MS, 'events held back', async () => {
    const oldest = await oldestOpen(database.reads)
    if (oldest !== undefined && oldest.id === oldestId)
      log.warn({ ...oldest }, 'a database transaction has been open for 30 s: newer events are listed when it ends')
    oldestId = oldest?.id
  })
  every(HOUSEKEEPING_MS, 'key usage', () => services.keyUsage.flush(database))
  every(LAST_SEEN_FLUSH_MS, 'last times of agents', () => services.lastSeen.flush(database))

  const dueOffers = startDueOffers(database, services)
  const duePayments = startDuePayments(database, services)
  const retrying = startRetrying(database, services)

  return {
    async stop() {
      stopped = true
      for (const cancel of cancels) cancel()
      await Promise.all([...running, dueOffers.stop(), duePayments.stop(), retrying.stop()])
    },
  }
}
