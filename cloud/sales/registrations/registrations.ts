import { hash } from 'node:crypto'
import { newId } from '../../../policy/ids.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { Failure, precondition } from '../../platform/foundation/failure.ts'
import {
  type AccountCaller,
  type Package,
  tenantOf,
  isAtLeast,
  PLATFORM_ACCOUNT,
} from '../../platform/foundation/caller.ts'
import { PLATFORM_NAME } from '../../platform/accounts/platform-account.ts'
import { holderOf } from '../../platform/foundation/shared-slots.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { StoreFields } from '../../platform/stores/store-input.ts'
import {
  countOfNetwork,
  countPending,
  deleteOldestOfLargestNetwork,
  insertRegistration,
  NETWORK_MS,
} from './registration-queries.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { seedSandbox } from '../sandbox/seed.ts'
import { z } from 'zod'
import { iso, definedFields, Success } from '../../platform/operations/fields.ts'

/** Package of an account. The account must exist. */
export async function packageOfAccount(db: Db, accountId: string): Promise<Package> {
  const { package: have } = await db
    .selectFrom('account')
    .select('package')
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return have as Package
}

/** Raises the package of an account to the package of its new live store. Demo stores do not change the package. */
export async function raiseAccountPackage(db: Db, accountId: string, to: Package): Promise<void> {
  if (!isAtLeast(await packageOfAccount(db, accountId), to))
    await db.updateTable('account').set({ package: to }).where('account_id', '=', accountId).execute()
}

/** Finds the id of a merchant's account by name. */
export async function findAccountId(db: Db, name: string): Promise<string | undefined> {
  const known = await db
    .selectFrom('account')
    .select('account_id')
    .where('name', '=', name)
    .where('account_id', '!=', PLATFORM_ACCOUNT)
    .executeTakeFirst()
  return known?.account_id
}

/** Finds or creates an account with its sandbox. An existing account keeps its package. */
export async function ensureAccount(
  db: Db,
  name: string,
  wanted: Package,
  platform: Platform,
): Promise<{ accountId: string; isNew: boolean }> {
  const known = await findAccountId(db, name)
  if (known !== undefined) return { accountId: known, isNew: false }
  if (name === PLATFORM_NAME) throw new Error(`the name "${PLATFORM_NAME}" is reserved: choose another one`)
  return { accountId: await addAccount(db, name, wanted, platform), isNew: true }
}

/** Always creates a new account with its sandbox. If the name exists, an id is added to the name. */
export async function makeAccount(db: Db, companyName: string, wanted: Package, platform: Platform): Promise<string> {
  const isTaken = companyName === PLATFORM_NAME || (await findAccountId(db, companyName)) !== undefined
  return addAccount(db, isTaken ? `${companyName} (${newId('no', platform)})` : companyName, wanted, platform)
}

async function addAccount(db: Db, name: string, wanted: Package, platform: Platform): Promise<string> {
  const accountId = newId('acc', platform)
  await db
    .insertInto('account')
    .values({ account_id: accountId, name, package: wanted, status: 'active', created_ms: platform.clock.wall() })
    .execute()
  await seedSandbox(db, tenantOf(accountId, 'test'), platform)
  return accountId
}

/** Submitted details of a registration. */
export interface RegistrationDetails {
  fields: StoreFields
  /** Requested package; the reviewer decides. */
  package?: Package | undefined
  role?: string | undefined
  contactEmail?: string | undefined
}

/** Maximum number of pending registrations of one account. */
export const PENDING_PER_ACCOUNT = 100
/** Maximum number of requests without a key of one network in a day. */
export const NETWORK_REQUESTS = 20
/** Maximum number of pending requests without a key. A further one replaces the oldest of the network with the most. */
export const PENDING_REQUESTS = 10_000

/** Registers a store of the caller for review. Throws 403 or 409. */
export async function registerStore(
  call: Call,
  caller: AccountCaller,
  details: RegistrationDetails,
): Promise<Row<'registration'>> {
  assertUnbound(caller)
  if ((await countPending(call.db, caller.tenant)) >= PENDING_PER_ACCOUNT) {
    throw precondition(
      'too_many_registrations',
      `${PENDING_PER_ACCOUNT} registrations of this account wait for review, which is the maximum`,
    )
  }
  return register(call, details, {
    kind: 'store',
    account_id: caller.accountId,
    tenant: caller.tenant,
    claim_hash: null,
    network: null,
  })
}

/**
 * Registers a request for an account from a visitor or a user of the console. `claimHash` is the hash of the secret with which
 * the caller later claims the keys of the account. Throws 429.
 */
export async function requestAccount(
  call: Call,
  details: RegistrationDetails,
  claimHash: string,
): Promise<Row<'registration'>> {
  // Users of the console may be anywhere, so the share is that of their account.
  const network = hash('sha256', holderOf(call.caller), 'base64url')
  if ((await countOfNetwork(call.db, network, call.nowMs)) >= NETWORK_REQUESTS)
    throw new Failure('resource-exhausted', 'too many requests for an account came from your network: try tomorrow', {
      reason: 'too_many_registrations',
      retryAfter: NETWORK_MS / 1_000,
    })
  if ((await countPending(call.db, null)) >= PENDING_REQUESTS) await deleteOldestOfLargestNetwork(call.db)
  return register(call, details, { kind: 'account', account_id: null, tenant: null, claim_hash: claimHash, network })
}

async function register(
  call: Call,
  details: RegistrationDetails,
  by: Pick<Row<'registration'>, 'kind' | 'account_id' | 'tenant' | 'claim_hash' | 'network'>,
): Promise<Row<'registration'>> {
  const row: Row<'registration'> = {
    registration_id: newId('reg', call.services.platform),
    ...by,
    company_name: details.fields.legal_name ?? '',
    details: JSON.stringify(details),
    status: 'pending',
    reason: null,
    store_id: null,
    submitted_ms: call.nowMs,
    decided_ms: null,
    test_claimed_ms: null,
    live_claimed_ms: null,
  }
  await insertRegistration(call.db, row)
  call.changed(row.registration_id)
  return row
}

/** Throws 403 for a key that is bound to stores, because such a key could not see the new store. */
export function assertUnbound(caller: AccountCaller): void {
  if (caller.storeIds !== null)
    throw new Failure(
      'permission-denied',
      'this key is bound to its stores: a new store needs a key of the whole account',
      { reason: 'key_bound_to_stores' },
    )
}

/** Response to a submitted registration. */
export const RegistrationPending = z.strictObject({
  ...Success,
  registrationId: z.string(),
  status: z.literal('pending'),
})

/** Makes the response to a new registration. */
export function pendingAnswer({ registration_id }: Row<'registration'>): z.infer<typeof RegistrationPending> {
  return { success: true, registrationId: registration_id, status: 'pending' }
}

export const REGISTRATION_STATUSES = ['pending', 'approved', 'rejected'] as const

/** A registration for its reviewer and its merchant. */
export const Registration = z.strictObject({
  registrationId: z.string(),
  kind: z.enum(['store', 'account']).describe('`account`: a request without a key; its approval creates an account.'),
  status: z.enum(REGISTRATION_STATUSES),
  companyName: z.string(),
  tradingName: z.string().optional(),
  address: z.strictObject({ street: z.string(), city: z.string(), zip: z.string(), country: z.string() }).optional(),
  phone: z.string().optional(),
  role: z.string().optional(),
  contactEmail: z.string().optional(),
  package: z.string().optional().describe('The package that the merchant requested.'),
  accountId: z.string().optional(),
  storeId: z.string().optional(),
  reason: z.string().optional().describe('Why it was rejected.'),
  submittedAt: z.string(),
  decidedAt: z.string().optional(),
})

/** Converts a row for the API. */
export function toRegistration(row: Row<'registration'>): z.infer<typeof Registration> {
  const { fields, role, contactEmail, package: wish } = JSON.parse(row.details) as RegistrationDetails
  const { street, city, postal_code, country_code } = fields
  const address =
    street !== undefined && city !== undefined && postal_code !== undefined && country_code !== undefined
      ? { street, city, zip: postal_code, country: country_code }
      : undefined
  return {
    registrationId: row.registration_id,
    kind: row.kind,
    status: row.status,
    companyName: row.company_name,
    ...(fields.trading_name !== undefined && { tradingName: fields.trading_name }),
    ...(address && { address }),
    ...(role !== undefined && { role }),
    ...(contactEmail !== undefined && { contactEmail }),
    ...(wish !== undefined && { package: wish }),
    ...definedFields({
      phone: fields.phone ?? null,
      accountId: row.account_id,
      storeId: row.store_id,
      reason: row.reason,
      decidedAt: row.decided_ms === null ? null : iso(row.decided_ms),
    }),
    submittedAt: iso(row.submitted_ms),
  }
}
