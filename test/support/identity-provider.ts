import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

/** A person of the test's OpenID Connect provider. */
export interface Person {
  sub: string
  email?: string
  email_verified?: boolean
  name?: string
  /** Methods of the sign-in (RFC 8176). */
  amr?: string[]
}

export const CLIENT = { id: 'untag', secret: 'secret-of-the-test-client-0123456789' }

/**
 * Starts `oidc-provider` on a real socket. `person` signs in without a form, with all consent. Set `isDown` to answer
 * nothing but 503.
 */
export async function startIdentityProvider(redirectUri: string, { authentication = 'client_secret_post' } = {}) {
  const state = { person: { sub: 'nobody' } as Person, isDown: false, requests: [] as string[] }
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: authentication as 'client_secret_post',
      },
    ],
    clientAuthMethods: [authentication as 'client_secret_post'],
    claims: { openid: ['sub', 'amr'], email: ['email', 'email_verified'], profile: ['name'] },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    cookies: { keys: ['cookie-key-of-the-test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => {
        const { amr: _, ...claims } = state.person
        return { ...claims, sub: accountId }
      },
    }),
  })
  const interact = async (request: IncomingMessage, response: ServerResponse) => {
    const { prompt, params, session } = await provider.interactionDetails(request, response)
    const { sub, amr } = state.person
    if (prompt.name === 'login')
      return provider.interactionFinished(request, response, { login: { accountId: sub, ...(amr && { amr }) } })
    const grant = new provider.Grant({ accountId: session?.accountId ?? sub, clientId: String(params['client_id']) })
    grant.addOIDCScope(String(params['scope']))
    const grantId = await grant.save()
    return provider.interactionFinished(request, response, { consent: { grantId } }, { mergeWithLastSubmission: true })
  }
  const serve = provider.callback()
  server.on('request', (request, response) => {
    state.requests.push(request.url ?? '')
    if (state.isDown) response.writeHead(503).end()
    else if (request.url?.startsWith('/interaction/')) interact(request, response).catch(() => response.destroy())
    else void serve(request, response)
  })
  return {
    issuer,
    state,
    /** Follows the redirects of the provider like a browser. Returns the address back to the cloud. */
    async visit(address: string): Promise<URL> {
      const cookies = new Map<string, string>()
      let url = new URL(address)
      for (let i = 0; i < 10; i++) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
        const answer = await fetch(url, { redirect: 'manual', headers: { cookie } })
        for (const each of answer.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
          if (value === '') cookies.delete(name)
          else cookies.set(name, value)
        }
        const location = answer.headers.get('location')
        if (location === null) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`)
        url = new URL(location, url)
        if (url.origin !== issuer) return url
      }
      throw new Error('too many redirects')
    },
    close: () =>
      new Promise<void>((resolve) => server.close(() => resolve())).finally(() => server.closeAllConnections()),
  }
}

export type TestIdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>
