import { z } from 'zod'
import { keyCaller, type Caller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import { Success, text } from '../../platform/operations/fields.ts'
import { operation, type ReadContext } from '../../platform/operations/operation.ts'
import { finishErasure, recordErasure } from './erasures.ts'
import { eraseTable, type Customer } from './personal-table.ts'
import { PERSONAL_TABLES } from './personal-tables.ts'

const UserId = text(128).describe('The customer id that you sent at check-in, at checkout or with engagements.')

/**
 * Returns the customer in the account of the caller. Throws 403 for keys bound to stores, because the data of a
 * customer includes all stores.
 */
function customerOf(caller: Caller, userId: string): Customer {
  const { tenant, storeIds } = keyCaller(caller)
  if (storeIds !== null)
    throw new Failure(
      'permission-denied',
      'customers belong to the whole account: use a key that is not bound to stores',
      { reason: 'key_bound_to_stores' },
    )
  return { tenant, userId }
}

export const exportCustomerData = operation({
  name: 'exportCustomerData',
  area: 'customers',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Exports all stored data of one customer.',
  description:
    'Grouped by kind: purchases, orders, sessions, loyalty, follows, favourites, requests for help. The ' +
    'response is streamed. Lists are empty for an unknown customer.',
  changes: false,
  request: z.strictObject({ userId: UserId }),
  response: z.strictObject({
    ...Success,
    userId: z.string(),
    records: z.record(z.string(), z.array(z.record(z.string(), z.unknown()))),
  }),
  example: { userId: 'shopper-17' },
  async stream(reading, { userId }) {
    return {
      contentType: 'application/json',
      fileName: 'customer.json',
      chunks: asJson(reading, customerOf(reading.caller, userId)),
    }
  },
})

async function* asJson(reading: ReadContext, who: Customer): AsyncGenerator<string> {
  yield `{"success":true,"userId":${JSON.stringify(who.userId)},"records":{`
  let isFirst = true
  for (const { name, page } of PERSONAL_TABLES) {
    if (name === undefined || page === undefined) continue
    yield `${isFirst ? '' : ','}"${name}":[`
    isFirst = false
    for (let after: string | undefined = ''; after !== undefined;) {
      const position: string = after
      const { records, next } = await reading.read(({ db }) => page(db, who, position))
      yield (
        (position !== '' && records.length > 0 ? ',' : '') + records.map((record) => JSON.stringify(record)).join(',')
      )
      after = next
    }
    yield ']'
  }
  yield '}}'
}

export const eraseCustomerData = operation({
  name: 'eraseCustomerData',
  area: 'customers',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Erases the data of one customer.',
  description:
    'Purchases and their receipts stay under a random pseudonym that cannot be mapped back; all other data is ' +
    'deleted. A repeated call finds nothing more. `records` contains the number of rows of each table.',
  changes: true,
  request: z.strictObject({ userId: UserId }),
  response: z.strictObject({ ...Success, erased: z.literal(true), records: z.record(z.string(), z.int()) }),
  example: { userId: 'shopper-17' },
  async steps(work, { userId }) {
    const who = customerOf(work.caller, userId)
    const erasureId = await work.step((call) => recordErasure(call, who))
    const records: Record<string, number> = {}
    for (const table of PERSONAL_TABLES) {
      const { name = table.table } = table
      records[name] = 0
      for await (const count of eraseTable(table, who, (step) => work.step(step))) {
        records[name] += count
        work.progress({ records })
      }
    }
    await work.step((call) => finishErasure(call, erasureId))
    return { success: true as const, erased: true as const, records }
  },
})
