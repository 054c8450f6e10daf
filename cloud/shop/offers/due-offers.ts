import { newId } from '../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import { accountsDue, processDue } from '../../platform/operations/job-steps.ts'
import { startDueLoop, type DueLoop } from '../../platform/operations/send-loop.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { performTask } from '../../platform/operations/perform.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { emitPublished } from './make-offer.ts'
import { dueAfter, statusFrom, type OfferStatus } from './offer-status.ts'
import { createOffer } from './operations.ts'
import { nextDue, readBranches, readDue, readGroup, updateGroup } from './queries.ts'

/** Polling interval, ms. Other processes and clock changes do not notify the job, so it polls. */
const POLL_MS = 30_000
const NAME = 'due offers'

/**
 * Starts the job that moves offers to their next status. Each move is one UPDATE that also checks the old status. The
 * events of the move are in the same transaction. API responses do not depend on the job, because they compute the
 * status from the clock.
 */
export function startDueOffers(database: Database, services: Services): DueLoop {
  return startDueLoop(services, {
    name: NAME,
    changed: services.offersChanged,
    pollMs: POLL_MS,
    processDue: () => moveDue(database, services),
  })
}

/**
 * Moves due offers in turns of their accounts: at midnight, thousands of one account may be due. Returns the ms until the
 * next offer is due; 0 or less if more offers are due now.
 */
async function moveDue(database: Database, services: Services): Promise<number> {
  const nowMs = services.platform.clock.wall()
  const isMore = await processDue(database, services, {
    job: NAME,
    accounts: (db) => accountsDue(db, 'offer_group', 'due_ms', nowMs),
    read: (db, account, page) => readDue(db, account, nowMs, page),
    process: (offer) => moveAlone(database, services, offer),
    together: true,
  })
  if (isMore) return 0
  const nextMs = await nextDue(database.reads, nowMs)
  return nextMs === undefined ? POLL_MS : Math.max(1, nextMs - services.platform.clock.wall())
}

/** Thrown to roll back if another process has already moved the offer. */
class NothingMoved extends Error {
  override name = 'NothingMoved'
}

/** Moves one offer in its own transaction with its own audit entry, so that a failure does not block other offers. */
async function moveAlone(
  database: Database,
  services: Services,
  offer: { group_id: string; tenant: string },
): Promise<void> {
  const who = {
    operation: { ...createOffer, name: 'moveDueOffers' },
    caller: systemCaller(offer.tenant as Tenant, 'scheduler'),
    requestId: newId('req', services.platform),
  }
  try {
    await performTask(who, database, services, async (call) => {
      if (!(await moveOffer(call, offer.group_id))) throw new NothingMoved()
    })
  } catch (error) {
    if (!(error instanceof NothingMoved)) throw error
  }
}

/**
 * Moves an offer to its status at this time. Returns false if nothing changes. An offer that started and ended between
 * two runs of the job does not emit `offer.published`.
 */
async function moveOffer(call: Call, groupId: string): Promise<boolean> {
  const group = await readGroup(call.db, groupId)
  if (!group) return false
  const validity = { fromMs: group.valid_from_ms, toMs: group.valid_to_ms }
  const status = statusFrom(group.status as OfferStatus, validity, call.nowMs)
  if (status === group.status) return false
  if (!(await updateGroup(call.db, group, { status, due_ms: dueAfter(status, validity) }))) return false
  if (status === 'ACTIVE')
    emitPublished(
      call,
      (await readBranches(call.db, groupId)).filter((row) => row.is_active === 1),
    )
  call.changed(group.lead_id)
  return true
}
