import { z } from 'zod'
import { Failure, precondition } from '../foundation/failure.ts'
import type { Identity, IdentityProvider, SignInFlow } from '../foundation/ports.ts'
import { iso, Success } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import type { UserRow } from '../persistence/tables/users.ts'
import { findUserOfIdentity, findUserToLink, linkIdentity } from './identities.ts'
import { acceptAs } from './invitations.ts'
import { Device, SignInAnswer } from './schema.ts'
import { addressOf, failedSignIn, signedIn } from './sign-in-operations.ts'
import { assertMayTry, type SignInSubjects } from './sign-in-failures.ts'

/** Time for the sign-in at the provider, ms. */
export const FLOW_MS = 10 * 60_000
const CONTEXT = 'openid_flow'
/** Why a person whom the provider knows has no access. */
const NOT_INVITED = ['user_not_invited', 'email_missing', 'email_not_verified', 'email_domain_not_listed'] as const

interface SealedFlow extends SignInFlow {
  readonly expiresMs: number
}

function providerOf({ services }: Call): IdentityProvider {
  if (services.identityProvider) return services.identityProvider
  throw precondition('openid_connect_off', 'this cloud has no OpenID Connect provider: see untag cloud --oidc-issuer')
}

export const beginOpenIdSignIn = operation({
  name: 'beginOpenIdSignIn',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: ['anyone'],
  roles: [],
  summary: 'Starts a sign-in at the OpenID Connect provider of the installation.',
  description:
    'Open `url` in the browser, and keep `flow` in this browser only. The provider sends the browser back to the console, which calls `finishOpenIdSignIn`.',
  changes: true,
  secretResponse: true,
  refusals: ['openid_connect_off', 'identity_provider_unavailable'],
  request: z.strictObject({
    again: z
      .boolean()
      .optional()
      .describe('True: the provider asks who signs in, although the browser has a session there.'),
  }),
  response: z.strictObject({ ...Success, url: z.string(), flow: z.string(), expiresAt: z.string() }),
  example: {},
  prepare: (call, { again = false }) => providerOf(call).begin(again),
  run(call, _input, { url, flow }) {
    const expiresMs = call.nowMs + FLOW_MS
    const sealed = call.services.authority.sealer.seal(Buffer.from(JSON.stringify({ ...flow, expiresMs })), CONTEXT)
    return Promise.resolve({ success: true as const, url, flow: sealed, expiresAt: iso(expiresMs) })
  },
})

export const finishOpenIdSignIn = operation({
  name: 'finishOpenIdSignIn',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: ['anyone'],
  roles: [],
  summary: 'Signs a user in with the answer of the OpenID Connect provider.',
  description:
    'Only users and invited persons can sign in. The first sign-in finds the user by the e-mail address, if the provider verified it, and accepts an open invitation. ' +
    'Later ones find the user by the subject of the provider. A second factor at the provider counts; without one, users with an authenticator app confirm with a code.',
  changes: true,
  secretResponse: true,
  refusals: ['openid_connect_off', 'identity_provider_unavailable', ...NOT_INVITED],
  request: z.strictObject({
    flow: z.string().max(2_000),
    query: z.string().max(4_096).describe('Query of the address to which the provider sent the browser.'),
    device: Device,
  }),
  response: SignInAnswer,
  example: { flow: 'k1.…', query: 'code=…&state=…' },
  async prepare(call, { flow, query }) {
    const provider = providerOf(call)
    const opened = openFlow(call, flow)
    const subjects = subjectsOf(call, opened)
    await assertMayTry(call.db, subjects, call.nowMs)
    const identity = opened && opened.expiresMs > call.nowMs ? await provider.finish(query, opened) : undefined
    return { identity, subjects }
  },
  async run(call, { device = '' }, { identity, subjects }) {
    if (!identity) throw failedSignIn(subjects, call.nowMs, 'the sign-in expired or was cancelled: start again')
    const user = await userOf(call, identity)
    const mustConfirm = user.totp_secret !== null && !identity.hasSecondFactor
    return signedIn(call, user, {
      state: mustConfirm ? 'pending' : 'active',
      hasSecondFactor: identity.hasSecondFactor,
      userAgent: device,
    })
  },
})

function openFlow({ services }: Call, flow: string): SealedFlow | undefined {
  try {
    return JSON.parse(services.authority.sealer.open(flow, CONTEXT).toString('utf8')) as SealedFlow
  } catch {
    return undefined
  }
}

const subjectsOf = (call: Call, flow: SealedFlow | undefined): SignInSubjects => ({
  user: `openid ${flow?.state ?? addressOf(call.caller)}`,
  address: addressOf(call.caller),
})

function notInvited(reason: (typeof NOT_INVITED)[number], email: string): string {
  switch (reason) {
    case 'email_missing':
      return 'the provider names no e-mail address: its administrator adds the claim email'
    case 'email_not_verified':
      return `the provider has not verified the address ${email}`
    case 'email_domain_not_listed':
      return `addresses such as ${email} may not sign in here: see untag cloud --oidc-domains`
    case 'user_not_invited':
      return `no user has the address ${email}: ask an owner or admin for an invitation`
  }
}

/** The user of the identity. The first sign-in links the two, and accepts an open invitation. */
async function userOf({ db, nowMs, services }: Call, identity: Identity): Promise<UserRow> {
  const { email = '', refusal, issuer, subject } = identity
  const known = refusal === 'email_domain_not_listed' ? undefined : await findUserOfIdentity(db, identity)
  if (known) return known
  const user = refusal === undefined ? await findUserToLink(db, email, nowMs) : undefined
  if (!user) {
    const reason = refusal ?? 'user_not_invited'
    services.log.warn({ issuer, subject, reason }, 'a person without access signed in at the provider')
    throw new Failure('permission-denied', notInvited(reason, email), { reason, email })
  }
  await linkIdentity(db, identity, user.user_id, nowMs)
  if (user.accepted_ms === null) {
    const name = user.name || identity.name || user.email
    await acceptAs(db, user.user_id, { name, passwordHash: null }, nowMs)
  }
  return user
}
