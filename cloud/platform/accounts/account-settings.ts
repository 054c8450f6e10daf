import { z } from 'zod'
import { knownCaller } from '../foundation/caller.ts'
import { rolesFrom } from '../foundation/roles.ts'
import { Success } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'

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
