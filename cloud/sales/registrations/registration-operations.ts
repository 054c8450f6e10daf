import { z } from 'zod'
import { hashOf } from '../../platform/operations/idempotency.ts'
import {
  keyCaller,
  isOfPlatform,
  PLATFORM_ROLE,
  rolesFrom,
  tenantOf,
  type Mode,
  type Tenant,
  isAtLeast,
  type Package,
} from '../../platform/foundation/caller.ts'
import { Limit, Success, text, Id, lines } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, toPage } from '../../platform/operations/paging.ts'
import {
  ADDRESS_FIELDS,
  AddressInput,
  AnyCasePackage,
  newStoreFields,
  requireFields,
  STORE_INPUT_SHAPE,
  storeFieldsOf,
} from '../../platform/stores/store-input.ts'
import { listRegistrations, findRegistration, updateRegistration } from './registration-queries.ts'
import {
  pendingAnswer,
  Registration,
  REGISTRATION_STATUSES,
  RegistrationPending,
  toRegistration,
  registerStore,
  requestAccount,
  makeAccount,
  type RegistrationDetails,
  packageOfAccount,
  raiseAccountPackage,
} from './registrations.ts'
import { notFound, precondition } from '../../platform/foundation/failure.ts'
import { countStores } from '../../platform/stores/queries.ts'
import { KEY_KINDS, type KeyKind } from '../../platform/accounts/api-keys.ts'
import { addKey } from '../../platform/accounts/keys.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { makeStore } from '../../platform/stores/make-store.ts'
import { Store, toStore } from '../../platform/stores/schema.ts'

/**
 * Finds a pending registration. Throws 404 if the registration is unknown. Throws 409 if the registration is already
 * decided.
 */

async function undecided(call: Call, registrationId: string): Promise<Row<'registration'>> {
  const row = await findRegistration(call.db, registrationId)
  if (!row) throw notFound('registration')
  if (row.status !== 'pending') throw precondition('registration_decided', `the registration was ${row.status} already`)
  return row
}

/** Returns the requested package if the account's package includes it. */
async function includedPackage(
  { db }: Call,
  { account_id: accountId }: Row<'registration'>,
  requested: Package | undefined,
) {
  if (requested === undefined || accountId === null) return undefined
  return isAtLeast(await packageOfAccount(db, accountId), requested) ? requested : undefined
}

export const approveStoreRegistration = operation({
  name: 'approveStoreRegistration',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [PLATFORM_ROLE],
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
  roles: [PLATFORM_ROLE],
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

const HandedOut = z.strictObject({
  keyId: z.string(),
  key: z.string().describe('Shown once.'),
  kind: z.enum(KEY_KINDS),
  mode: z.enum(['test', 'live']),
  name: z.string(),
})

export const claimRegistration = operation({
  name: 'claimRegistration',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary:
    'Returns the keys of an approved request: the test keys once, and the first live secret key after the first live store is approved.',
  description:
    'Call it again when the first live store is approved. It fails with 409 `registration_pending` while the ' +
    'request waits for review, `registration_rejected` with the reason in `error`, and `nothing_to_claim` if all ' +
    'present keys were returned before. With the same Idempotency-Key, a repeated call returns the same keys for ' +
    '24 hours.',
  callers: ['anyone'],
  refusals: ['registration_pending', 'registration_rejected', 'nothing_to_claim'],
  changes: true,
  secretResponse: true,
  proofInBody: true,
  request: z.strictObject({ registrationId: Id, claimSecret: z.string().min(1).max(200) }),
  response: z.strictObject({
    ...Success,
    registrationId: z.string(),
    status: z.literal('approved'),
    accountId: z.string(),
    keys: z.array(HandedOut),
  }),
  example: { registrationId: 'reg_01KANX6Y7C3V9Q2M8R5T4W6Z1B', claimSecret: 'claim_…' },
  async run(call, { registrationId, claimSecret }) {
    const row = await findRegistration(call.db, registrationId)
    // The timing of this comparison reveals nothing, because it compares hashes of a 256-bit secret.
    if (!row || row.claim_hash === null || row.claim_hash !== hashOf(claimSecret)) throw notFound('registration')
    if (row.status === 'rejected')
      throw precondition(
        'registration_rejected',
        `the registration was rejected: ${row.reason ?? 'the reviewer gave no reason'}`,
      )
    if (row.status === 'pending' || row.account_id === null)
      throw precondition('registration_pending', 'the registration still waits for review')
    const accountId = row.account_id
    const keys: z.infer<typeof HandedOut>[] = []
    if (row.test_claimed_ms === null) {
      keys.push(await handOut(call, accountId, 'secret', 'test'), await handOut(call, accountId, 'publishable', 'test'))
      await updateRegistration(call.db, registrationId, { test_claimed_ms: call.nowMs })
    }
    if (row.live_claimed_ms === null && (await countStores(call.db, tenantOf(accountId, 'live'))) > 0) {
      keys.push(await handOut(call, accountId, 'secret', 'live'))
      await updateRegistration(call.db, registrationId, { live_claimed_ms: call.nowMs })
    }
    if (keys.length === 0) {
      const why =
        row.live_claimed_ms === null
          ? 'the live key is handed out when the first live store is approved'
          : 'all keys were handed out'
      throw precondition('nothing_to_claim', `there is nothing to hand out: ${why}`)
    }
    call.changed(registrationId, tenantOf(accountId, keys.some((key) => key.mode === 'live') ? 'live' : 'test'))
    return { success: true as const, registrationId, status: 'approved' as const, accountId, keys }
  },
})

async function handOut(call: Call, accountId: string, kind: KeyKind, mode: Mode): Promise<z.infer<typeof HandedOut>> {
  const name = `first ${mode} ${kind} key`
  const { keyId, key } = await addKey(call.db, { accountId, kind, mode, name }, call.nowMs, call.services.platform)
  return { keyId, key, kind, mode, name }
}

const DEFAULT_PAGE = 100

export const submitStoreRegistration = operation({
  name: 'submitStoreRegistration',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Submits a live store of the account for review.',
  description:
    'Works with test and live keys: an approved registration becomes a live store. `package` is a request; the reviewer decides.',
  refusals: ['too_many_registrations'],
  changes: true,
  request: z
    .strictObject({ ...STORE_INPUT_SHAPE, package: AnyCasePackage.optional() })
    .transform((input, faults) => ({ fields: newStoreFields(input, faults), package: input.package })),
  response: RegistrationPending,
  example: {
    companyName: 'Hafenkante Handels GmbH',
    tradingName: 'Hafenkante Bremen',
    address: { street: 'Schlachte 8', city: 'Bremen', zip: '28195', country: 'DE' },
  },
  async run(call, details) {
    return pendingAnswer(await registerStore(call, keyCaller(call.caller), details))
  },
})

export const submitStoreRegistrationRequest = operation({
  name: 'submitStoreRegistrationRequest',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Requests an account, without a key.',
  description:
    'After approval, `claimRegistration` returns the keys for the `claimSecret`. Only this response contains the ' +
    '`claimSecret`. With an address the first store is a live store, without one a demo store.',
  callers: ['anyone'],
  changes: true,
  secretResponse: true,
  request: z
    .strictObject({
      companyName: text(160),
      tradingName: text(160).optional(),
      role: text(120).optional().describe('Role of the person who sends the request.'),
      address: AddressInput.optional(),
      contactEmail: z.email().max(254).optional(),
    })
    .transform(({ role, contactEmail, ...input }, faults) => {
      const fields = storeFieldsOf(input, faults)
      if (input.address) requireFields(fields, ADDRESS_FIELDS, faults)
      return { fields, role, contactEmail }
    }),
  response: RegistrationPending.extend({ claimSecret: z.string().describe('Shown once.') }),
  example: { companyName: 'Hafenkante Handels GmbH', role: 'Inhaberin', contactEmail: 'info@hafenkante.example' },
  async run(call, details) {
    const claimSecret = `claim_${Buffer.from(call.services.platform.random.bytes(32)).toString('base64url')}`
    return { ...pendingAnswer(await requestAccount(call, details, hashOf(claimSecret))), claimSecret }
  },
})

export const fetchRegistrations = operation({
  name: 'fetchRegistrations',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [...rolesFrom('admin'), PLATFORM_ROLE],
  summary:
    'Lists registrations, oldest first: for administrators of the cloud all of them, otherwise those of the account.',
  callers: ['secret', 'admin'],
  changes: false,
  request: z.strictObject({
    status: z.enum(REGISTRATION_STATUSES).optional(),
    latest: z.literal(true).optional().describe('The newest first.'),
    limit: Limit.optional(),
    cursor: cursorField('reg').optional(),
  }),
  response: z.strictObject({ ...Success, registrations: z.array(Registration), nextCursor: z.string().optional() }),
  example: { status: 'pending' },
  async run(call, { status, latest, limit = DEFAULT_PAGE, cursor }) {
    const caller = keyCaller(call.caller)
    const tenant = isOfPlatform(caller) ? undefined : caller.tenant
    const rows = await listRegistrations(call.db, {
      status,
      tenant,
      storeIds: caller.storeIds ?? undefined,
      isLatest: latest === true,
      after: cursor,
      limit: limit + 1,
    })
    // A test key must not see ids of live stores.
    const { items, nextCursor } = toPage(rows, (row) => row.registration_id, { limit })
    return {
      success: true as const,
      registrations: items.map((row) => toRegistration(caller.mode === 'test' ? { ...row, store_id: null } : row)),
      ...(nextCursor !== undefined && { nextCursor }),
    }
  },
})
