import { z } from 'zod'
import { tenantOf, type Tenant, isAtLeast, type Package } from '../../platform/foundation/caller.ts'
import { notFound, precondition } from '../../platform/foundation/failure.ts'
import { Id, Success, lines } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { RegistrationRow } from '../../platform/persistence/tables/accounts.ts'
import { makeStore } from '../../platform/stores/make-store.ts'
import { Store, toStore } from '../../platform/stores/schema.ts'
import { AnyCasePackage } from '../../platform/stores/store-input.ts'
import { makeAccount } from './accounts.ts'
import { packageOfAccount, raiseAccountPackage } from './packages.ts'
import { findRegistration, updateRegistration } from './registration-queries.ts'
import { Registration, toRegistration } from './registration-schema.ts'
import type { RegistrationDetails } from './registrations.ts'

/**
 * Finds a pending registration. Throws 404 if the registration is unknown. Throws 409 if the registration is already
 * decided.
 */

async function undecided(call: Call, registrationId: string): Promise<RegistrationRow> {
  const row = await findRegistration(call.db, registrationId)
  if (!row) throw notFound('registration')
  if (row.status !== 'pending') throw precondition('registration_decided', `the registration was ${row.status} already`)
  return row
}

/** Returns the requested package if the account's package includes it. */
async function includedPackage(
  { db }: Call,
  { account_id: accountId }: RegistrationRow,
  requested: Package | undefined,
) {
  if (requested === undefined || accountId === null) return undefined
  return isAtLeast(await packageOfAccount(db, accountId), requested) ? requested : undefined
}

export const approveStoreRegistration = operation({
  name: 'approveStoreRegistration',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Approves a registration: creates its store, and its account if the request had no key. For administrators.',
  description:
    'Returns the store. A registration without an address becomes a demo store, any other a live store. Devices ' +
    'and agents of a live store need the package GROW.',
  callers: ['admin'],
  refusals: ['registration_decided', 'too_many_stores'],
  changes: true,
  request: z.strictObject({
    registrationId: Id,
    package: AnyCasePackage.optional().describe(
      'In upper or lower case. Default: the requested package if the account’s package includes it, else discover.',
    ),
  }),
  response: Store.extend(Success),
  example: { registrationId: 'reg_01KANX6Y7C3V9Q2M8R5T4W6Z1B', package: 'grow' },
  async run(call, { registrationId, package: chosen }) {
    const row = await undecided(call, registrationId)
    const { fields, package: requested } = JSON.parse(row.details) as RegistrationDetails
    const granted = chosen ?? (await includedPackage(call, row, requested)) ?? 'DISCOVER'
    const accountId = row.account_id ?? (await makeAccount(call.db, row.company_name, granted, call.services.platform))
    // A registration without an address gets a demo store, because a live store needs an address.
    const tenant = tenantOf(accountId, fields.street === undefined ? 'test' : 'live')
    const store = await makeStore(call, tenant, fields, granted)
    if (tenant.endsWith('.live')) await raiseAccountPackage(call.db, accountId, granted)
    await updateRegistration(call.db, registrationId, {
      status: 'approved',
      account_id: accountId,
      store_id: store.store_id,
      decided_ms: call.nowMs,
    })
    call.changed(registrationId, (row.tenant as Tenant | null) ?? tenant)
    return { success: true as const, ...toStore(store) }
  },
})

export const rejectStoreRegistration = operation({
  name: 'rejectStoreRegistration',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Rejects a registration with a reason for the merchant. For administrators.',
  callers: ['admin'],
  refusals: ['registration_decided'],
  changes: true,
  request: z.strictObject({ registrationId: Id, reason: lines(500) }),
  response: Registration.extend(Success),
  example: {
    registrationId: 'reg_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    reason: 'There is no such company in the commercial register.',
  },
  async run(call, { registrationId, reason }) {
    const row = await undecided(call, registrationId)
    const decided = { status: 'rejected' as const, reason, decided_ms: call.nowMs }
    await updateRegistration(call.db, registrationId, decided)
    call.changed(registrationId, (row.tenant as Tenant | null) ?? undefined)
    return { success: true as const, ...toRegistration({ ...row, ...decided }) }
  },
})
