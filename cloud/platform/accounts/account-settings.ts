import { z } from 'zod'
import { knownCaller, keyCaller, rolesFrom } from '../foundation/caller.ts'
import { Success, Id } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import { notFound } from '../foundation/failure.ts'
import { issuersOf } from '../authority/key-loader.ts'
import { ROTATED_USES } from '../authority/rotate-key.ts'

export const rotateSigningKey = operation({
  name: 'rotateSigningKey',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Rotates a signing key of the cloud, or revokes one at once. For administrators.',
  description:
    'The next key, which is already published, starts to sign. The previous key stays valid until everything that it signed has expired. With `revoke`, the cloud and all agents that receive the new key set reject everything that the key signed. Keys for policy and freshness serve all accounts. Keys for tokens and receipts belong to one account, in both modes unless `mode` names one.',
  callers: ['admin'],
  changes: true,
  request: z.strictObject({
    use: z.enum(ROTATED_USES),
    revoke: z
      .union([z.boolean(), z.literal('all'), z.string().regex(/^[A-Za-z0-9_-]{8}$/)])
      .optional()
      .describe(
        '`true`: revokes the key that signs now. `all`: revokes this key, the next one and former ones. A kid: revokes that key.',
      ),
    accountId: Id.optional().describe('Account of the token or receipt key. Default: the account of the caller.'),
    mode: z.enum(['test', 'live']).optional(),
  }),
  response: z.strictObject({
    ...Success,
    kid: z.string().describe('The key that signs from now on.'),
    keys: z.array(z.strictObject({ iss: z.string(), kid: z.string() })),
  }),
  example: { use: 'token' },
  async run(call, { use, revoke = false, accountId, mode }) {
    const keys = []
    for (const iss of await issuersOf(
      call.db,
      { use, mode, accountId: accountId ?? keyCaller(call.caller).accountId },
      revoke,
    ))
      keys.push({ iss, kid: await call.services.authority.rotate(call.db, { iss, use, revoke }) })
    const [first] = keys
    if (!first) throw notFound('signing key')
    call.changed(first.kid)
    call.afterCommit(() => call.services.agents.keysChanged())
    return { success: true as const, kid: first.kid, keys }
  },
})

const SETTINGS = {
  acceptUpc: z
    .boolean()
    .describe(
      'True: the catalogue takes UPC-A, UPC-E and EAN-8 with a leading zero, and stores them as 13 digits with the zero.',
    ),
}

async function settingsOf({ db }: Call, tenant: string) {
  const row = await db.selectFrom('account_setting').selectAll().where('tenant', '=', tenant).executeTakeFirst()
  return { success: true as const, acceptUpc: row?.accept_upc === 1 }
}

export const fetchAccountSettings = operation({
  name: 'fetchAccountSettings',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Returns the settings of the account.',
  description: 'Test and live mode have their own settings.',
  changes: false,
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, ...SETTINGS }),
  example: {},
  run: (call) => settingsOf(call, knownCaller(call.caller).tenant),
})

export const updateAccountSettings = operation({
  name: 'updateAccountSettings',
  area: 'accounts',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Changes settings of the account.',
  description:
    'Omitted settings stay. With `acceptUpc` the account sells goods of North America. Without it, new products need an EAN of 8 or 13 digits that does not begin with 0. Products that exist stay.',
  changes: true,
  request: z.strictObject({ acceptUpc: SETTINGS.acceptUpc.optional() }),
  response: z.strictObject({ ...Success, ...SETTINGS }),
  example: { acceptUpc: true },
  async run(call, { acceptUpc }) {
    const { tenant } = knownCaller(call.caller)
    if (acceptUpc !== undefined) {
      const accept_upc = acceptUpc ? 1 : 0
      await call.db
        .insertInto('account_setting')
        .values({ tenant, accept_upc })
        .onConflict((c) => c.column('tenant').doUpdateSet({ accept_upc }))
        .execute()
      call.changed(tenant)
    }
    return settingsOf(call, tenant)
  },
})
