import { z } from 'zod'
import { pendingAnswer, RegistrationPending } from '../registrations/registration-schema.ts'
import { assertUnbound, registerStore } from '../registrations/registrations.ts'
import { keyCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { makeStore } from '../../platform/stores/make-store.ts'
import { Store, toStore } from '../../platform/stores/schema.ts'
import { AnyCasePackage, newStoreFields, STORE_INPUT_SHAPE } from '../../platform/stores/store-input.ts'

export const insertStore = operation({
  name: 'insertStore',
  area: 'stores',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Adds a store: a demo store at once with a test key, a registration for review with a live key.',
  description:
    'Required: both names (`name` or `companyName` and `tradingName`), the whole address (either spelling) and ' +
    'a phone number. With a test key the response is the store, with a live key `{registrationId, status: ' +
    '"pending"}`. The reviewer decides the package; `package` is a request.',
  refusals: ['too_many_registrations', 'too_many_stores'],
  changes: true,
  request: z
    .strictObject({ ...STORE_INPUT_SHAPE, package: AnyCasePackage.optional() })
    .transform((input, faults) => ({ fields: newStoreFields(input, faults, ['phone']), package: input.package })),
  response: z.union([Store.extend(Success), RegistrationPending]),
  example: {
    name: { legal: 'Hafenkante Handels GmbH', trading: 'Hafenkante Bremen' },
    address: { street: 'Schlachte 8', city: 'Bremen', postalCode: '28195', countryCode: 'DE' },
    phone: '+49421555010300',
  },
  async run(call, { fields, package: requestedPackage }) {
    const caller = keyCaller(call.caller)
    assertUnbound(caller)
    if (caller.mode === 'live')
      return pendingAnswer(await registerStore(call, caller, { fields, package: requestedPackage }))
    const store = await makeStore(call, caller.tenant, fields, requestedPackage ?? caller.package)
    call.changed(store.store_id)
    return { success: true as const, ...toStore(store) }
  },
})
