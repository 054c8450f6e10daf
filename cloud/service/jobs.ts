import type { Cancel } from '../../policy/platform.ts'
import { sealAudit } from '../platform/accounts/audit-chain.ts'
import { pruneFormerKeys } from '../protection/agent-identity/agent-keys.ts'
import { LAST_SEEN_FLUSH_MS } from '../protection/agent-identity/agent-queries.ts'
import { pruneCodes } from '../protection/agents/enrolment/enrolment.ts'
import { type DiskSpace, AgentWatch } from '../protection/agents/watch/incidents.ts'
import { startRetrying } from '../protection/agents/journal/retry-unapplied.ts'
import { pruneLogins } from '../protection/agent-identity/sessions.ts'
import { completeErasures } from '../sales/customers/erasures.ts'
import { cancelOverdueOrders } from '../sales/click-and-collect/operations.ts'
import { expireEarnings } from '../shop/loyalty/ledger.ts'
import { refreshListings } from '../shop/catalogue/refresh-documents.ts'
import { startDueOffers } from '../shop/offers/due-offers.ts'
import { pruneRequests } from '../shop/assistance/requests.ts'
import { pruneStoredResponses } from '../platform/operations/idempotency.ts'
import { deletedBeforeMs } from '../platform/foundation/config.ts'
import { logJobFailure } from '../platform/foundation/log.ts'
import type { Services } from '../platform/operations/operation.ts'
import { pruneApprovals } from '../protection/authorize/approvals.ts'
import { pruneDecisions } from '../protection/records/decision-records.ts'
import { pruneDenied } from '../protection/rights/deny-list.ts'
import { endDueMoves } from '../protection/devices/update-device.ts'
import { pruneDelegated } from '../protection/rights/delegated-rights.ts'
import { publishRecalledReceipts } from '../protection/recalls/recalled-receipts.ts'
import { coversRecalled, publishRecalls } from '../protection/recalls/publish-recalls.ts'
import { continueHomeMoves } from '../protection/receipt-home/home-move.ts'
import { revokeDueTokens } from '../protection/leases/token-revocations.ts'
import { refreshItems, pruneRemovedNames } from '../protection/items/item-sequence.ts'
import { type AgentMessages, CONNECTED_MS } from './messaging/agent-messages.ts'
import { startDuePayments } from '../sales/payments/due-payments.ts'
import { releaseRefunds } from '../sales/payments/release-refunds.ts'
import type { Database, Db } from '../platform/persistence/database.ts'
import { DELETED_AT_ONCE } from '../platform/persistence/delete-some.ts'
import { oldestOpen } from '../platform/persistence/positions.ts'
import { yieldToEventLoop } from '../platform/operations/job-steps.ts'
import { Retention } from './retention/apply-retention.ts'
import { endDueSales, pruneSales } from '../sales/tills/due-sales.ts'
import { cancelOverduePurchases } from '../sales/checkout/cancel-overdue-purchases.ts'
import { pruneRegistrations } from '../sales/registrations/registration-queries.ts'
import { pruneChallenges } from '../platform/users/passkeys.ts'
import { pruneSessions } from '../platform/users/sessions.ts'
import { lapseReservations } from '../shop/stock/reserve.ts'

/** Periodic jobs. Each is safe to run twice, and in several processes. */

const REFRESH_MS = 30_000
const HOUSEKEEPING_MS = 60_000
const SEALING_MS = 10_000
const SETTLING_MS = 5_000
/** Agents receive the items of changed products, and of large recalls, within this time, ms. */
const ITEMS_MS = 2_000
/** Other stores show changed products within this time, ms. */
const LISTINGS_MS = 1_000
/** Agents receive keys that another process or the command line changed within this time, ms. */
const KEYS_MS = 2_000
const REVOKED_MS = 2_000
/** Interval of the check for long transactions, ms. A transaction that is open at two checks in a row is logged. */
const HELD_BACK_MS = 30_000
const WATCH_MS = 60_000
const RETENTION_MS = 600_000

/** Transactions of one run for a kind of expired rows. */
const PRUNE_ROUNDS = 20

/** Wait of a job that ended although more is due, ms: others write meanwhile, and a replica follows. */
const SOON_MS = 1_000

interface Jobs {
  stop(): Promise<void>
}

/** Starts the periodic jobs: freshness of documents, expiry, audit chain and retries. */
export function startJobs(
  database: Database,
  services: Services,
  messages: Pick<AgentMessages, 'refresh' | 'cutRevoked' | 'announceAgents'>,
  disk?: DiskSpace,
): Jobs {
  const repeater = new Repeater(services)
  startSigning(repeater, database, services, messages)
  startExpiry(repeater, database, services)
  repeater.every(SETTLING_MS, 'refunds of cancelled purchases', () => releaseRefunds(database, services))
  repeater.every(ITEMS_MS, 'items of changed products', () => refreshItems(database, services))
  repeater.every(LISTINGS_MS, 'listings of changed products', () => refreshListings(database, services))
  repeater.every(ITEMS_MS, 'items of recalls', () => publishRecalls(database, services))
  repeater.every(ITEMS_MS, 'moves of receipt homes', () => continueHomeMoves(database, services))
  repeater.every(ITEMS_MS, 'revocation of tokens', () => revokeDueTokens(database, services, coversRecalled))
  repeater.every(ITEMS_MS, 'receipts of recalls', () => publishRecalledReceipts(database, services))
  repeater.every(
    SEALING_MS,
    'audit chain',
    async () => void (await sealAudit(database, services.platform.clock.wall())),
  )
  repeater.every(HELD_BACK_MS, 'events held back', heldBackCheck(database, services))
  repeater.every(HOUSEKEEPING_MS, 'key usage', () => services.keyUsage.flush(database))
  repeater.every(LAST_SEEN_FLUSH_MS, 'last contact times of agents', () => services.lastSeen.flush(database))
  const { silentAfterMs } = services.config
  if (silentAfterMs !== undefined) {
    const watch = new AgentWatch(database, services, silentAfterMs, disk)
    repeater.everyByTheClock(WATCH_MS, 'silent agents, disk and keys', () => watch.check())
  }
  if (services.siblings)
    repeater.every(CONNECTED_MS, 'connected agents', () => Promise.resolve(messages.announceAgents()))
  const others = [
    startDueOffers(database, services),
    startDuePayments(database, services),
    startRetrying(database, services),
  ]
  return {
    stop: async () => void (await Promise.all([repeater.stop(), ...others.map((other) => other.stop())])),
  }
}

/** Runs each kind of work at its interval, counted from the end of the last run. */
export class Repeater {
  readonly #services: Pick<Services, 'platform' | 'log' | 'authority'>
  readonly #cancels = new Set<Cancel>()
  readonly #running = new Set<Promise<void>>()
  #stopped = false

  constructor(services: Pick<Services, 'platform' | 'log' | 'authority'>) {
    this.#services = services
  }

  /** `work` returns true if more is due: then it runs again soon. */
  every(ms: number, name: string, work: () => Promise<boolean | void>, waitMs = ms): void {
    if (this.#stopped) return
    const { platform, log } = this.#services
    const cancel = platform.timers.after(waitMs, () => {
      this.#cancels.delete(cancel)
      const run = work()
        .catch((error: unknown) => logJobFailure(log, error, name))
        .then((isMore) => {
          this.#running.delete(run)
          this.every(ms, name, work, isMore === true ? Math.min(SOON_MS, ms) : ms)
        })
      this.#running.add(run)
    })
    this.#cancels.add(cancel)
  }

  /** Like `every`, but skips runs while the clock is untrusted, because nothing may expire by a clock that jumped. */
  everyByTheClock(ms: number, name: string, work: () => Promise<boolean | void>): void {
    this.every(ms, name, async () => this.#services.authority.clock.untrustedReason() === null && (await work()))
  }

  /** Starts no more runs and waits for running ones. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const cancel of this.#cancels) cancel()
    await Promise.all(this.#running)
  }
}

/** Starts the jobs that publish documents to agents and rotate signing keys. */
function startSigning(
  repeater: Repeater,
  database: Database,
  { authority, log }: Services,
  { refresh, cutRevoked }: Pick<AgentMessages, 'refresh' | 'cutRevoked'>,
): void {
  let publishedGeneration = 0
  repeater.every(REFRESH_MS, 'refresh', async () => {
    await refresh('changed')
    const doubt = authority.clock.untrustedReason()
    if (doubt) log.warn({ doubt }, 'nothing is signed')
    else await database.write((db) => authority.storeLastSigned(db, authority.clock.nowMs()))
  })
  repeater.every(KEYS_MS, 'signing keys', async () => {
    const generation = await authority.refresh()
    if (generation === publishedGeneration) return
    publishedGeneration = generation
    await refresh('all')
  })
  repeater.everyByTheClock(HOUSEKEEPING_MS, 'due key changes', () => database.write((db) => authority.advance(db)))
  repeater.every(REVOKED_MS, 'revoked agents', cutRevoked)
}

/** Each deletes some expired rows of a kind in one transaction, and returns their number. */
const PRUNED: readonly ((db: Db, nowMs: number) => Promise<number>)[] = [
  pruneStoredResponses,
  pruneLogins,
  pruneSessions,
  pruneChallenges,
  pruneCodes,
  pruneRegistrations,
  pruneRemovedNames,
  pruneDecisions,
  pruneApprovals,
  pruneDenied,
  pruneDelegated,
  pruneFormerKeys,
  pruneSales,
]

function startExpiry(repeater: Repeater, database: Database, services: Services): void {
  const everyMinute = (name: string, work: () => Promise<boolean | void>) =>
    repeater.everyByTheClock(HOUSEKEEPING_MS, name, work)
  everyMinute('housekeeping', async () => {
    const nowMs = services.platform.clock.wall()
    let isMore = false
    for (const prune of PRUNED) {
      for (let round = 0, isFull = true; isFull; round++) {
        isFull = (await database.write((db) => prune(db, nowMs))) >= DELETED_AT_ONCE && round < PRUNE_ROUNDS
        isMore ||= isFull
        await yieldToEventLoop()
      }
    }
    const chatsBeforeMs = deletedBeforeMs(services.config.keepDays, 'chats', nowMs)
    await database.write((db) => pruneRequests(db, chatsBeforeMs))
    return isMore
  })
  const { platform, log, config } = services
  const retention = new Retention({ database, platform, log, keepDays: config.keepDays })
  repeater.everyByTheClock(RETENTION_MS, 'retention', () => retention.apply())
  repeater.every(RETENTION_MS, 'interrupted erasures', () => completeErasures(database, services))
  everyMinute('moving devices', () => endDueMoves(database, services))
  everyMinute('unpaid purchases', () => cancelOverduePurchases(database, services))
  everyMinute('due sales of tills', () => endDueSales(database, services))
  everyMinute('overdue orders', () => cancelOverdueOrders(database, services))
  everyMinute('stock reservations', () => lapseReservations(database, services))
  everyMinute('loyalty expiry', () => expireEarnings(database, services))
}

/** Logs a transaction that is open at two checks in a row. */
function heldBackCheck(database: Database, { log }: Services): () => Promise<void> {
  let oldestId: number | undefined
  return async () => {
    const oldest = await oldestOpen(database.reads)
    if (oldest !== undefined && oldest.id === oldestId)
      log.warn({ ...oldest }, 'a database transaction has been open for 30 s: newer events are listed when it ends')
    oldestId = oldest?.id
  }
}
