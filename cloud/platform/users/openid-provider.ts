import type { Configuration, CustomFetchOptions } from 'openid-client'
import type { Platform } from '../../../policy/platform.ts'
import { deadline } from '../../../policy/platform.ts'
import { JsonFault, parseUntrustedJson } from '../../../policy/untrusted-json.ts'
import type { Log } from '../foundation/log.ts'
import type { CloudConfig, OpenIdConfig } from '../foundation/config.ts'
import { Failure } from '../foundation/failure.ts'
import type { Identity, IdentityProvider, SignInFlow } from '../foundation/ports.ts'
import { OutgoingFault, type OutgoingHttp } from '../outgoing/outgoing-http.ts'
import { consoleUrlOf } from './console-address.ts'
import { Email, UserName } from './schema.ts'

/** Time after which the cloud reads the provider's settings and keys again, ms. */
const KEPT_MS = 3_600_000
/** Time limit for one request to the provider, ms. */
const ANSWER_WITHIN_MS = 8_000
/** Maximum size of an answer, bytes. */
const ANSWER_LIMIT = 256 * 1024
/** Values of `amr` that name a second factor (RFC 8176). */
const SECOND_FACTORS: ReadonlySet<string> = new Set(['mfa', 'otp', 'hwk', 'swk', 'sc', 'fpt', 'face', 'pop'])
/** Errors of the provider that mean wrong settings of this cloud (RFC 6749 §5.2). */
const SETTING_ERRORS: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client', 'invalid_scope'])

interface Parts {
  readonly outgoing: OutgoingHttp
  readonly platform: Platform
  readonly log: Log
}

const NOT_REACHED = 'the OpenID Connect provider is not reached, or refuses the settings of this cloud'

/** Path of the console to which the provider sends the browser back. */
export const CALLBACK_PATH = '/console/sign-in/openid-connect/callback'

/** The OpenID Connect provider of the installation; undefined if none is configured. */
export function openIdProvider(config: CloudConfig, parts: Parts): IdentityProvider | undefined {
  return config.openId && new OpenIdProvider(config.openId, new URL(CALLBACK_PATH, consoleUrlOf(config)).href, parts)
}

/**
 * Authorization code flow with PKCE, state and nonce (OpenID Connect Core 1.0 §3.1), by openid-client. The cloud
 * also starts without the provider.
 */
class OpenIdProvider implements IdentityProvider {
  readonly name: string
  readonly #config: OpenIdConfig
  readonly #redirectUri: string
  readonly #parts: Parts
  #discovered: { readonly atMs: number; readonly found: Promise<Configuration> } | undefined

  constructor(config: OpenIdConfig, redirectUri: string, parts: Parts) {
    this.name = config.name
    this.#config = config
    this.#redirectUri = redirectUri
    this.#parts = parts
  }

  async check(): Promise<void> {
    const { issuer } = this.#config
    try {
      await this.#discover()
      this.#parts.log.info({ issuer }, 'the OpenID Connect provider answers')
    } catch (error) {
      this.#parts.log.error({ issuer, reason: reasonOf(error) }, NOT_REACHED)
    }
  }

  async begin(again: boolean): Promise<{ url: string; flow: SignInFlow }> {
    const { random } = this.#parts.platform
    const secret = () => Buffer.from(random.bytes(32)).toString('base64url')
    const flow = { state: secret(), nonce: secret(), verifier: secret() }
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import('openid-client')
    const found = await this.#discover().catch((error: unknown) => this.#unavailable(error))
    const url = buildAuthorizationUrl(found, {
      redirect_uri: this.#redirectUri,
      scope: 'openid email profile',
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: 'S256',
      ...(again && { prompt: 'login' }),
    })
    return { url: url.href, flow }
  }

  async finish(query: string, { state, nonce, verifier }: SignInFlow): Promise<Identity | undefined> {
    const { authorizationCodeGrant, fetchUserInfo } = await import('openid-client')
    try {
      const found = await this.#discover()
      const tokens = await authorizationCodeGrant(found, new URL(`?${query}`, this.#redirectUri), {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (!claims) return undefined
      const hasMore = claims['email'] === undefined && found.serverMetadata().userinfo_endpoint !== undefined
      const more = hasMore ? await fetchUserInfo(found, tokens.access_token, claims.sub) : {}
      return this.#identityOf({ ...more, ...claims }, claims)
    } catch (error) {
      if (isOutage(error) || isWrongSetting(error)) return this.#unavailable(error)
      this.#parts.log.warn({ issuer: this.#config.issuer, reason: reasonOf(error) }, 'a sign-in at the provider failed')
      return undefined
    }
  }

  #identityOf(all: Readonly<Record<string, unknown>>, { iss, sub, amr }: { iss: string; sub: string; amr?: unknown }) {
    const methods: readonly unknown[] = Array.isArray(amr) ? amr : []
    return {
      issuer: iss,
      subject: sub,
      ...this.#emailOf(all['email'], all['email_verified']),
      name: UserName.safeParse(all['name']).data,
      hasSecondFactor: methods.some((method) => typeof method === 'string' && SECOND_FACTORS.has(method)),
    }
  }

  /**
   * The address, and whether it may sign in. Some providers, such as Entra ID, do not say whether they verified it. Then
   * it counts only if its domain is listed, because the organization gives out the addresses of its domains.
   */
  #emailOf(claim: unknown, isVerified: unknown): Pick<Identity, 'email' | 'refusal'> {
    const parsed = Email.safeParse(claim)
    if (!parsed.success) return { email: undefined, refusal: 'email_missing' }
    const { domains } = this.#config
    const email = parsed.data
    const isListed = domains.includes(email.split('@').at(-1) ?? '')
    if (domains.length > 0 && !isListed) return { email, refusal: 'email_domain_not_listed' }
    const mayCount = isVerified === true || (isVerified === undefined && isListed)
    return { email, refusal: mayCount ? undefined : 'email_not_verified' }
  }

  /** Reads the provider's settings, or returns those of the last hour. Concurrent callers share one request. */
  #discover(): Promise<Configuration> {
    const nowMs = this.#parts.platform.clock.elapsed()
    if (!this.#discovered || nowMs - this.#discovered.atMs > KEPT_MS) {
      const found = this.#read()
      this.#discovered = { atMs: nowMs, found }
      found.catch(() => (this.#discovered = undefined))
    }
    return this.#discovered.found
  }

  async #read(): Promise<Configuration> {
    const oidc = await import('openid-client')
    const { issuer, clientId, clientSecret } = this.#config
    const isPlain = issuer.startsWith('http:')
    const fetch = (url: string, options: CustomFetchOptions) => this.#fetch(url, options)
    const found = await oidc.discovery(new URL(issuer), clientId, clientSecret, undefined, {
      [oidc.customFetch]: fetch,
      ...(isPlain && { execute: [oidc.allowInsecureRequests] }),
    })
    const server = found.serverMetadata()
    // Without the list only client_secret_basic is certain (OpenID Connect Discovery §3).
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const authentication = methods.includes('client_secret_post')
      ? oidc.ClientSecretPost(clientSecret)
      : oidc.ClientSecretBasic(clientSecret)
    const config = new oidc.Configuration(server, clientId, clientSecret, authentication)
    config[oidc.customFetch] = fetch
    if (isPlain) oidc.allowInsecureRequests(config)
    // Verifies the signature of each ID token, too.
    oidc.enableNonRepudiationChecks(config)
    return config
  }

  async #fetch(url: string, { method, headers, body, signal }: CustomFetchOptions): Promise<Response> {
    const { outgoing, platform } = this.#parts
    const limit = deadline(platform.timers, ANSWER_WITHIN_MS, signal)
    try {
      const answer = await outgoing.send(
        {
          url,
          method: method === 'POST' ? 'POST' : 'GET',
          headers: { ...headers },
          ...(body !== null && body !== undefined && { body: String(body) }),
          answerLimit: ANSWER_LIMIT,
          // The operator of the installation chose this address, which may be in the own network.
          rules: { plainHttp: this.#config.issuer.startsWith('http:'), privateTargets: true },
        },
        limit.signal,
      )
      if (answer.isCut || answer.status >= 500) throw new OutgoingFault('not_http', `it answered ${answer.status}`)
      const content = answer.status === 204 ? null : Buffer.from(answer.body).toString('utf8')
      assertWithinLimits(content ?? '')
      return new Response(content, { status: answer.status, headers: answer.headers })
    } finally {
      limit.done()
    }
  }

  #unavailable(error: unknown): never {
    const { issuer, name } = this.#config
    this.#parts.log.error({ issuer, reason: reasonOf(error) }, NOT_REACHED)
    throw new Failure(
      'unavailable',
      `sign-in with ${name} is not possible now: sign in with your password, or try later`,
      {
        reason: 'identity_provider_unavailable',
        retryAfter: 30,
      },
    )
  }
}

/** Throws for JSON that exceeds a limit. openid-client handles an answer that is not JSON. */
function assertWithinLimits(content: string): void {
  try {
    parseUntrustedJson(content)
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error
    if (error.code !== 'not_json') throw new OutgoingFault('not_http', error.message)
  }
}

/** The error and its causes, first the outermost. */
function chainOf(error: unknown): { name?: unknown; code?: unknown; error?: unknown; message?: unknown }[] {
  const chain: object[] = []
  for (let each = error; typeof each === 'object' && each !== null && chain.length < 5; each = (each as Error).cause)
    chain.push(each)
  return chain
}

function isOutage(error: unknown): boolean {
  return chainOf(error).some((each) => each instanceof OutgoingFault || each.code === 'OAUTH_TIMEOUT')
}

/** The callback of the browser may name any error: only those that the provider answered to this cloud tell its settings. */
function isWrongSetting(error: unknown): boolean {
  const chain = chainOf(error)
  if (chain.some(({ code }) => code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR')) return false
  return chain.some((each) => typeof each.error === 'string' && SETTING_ERRORS.has(each.error))
}

/** Codes of the error for the log, without tokens. */
function reasonOf(error: unknown): string {
  const codes = chainOf(error).map(({ error: oauth, code, name }) => oauth ?? code ?? name)
  const named = codes.filter((code) => typeof code === 'string' && code !== '')
  return [...new Set(named)].join(', ').slice(0, 200)
}
