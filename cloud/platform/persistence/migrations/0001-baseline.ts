import { ACCOUNTS } from './baseline/accounts.ts'
import { AGENTS } from './baseline/agents.ts'
import { ANALYTICS } from './baseline/analytics.ts'
import { ASSISTANCE } from './baseline/assistance.ts'
import { AUTHORITY } from './baseline/authority.ts'
import { CLICK_AND_COLLECT } from './baseline/click-and-collect.ts'
import { INTEGRATIONS } from './baseline/integrations.ts'
import { LOYALTY } from './baseline/loyalty.ts'
import { OFFERS } from './baseline/offers.ts'
import { PAYMENTS } from './baseline/payments.ts'
import { PROTECTION } from './baseline/protection.ts'
import { PURCHASES } from './baseline/purchases.ts'
import { PUSH } from './baseline/push.ts'
import { STOCK } from './baseline/stock.ts'
import { STORES } from './baseline/stores.ts'
import { USERS } from './baseline/users.ts'
import { WEBHOOKS } from './baseline/webhooks.ts'
import type { Migration } from './migration.ts'

/**
 * The schema of release 0.1.0. Each file in `baseline/` creates the tables that the file of the same name in
 * `../tables` describes.
 *
 * The SQL is portable and uses no date functions. Ids are texts that the cloud creates, money is whole cents, times are
 * whole ms since 1970, booleans are 0 and 1, JSON is text. `tenant` is `{accountId}.{mode}`: test and live data never
 * mix.
 */
export const BASELINE: Migration = {
  name: '0001-baseline',
  // A table comes after the tables that it references.
  statements: [
    ...ACCOUNTS,
    ...USERS,
    ...AUTHORITY,
    ...STORES,
    ...STOCK,
    ...OFFERS,
    ...PURCHASES,
    ...PAYMENTS,
    ...CLICK_AND_COLLECT,
    ...LOYALTY,
    ...ANALYTICS,
    ...ASSISTANCE,
    ...INTEGRATIONS,
    ...WEBHOOKS,
    ...PUSH,
    ...AGENTS,
    ...PROTECTION,
  ],
}
