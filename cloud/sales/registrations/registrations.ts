import { hash } from 'node:crypto'
import { newId } from '../../../policy/ids.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { Failure, precondition } from '../../platform/foundation/failure.ts'
import type { AccountCaller, Package } from '../../platform/foundation/caller.ts'
import { holderOf } from '../../platform/foundation/shared-slots.ts'
import type { RegistrationRow } from '../../platform/persistence/tables/accounts.ts'
import type { StoreFields } from '../../platform/stores/store-input.ts'
import {
  countOfNetwork,
  countPending,
  deleteOldestOfLargestNetwork,
  insertRegistration,
  NETWORK_MS,
} from './registration-queries.ts'

/** Submitted details of a registration. */
export interface RegistrationDetails {
  fields: StoreFields
  /** Requested package; the reviewer decides. */
  package?: Package | undefined
  role?: string | undefined
  contactEmail?: string | undefined
}

/** Maximum number of pending registrations of one account. */
const PENDING_PER_ACCOUNT = 100
/** Maximum number of requests without a key of one network in a day. */
export const NETWORK_REQUESTS = 20
/** Maximum number of pending requests without a key. A further one replaces the oldest of the network with the most. */
export const PENDING_REQUESTS = 10_000

/** Registers a store of the caller for review. Throws 403 or 409. */
export async function registerStore(
  call: Call,
  caller: AccountCaller,
  details: RegistrationDetails,
): Promise<RegistrationRow> {
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
): Promise<RegistrationRow> {
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
  by: Pick<RegistrationRow, 'kind' | 'account_id' | 'tenant' | 'claim_hash' | 'network'>,
): Promise<RegistrationRow> {
  const row: RegistrationRow = {
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
