import { assert } from '../../../policy/assert.ts'
import { deadline } from '../../../policy/platform.ts'
import { readUntrustedJson } from '../../../policy/untrusted-json.ts'
import type { CloudConfig } from '../../platform/foundation/config.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { type TargetRules, OutgoingFault } from '../../platform/outgoing/outgoing-http.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ProviderFault, type ProviderConnection, type SendToProvider } from './provider.ts'
import { providerNamed } from './providers.ts'

/** Time limit for a response of the provider, ms: a shopper is waiting. */
const ANSWER_WITHIN_MS = 10_000
const ANSWER_LIMIT = 256 * 1024

/**
 * Rules for a provider's address. Requires HTTPS and a public address, unless the server allows private targets, such
 * as simulators.
 */
export function providerRules(config: CloudConfig): TargetRules {
  return { plainHttp: config.allowPrivateTargets, privateTargets: config.allowPrivateTargets }
}

const contextOf = (configId: string) => `psp_config/${configId}`

/** Encrypts settings. The result can be decrypted only with the same `configId`. */
export function sealConfig({ authority }: Services, configId: string, config: unknown): string {
  return authority.sealer.seal(Buffer.from(JSON.stringify(config)), contextOf(configId))
}

/** Connects to the provider with these settings. */
export function connectionOf(row: Row<'psp_config'>, services: Services): ProviderConnection {
  const provider = providerNamed(row.provider)
  assert(provider, `${row.provider} is configured and not built`)
  const config = provider.config.parse(
    JSON.parse(services.authority.sealer.open(row.sealed, contextOf(row.config_id)).toString('utf8')),
  )
  return provider.connect(config, sender(services), () => services.platform.clock.wall())
}

function sender({ outgoing, platform, config }: Services): SendToProvider {
  return async (request) => {
    const limit = deadline(platform.timers, ANSWER_WITHIN_MS)
    try {
      const { status, headers, body } = await outgoing.send(
        {
          ...request,
          headers: { 'user-agent': 'untag-payments/1', ...request.headers },
          answerLimit: ANSWER_LIMIT,
          rules: providerRules(config),
        },
        limit.signal,
      )
      return { status, headers, json: readUntrustedJson(new TextDecoder().decode(body)) }
    } catch (error) {
      if (!(error instanceof OutgoingFault)) throw error
      // If the guard refused the address, nothing was sent. After any other error the request may have arrived.
      throw new ProviderFault(`the provider was not reached: ${error.code}`, error.code === 'address_refused')
    } finally {
      limit.done()
    }
  }
}
