import { z } from 'zod'
import { countKeys, KEYS_LIMIT } from '../../platform/accounts/keys.ts'
import { PACKAGES, PLATFORM_ROLE, tenantOf, type Package } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, iso, Limit, Success, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, toPage } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { STORES_LIMIT } from '../../platform/stores/make-store.ts'
import { countStores } from '../../platform/stores/queries.ts'
import { AnyCasePackage } from '../../platform/stores/store-input.ts'
import { USERS_LIMIT } from '../../platform/users/user-queries.ts'
import {
  figuresOfAccounts,
  figuresOfStores,
  findAccount,
  listAccounts,
  listStoresOfAccount,
  type AccountFigures,
} from './account-queries.ts'
import { countPending } from './registration-queries.ts'
import { PENDING_PER_ACCOUNT } from './registrations.ts'

/** What administrators of the cloud see of all accounts: sizes and packages, but no goods, alarms or customers. */

const DEFAULT_PAGE = 100
const EXAMPLE_ACCOUNT = 'acc_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

const AccountRecord = z.strictObject({
  accountId: z.string(),
  name: z.string(),
  package: z.enum(PACKAGES).describe('The highest package of its live stores.'),
  stores: z.int().describe('Live stores.'),
  agents: z.int().describe('Agents of live stores that are not revoked.'),
  devices: z.int().describe('Devices of live stores that are not retired.'),
  users: z.int(),
  createdAt: z.string(),
  lastActiveAt: z.string().optional().describe('Last use by a key, a user or an agent.'),
})

function toAccountRecord(row: Row<'account'>, figures: AccountFigures | undefined): z.infer<typeof AccountRecord> {
  const { stores = 0, agents = 0, devices = 0, users = 0, lastActiveMs = 0 } = figures ?? {}
  return {
    accountId: row.account_id,
    name: row.name,
    package: row.package as Package,
    stores,
    agents,
    devices,
    users,
    createdAt: iso(row.created_ms),
    ...(lastActiveMs > 0 && { lastActiveAt: iso(lastActiveMs) }),
  }
}

export const fetchAccounts = operation({
  name: 'fetchAccounts',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [PLATFORM_ROLE],
  summary: 'Lists the accounts of this cloud, oldest first. For administrators.',
  callers: ['admin'],
  changes: false,
  request: z.strictObject({
    search: text(160).optional().describe('Part of the name, or the id.'),
    package: AnyCasePackage.optional(),
    limit: Limit.optional(),
    cursor: cursorField('acc').optional(),
  }),
  response: z.strictObject({ ...Success, accounts: z.array(AccountRecord), nextCursor: z.string().optional() }),
  example: { search: 'hafenkante' },
  async run(call, { search, package: wanted, limit = DEFAULT_PAGE, cursor }) {
    const rows = await listAccounts(call.db, { search, package: wanted, after: cursor, limit: limit + 1 })
    const { items, nextCursor } = toPage(rows, (row) => row.account_id, { limit })
    const figures = await figuresOfAccounts(
      call.db,
      items.map((row) => row.account_id),
    )
    return {
      success: true as const,
      accounts: items.map((row) => toAccountRecord(row, figures.get(row.account_id))),
      ...(nextCursor !== undefined && { nextCursor }),
    }
  },
})

async function accountWith({ db }: Call, accountId: string): Promise<Row<'account'>> {
  const row = await findAccount(db, accountId)
  if (!row) throw notFound('account')
  return row
}

const Used = z.strictObject({ used: z.int(), limit: z.int() })

export const fetchAccount = operation({
  name: 'fetchAccount',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [PLATFORM_ROLE],
  summary: 'Returns one account of this cloud, and how much of its limits it uses. For administrators.',
  callers: ['admin'],
  changes: false,
  request: z.strictObject({ accountId: Id }),
  response: AccountRecord.extend({
    ...Success,
    limits: z.strictObject({
      liveStores: Used,
      testStores: Used,
      users: Used,
      liveKeys: Used,
      testKeys: Used,
      pendingRegistrations: Used.describe('Live stores that wait for review.'),
    }),
  }),
  example: { accountId: EXAMPLE_ACCOUNT },
  async run(call, { accountId }) {
    const { db } = call
    const row = await accountWith(call, accountId)
    const figures = (await figuresOfAccounts(db, [accountId])).get(accountId)
    const [live, test] = [tenantOf(accountId, 'live'), tenantOf(accountId, 'test')]
    return {
      success: true as const,
      ...toAccountRecord(row, figures),
      limits: {
        liveStores: { used: await countStores(db, live), limit: STORES_LIMIT },
        testStores: { used: await countStores(db, test), limit: STORES_LIMIT },
        users: { used: figures?.users ?? 0, limit: USERS_LIMIT },
        liveKeys: { used: await countKeys(db, accountId, 'live'), limit: KEYS_LIMIT },
        testKeys: { used: await countKeys(db, accountId, 'test'), limit: KEYS_LIMIT },
        pendingRegistrations: {
          used: (await countPending(db, live)) + (await countPending(db, test)),
          limit: 2 * PENDING_PER_ACCOUNT,
        },
      },
    }
  },
})

export const fetchAccountStores = operation({
  name: 'fetchAccountStores',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [PLATFORM_ROLE],
  summary: 'Lists the stores of an account of this cloud in both modes, oldest first. For administrators.',
  callers: ['admin'],
  changes: false,
  request: z.strictObject({ accountId: Id, limit: Limit.optional(), cursor: cursorField('st').optional() }),
  response: z.strictObject({
    ...Success,
    stores: z.array(
      z.strictObject({
        storeId: z.string(),
        tradingName: z.string(),
        companyName: z.string(),
        city: z.string(),
        mode: z.enum(['test', 'live']),
        package: z.enum(PACKAGES),
        agents: z.int(),
        devices: z.int(),
        createdAt: z.string(),
        lastSeenAt: z.string().optional().describe('Last contact of one of its agents.'),
      }),
    ),
    nextCursor: z.string().optional(),
  }),
  example: { accountId: EXAMPLE_ACCOUNT },
  async run(call, { accountId, limit = DEFAULT_PAGE, cursor }) {
    await accountWith(call, accountId)
    const rows = await listStoresOfAccount(call.db, { accountId, after: cursor, limit: limit + 1 })
    const { items, nextCursor } = toPage(rows, (row) => row.store_id, { limit })
    const figures = await figuresOfStores(
      call.db,
      items.map((row) => row.store_id),
    )
    return {
      success: true as const,
      stores: items.map((row) => {
        const { agents = 0, devices = 0, lastSeenMs = 0 } = figures.get(row.store_id) ?? {}
        return {
          storeId: row.store_id,
          tradingName: row.trading_name,
          companyName: row.legal_name,
          city: row.city,
          mode: row.tenant.endsWith('.live') ? ('live' as const) : ('test' as const),
          package: row.package as Package,
          agents,
          devices,
          createdAt: iso(row.created_ms),
          ...(lastSeenMs > 0 && { lastSeenAt: iso(lastSeenMs) }),
        }
      }),
      ...(nextCursor !== undefined && { nextCursor }),
    }
  },
})
