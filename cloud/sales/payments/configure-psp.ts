import { z } from 'zod'
import { validationFindings, pathText } from '../../../policy/validation-findings.ts'
import { newId } from '../../../policy/ids.ts'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure, invalid, type ErrorDetail } from '../../platform/foundation/failure.ts'
import { Id, iso, Success } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { checkTarget } from '../../platform/outgoing/outgoing-http.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { providerRules, sealConfig } from './connection.ts'
import { notificationUrlOf } from './open-payment.ts'
import type { PaymentProvider } from './provider.ts'
import { PROVIDER_NAMES, PROVIDERS } from './providers.ts'
import { replaceConfig } from './queries.ts'

/** Names of a provider's settings. Optional ones end in a question mark; `baseUrl` of a fixed provider is for tests. */
export function settingsOf({ config }: PaymentProvider): string {
  const settings = Object.entries(config.shape).flatMap(([key, schema]) => {
    const isOptional = schema.safeParse(undefined).success
    return isOptional && key === 'baseUrl' ? [] : [`\`${key}\`${isOptional ? '?' : ''}`]
  })
  return settings.join(', ')
}

export const configurePSP = operation({
  name: 'configurePSP',
  area: 'payments',
  minimumPackage: 'GROW',
  roles: rolesFrom('admin'),
  summary: 'Sets the payment service provider of a store.',
  description:
    'Credentials are stored encrypted and never returned. Open payments continue at the previous provider, and ' +
    'its payments are refunded there. Register `notificationUrl` with the provider. `config` by provider: ' +
    `${Object.values(PROVIDERS)
      .map((provider) => `${provider.name} ${settingsOf(provider)}`)
      .join('; ')}.`,
  changes: true,
  request: z.strictObject({
    provider: z.enum(PROVIDER_NAMES),
    storeId: Id,
    config: z.record(z.string().max(60), z.string().max(2_000)).describe('Keys and account ids of the provider.'),
  }),
  response: z.strictObject({
    ...Success,
    storeId: z.string(),
    provider: z.string(),
    notificationUrl: z.string(),
    configuredAt: z.string(),
  }),
  example: {
    provider: 'custom',
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    config: {
      baseUrl: 'https://psp.example',
      apiKey: 'key-of-the-shop',
      webhookSecret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=',
    },
  },
  emits: ['integration.psp.configured'],
  async run(call, input) {
    const { db, nowMs, services } = call
    const provider = PROVIDERS[input.provider]
    const config = readConfig(provider, input.config)
    const target = checkTarget(provider.addressOf(config), providerRules(services.config))
    if ('refusal' in target) throw invalid('config.baseUrl', target.refusal, 'url_refused')
    const store = await ownStore(call, input.storeId)
    const configId = newId('psp', services.platform)
    await replaceConfig(db, {
      config_id: configId,
      tenant: knownCaller(call.caller).tenant,
      store_id: store.store_id,
      provider: provider.name,
      sealed: sealConfig(services, configId, config),
      is_current: 1,
      created_ms: nowMs,
    })
    call.changed(configId)
    call.emit({
      type: 'integration.psp.configured',
      storeId: store.store_id,
      data: { storeId: store.store_id, provider: provider.name },
    })
    const notificationUrl = notificationUrlOf({ provider: provider.name, store_id: store.store_id }, call)
    return {
      success: true as const,
      storeId: store.store_id,
      provider: provider.name,
      notificationUrl,
      configuredAt: iso(nowMs),
    }
  },
})

/**
 * Validates the settings for the provider. Throws 400 that names every invalid field. The error contains no values of
 * fields, because they may be secrets.
 */
function readConfig(provider: PaymentProvider, config: Record<string, string>): unknown {
  const read = provider.config.safeParse(config)
  if (read.success) return read.data
  const details = validationFindings(read.error.issues, config).map((finding): ErrorDetail => {
    const path = pathText(['config', ...finding.path])
    if (finding.code === 'unknown_field')
      return { path, code: finding.code, message: `${provider.name} does not have this setting` }
    return { path, code: finding.code === 'missing' ? 'missing' : 'invalid', message: finding.message }
  })
  throw new Failure('invalid-argument', `config: ${details[0]?.path} ${details[0]?.message}`, { details })
}
