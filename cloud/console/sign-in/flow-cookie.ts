import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { CloudConfig } from '../../platform/foundation/config.ts'
import { FLOW_MS } from '../../platform/users/openid-operations.ts'

/** Browsers accept the prefix `__Host-` only over HTTPS, from this host, for all paths. So no other host can plant a sign-in. */
const SECURE_NAME = '__Host-untag_openid'
/** Cookie over plain HTTP, for loopback addresses. */
const PLAIN_NAME = 'untag_openid'

/** A sign-in at the OpenID Connect provider: its sealed secrets, and the address to open afterwards. */
export interface PendingSignIn {
  readonly flow: string
  readonly to: string
}

const isSecure = ({ baseUrl }: Pick<CloudConfig, 'baseUrl'>) => baseUrl.startsWith('https:')
const nameOf = (config: Pick<CloudConfig, 'baseUrl'>) => (isSecure(config) ? SECURE_NAME : PLAIN_NAME)

const optionsOf = (config: Pick<CloudConfig, 'baseUrl'>) => ({
  path: '/',
  httpOnly: true,
  // `Lax`, because the provider's page sends the browser back.
  sameSite: 'Lax' as const,
  secure: isSecure(config),
})

/** Keeps a sign-in in this browser, so that nobody can finish it in another one. */
export function setFlowCookie(c: Context, config: Pick<CloudConfig, 'baseUrl'>, pending: PendingSignIn): void {
  const value = Buffer.from(JSON.stringify(pending)).toString('base64url')
  setCookie(c, nameOf(config), value, { ...optionsOf(config), maxAge: FLOW_MS / 1_000 })
}

/** The sign-in of this browser, whose cookie is deleted. Empty without a cookie. */
export function takeFlowCookie(c: Context, config: Pick<CloudConfig, 'baseUrl'>): PendingSignIn {
  const value = getCookie(c, nameOf(config)) ?? ''
  setCookie(c, nameOf(config), '', { ...optionsOf(config), maxAge: 0 })
  try {
    const { flow, to } = JSON.parse(Buffer.from(value, 'base64url').toString('utf8')) as Partial<PendingSignIn>
    return { flow: String(flow ?? ''), to: String(to ?? '') }
  } catch {
    return { flow: '', to: '' }
  }
}
