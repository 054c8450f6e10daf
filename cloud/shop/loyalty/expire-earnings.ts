import { assert } from '../../../policy/assert.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import { processEach } from '../../platform/operations/process-each.ts'
import { writeOutbox } from '../../platform/operations/call-context.ts'
import type { OutgoingEvent, Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { LoyaltyMemberRow } from '../../platform/persistence/tables/loyalty.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { deduct, type Scope } from './ledger.ts'
import { openProgram } from './program.ts'
import { expiredUnits, findMember, membersToExpire, nextExpiry, setNextExpiry } from './queries.ts'

/** Source of the events of this job. */
const EXPIRY = { name: 'loyalty-expiry', emits: ['loyalty.tier_changed'] } as const

/** Expires due earnings, each member in its own transaction. Several processes may run this at the same time. */
export function expireEarnings(database: Database, services: Services): Promise<void> {
  return processEach(services, {
    job: 'loyalty expiry',
    read: (limit, failed) => membersToExpire(database.reads, services.platform.clock.wall(), { limit, offset: failed }),
    process: ({ program_id, user_id }) =>
      database.write(async (db) => {
        const nowMs = services.platform.clock.wall()
        const member = await findMember(db, program_id, user_id)
        if (!member || member.next_expiry_ms === null || member.next_expiry_ms > nowMs) return
        const events: OutgoingEvent[] = []
        const tenant = await expireMember({ db, nowMs, services, emit: (event) => void events.push(event) }, member)
        await writeOutbox(db, { operation: EXPIRY, caller: systemCaller(tenant, EXPIRY.name) }, events, nowMs, services)
      }),
  })
}

async function expireMember(scope: Scope, member: LoyaltyMemberRow): Promise<Tenant> {
  const { db, nowMs } = scope
  const row = await db
    .selectFrom('loyalty_program')
    .selectAll()
    .where('program_id', '=', member.program_id)
    .executeTakeFirstOrThrow()
  const store = await findStore(db, row.store_id)
  assert(store, `store ${row.store_id} is gone`)
  await deduct(scope, openProgram(row, store), member.user_id, 'expire', await expiredUnits(db, member, nowMs))
  await setNextExpiry(db, member, await nextExpiry(db, member, nowMs))
  return row.tenant as Tenant
}
