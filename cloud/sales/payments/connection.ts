import { assert } from '../../../policy/assert.ts'
import { deadline } from '../../../policy/platform.ts'
import { readUntrustedJson } from '../../../policy/untrusted-json.ts'
import { accountOf } from '../../platform/foundation/caller.ts'
import type { CloudConfig } from '../../platform/foundation/config.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import { sharedSlots } from '../../platform/foundation/shared-slots.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { type TargetRules, OutgoingFault } from '../../platform/outgoing/outgoing-http.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ProviderFault, type ProviderAnswer, type ProviderConnection, type SendToProvider } from './provider.ts'
import { providerNamed } from './providers.ts'

/** Time limit for a response of the provider, ms: a shopper is waiting. */
const ANSWER_WITHIN_MS = 10_000
const ANSWER_LIMIT = 256 * 1024
/** Maximum callers that share the answer of one question. */
const SHARED_BY = 10

const withSlot = sharedSlots(
  { atWork: 200, atWorkOfOne: 50, waiting: 400, waitingOfOne: 100 },
  { text: 'too many requests to the payment provider are under way', retryAfter: 60 },
)

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
  return provider.connect(config, sender(row, services), () => services.platform.clock.wall())
}

/** Sends requests with these settings: in slots of the account, and the same question once at a time. */
function sender({ config_id, tenant }: Row<'psp_config'>, services: Services): SendToProvider {
  const send: SendToProvider = (request) =>
    withSlot(accountOf(tenant), () => sendNow(request, services)).catch((error: unknown) => {
      throw error instanceof Failure ? new ProviderFault(error.message, false) : error
    })
  return (request) =>
    request.method === 'GET' ? askOnce(`${config_id} ${request.url}`, () => send(request)) : send(request)
}

interface Question {
  /** The next answer, which callers share. */
  next: Promise<ProviderAnswer> | undefined
  sharedBy: number
  readonly running: Promise<ProviderAnswer>
}
const questions = new Map<string, Question>()

/**
 * Asks one question once at a time, because outsiders can cause questions about a payment. Callers that come meanwhile
 * share the next answer: the present one may be older than their notification.
 */
function askOnce(key: string, ask: () => Promise<ProviderAnswer>): Promise<ProviderAnswer> {
  const begun = questions.get(key)
  if (!begun) return start(key, ask)
  if (++begun.sharedBy > SHARED_BY)
    return Promise.reject(new ProviderFault('too many questions about one payment are under way', false))
  const startNext = () => start(key, ask)
  return (begun.next ??= begun.running.then(startNext, startNext))
}

async function start(key: string, ask: () => Promise<ProviderAnswer>): Promise<ProviderAnswer> {
  const question: Question = { next: undefined, sharedBy: 0, running: ask() }
  questions.set(key, question)
  try {
    return await question.running
  } finally {
    // If callers share the next answer, its question has this place.
    if (questions.get(key) === question && question.next === undefined) questions.delete(key)
  }
}

const sendNow = async (
  request: Parameters<SendToProvider>[0],
  { outgoing, platform, config }: Services,
): Promise<ProviderAnswer> => {
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
