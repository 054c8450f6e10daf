import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { CloudConfig } from '../../foundation/config.ts'
import { FLOW_MS } from '../../users/openid-operations.ts'

const NAME = 'untag_openid'

/** A sign-in at the OpenID Connect provider: its sealed secrets, and the address to open afterwards. */
export interface PendingSignIn {
  readonly flow: string
  readonly to: string
}

const optionsOf = ({ baseUrl }: Pick<CloudConfig, 'baseUrl'>) => ({
  path: '/console/sign-in',
  httpOnly: true,
  // `Lax`, because the provider's page sends the browser back.
  sameSite: 'Lax' as const,
  secure: baseUrl.startsWith('https:'),
})

/** Keeps a sign-in in this browser, so that nobody can finish it in another one. */
export function setFlowCookie(c: Context, config: Pick<CloudConfig, 'baseUrl'>, pending: PendingSignIn): void {
  const value = Buffer.from(JSON.stringify(pending)).toString('base64url')
  setCookie(c, NAME, value, { ...optionsOf(config), maxAge: FLOW_MS / 1_000 })
}

/** The sign-in of this browser, whose cookie is deleted. Empty without a cookie. */
export function takeFlowCookie(c: Context, config: Pick<CloudConfig, 'baseUrl'>): PendingSignIn {
  const value = getCookie(c, NAME) ?? ''
  setCookie(c, NAME, '', { ...optionsOf(config), maxAge: 0 })
  try {
    const { flow, to } = JSON.parse(Buffer.from(value, 'base64url').toString('utf8')) as Partial<PendingSignIn>
    return { flow: String(flow ?? ''), to: String(to ?? '') }
  } catch {
    return { flow: '', to: '' }
  }
}
