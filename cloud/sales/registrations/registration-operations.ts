import { z } from 'zod'
import { hashOf } from '../../platform/operations/idempotency.ts'
import { keyCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Limit, Success, text } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
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
import { listRegistrations } from './registration-queries.ts'
import {
  pendingAnswer,
  Registration,
  REGISTRATION_STATUSES,
  RegistrationPending,
  toRegistration,
} from './registration-schema.ts'
import { registerStore, requestAccount } from './registrations.ts'

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
  roles: rolesFrom('admin'),
  summary: 'Lists registrations, oldest first: with an admin key all of them, otherwise those of the account.',
  callers: ['secret', 'admin'],
  changes: false,
  request: z.strictObject({
    status: z.enum(REGISTRATION_STATUSES).optional(),
    limit: Limit.optional(),
    cursor: cursorField('reg').optional(),
  }),
  response: z.strictObject({ ...Success, registrations: z.array(Registration), nextCursor: z.string().optional() }),
  example: { status: 'pending' },
  async run(call, { status, limit = DEFAULT_PAGE, cursor }) {
    const caller = keyCaller(call.caller)
    const tenant = caller.kind === 'admin' ? undefined : caller.tenant
    const rows = await listRegistrations(call.db, {
      status,
      tenant,
      storeIds: caller.storeIds ?? undefined,
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
