import { z } from 'zod'
import { Failure, invalid, precondition } from '../foundation/failure.ts'
import type { Identity, IdentityProvider, SignInFlow } from '../foundation/ports.ts'
import { iso, Success } from '../operations/fields.ts'
import { operation, type Call, type Services } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import { randomChallenge, useChallenge, type OpenChallenge } from './passkeys.ts'
import { acceptAs, isOpenInvitation } from './invitations.ts'
import { Device, SignInAnswer } from './schema.ts'
import {
  addressOf,
  failedSignIn,
  severalAccounts,
  signedIn,
  countTry,
  type SignInSubjects,
} from './sign-in-operations.ts'
import { endUnprovenAccess } from './session-operations.ts'
import type { Db } from '../persistence/database.ts'
import { findUsersToSignIn, NAMESAKES_LIMIT, type AccountUser } from './user-queries.ts'

type IdentityKey = Pick<Identity, 'issuer' | 'subject'>

/** A user that a person at the OpenID Connect provider may become by signing in. */
interface SignInOption extends AccountUser {
  /** True if the person has signed in as this user before. */
  readonly isLinked: boolean
}

/** The users that earlier sign-ins linked to this identity. */
function findUsersOfIdentity(db: Db, { issuer, subject }: IdentityKey): Promise<AccountUser[]> {
  return db
    .selectFrom('user_identity')
    .innerJoin('console_user', 'console_user.user_id', 'user_identity.user_id')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('console_user')
    .select('account.name as account_name')
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .where('account.status', '=', 'active')
    .orderBy('accepted_ms')
    .orderBy('account.name')
    .limit(NAMESAKES_LIMIT)
    .execute()
}

/** Open invitations of this address, whose inviters may still grant the rights. */
async function findOpenInvitations(db: Db, email: string, nowMs: number): Promise<AccountUser[]> {
  const rows = await db
    .selectFrom('console_user')
    .innerJoin('account', 'account.account_id', 'console_user.account_id')
    .selectAll('console_user')
    .select('account.name as account_name')
    .where('email', '=', email)
    .where('accepted_ms', 'is', null)
    .where('invitation_expires_ms', '>', nowMs)
    .where('account.status', '=', 'active')
    .orderBy('account.name')
    .limit(NAMESAKES_LIMIT)
    .execute()
  const open: AccountUser[] = []
  for (const row of rows) if (await isOpenInvitation(db, row, nowMs)) open.push(row)
  return open
}

/** Those of these users that the provider has signed in as another subject. */
async function usersOfOthers(db: Db, { issuer, subject }: IdentityKey, users: AccountUser[]): Promise<Set<string>> {
  if (users.length === 0) return new Set()
  const rows = await db
    .selectFrom('user_identity')
    .select('user_id')
    .where('issuer', '=', issuer)
    .where('subject', '!=', subject)
    .where(
      'user_id',
      'in',
      users.map((row) => row.user_id),
    )
    .execute()
  return new Set(rows.map((row) => row.user_id))
}

/**
 * The users among which the person may choose: first those of earlier sign-ins, then the users and open invitations with the
 * address, if the provider verified it. A user that another subject of the provider has used stays out: the address may
 * belong to a new person now.
 */
async function findSignInOptions(
  db: Db,
  identity: Identity,
  nowMs: number,
): Promise<{ options: SignInOption[]; isLinkedToOther: boolean }> {
  const { email, refusal } = identity
  if (refusal === 'email_domain_not_listed') return { options: [], isLinkedToOther: false }
  const linked = await findUsersOfIdentity(db, identity)
  const ids = new Set(linked.map((row) => row.user_id))
  const found =
    refusal === undefined && email !== undefined
      ? [...(await findUsersToSignIn(db, email)), ...(await findOpenInvitations(db, email, nowMs))]
      : []
  const others = await usersOfOthers(db, identity, found)
  return {
    options: [
      ...linked.map((row) => ({ ...row, isLinked: true })),
      ...found
        .filter((row) => !ids.has(row.user_id) && !others.has(row.user_id))
        .map((row) => ({ ...row, isLinked: false })),
    ],
    isLinkedToOther: others.size > 0,
  }
}

/** Links an identity to a user. */
async function linkIdentity(db: Db, { issuer, subject }: IdentityKey, userId: string, nowMs: number): Promise<void> {
  await db.insertInto('user_identity').values({ issuer, subject, user_id: userId, created_ms: nowMs }).execute()
}

/** Time for the sign-in at the provider, and then for the choice of an account, ms. */
export const FLOW_MS = 10 * 60_000
/** Contexts of sealed flows: before the person has signed in at the provider, and before the choice of an account. */
const FLOW = 'openid_flow'
const CHOICE = 'openid_choice'
/** Why a person whom the provider knows has no access. */
const NOT_INVITED = [
  'user_not_invited',
  'email_missing',
  'email_not_verified',
  'email_domain_not_listed',
  'linked_to_other_identity',
] as const

interface SealedFlow extends SignInFlow {
  readonly expiresMs: number
}

/** A person whom the provider knows, who must choose an account. */
interface SealedChoice extends OpenChallenge {
  readonly identity: Identity
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
  audited: false,
  refreshesPages: false,
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
    const sealed = sealFlow(call.services, FLOW, { ...flow, expiresMs })
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
    'Later ones find the user by the subject of the provider. If several accounts know the person, the answer is 409 `several_accounts` with `accounts` and a new `flow`: call again with it, an empty `query` and the chosen `account`. A second factor at the provider counts; without one, users with an authenticator app confirm with a code.',
  changes: true,
  secretResponse: true,
  refusals: ['openid_connect_off', 'identity_provider_unavailable', 'several_accounts', ...NOT_INVITED],
  request: z.strictObject({
    flow: z.string().max(2_000),
    query: z.string().max(4_096).describe('Query of the address to which the provider sent the browser.'),
    account: z.string().max(200).optional().describe('One of `accounts`, if the person has several.'),
    device: Device,
  }),
  response: SignInAnswer,
  example: { flow: 'k1.…', query: 'code=…&state=…' },
  countTry: (call, { flow }) => countTry(call, subjectsOf(call, openFlow<SealedFlow>(call, FLOW, flow))),
  async prepare(call, { flow, query }) {
    const provider = providerOf(call)
    const choice = openFlow<SealedChoice>(call, CHOICE, flow)
    const opened = choice ? undefined : openFlow<SealedFlow>(call, FLOW, flow)
    if (choice) return { identity: choice.expiresMs > call.nowMs ? choice.identity : undefined, choice }
    const identity = opened && opened.expiresMs > call.nowMs ? await provider.finish(query, opened) : undefined
    return { identity, choice }
  },
  async run(call, { account, device = '' }, { identity, choice }) {
    const isUsable = choice === undefined || (await useChallenge(call.db, choice))
    if (!identity || !isUsable) throw failedSignIn('the sign-in expired or was cancelled: start again')
    const user = await chosenUser(call, identity, account)
    const mustConfirm = user.totp_secret !== null && !identity.hasSecondFactor
    return signedIn(call, user, {
      state: mustConfirm ? 'pending' : 'active',
      hasSecondFactor: identity.hasSecondFactor,
      userAgent: device,
    })
  },
})

function sealFlow({ authority }: Services, context: string, flow: SealedFlow | SealedChoice): string {
  return authority.sealer.seal(Buffer.from(JSON.stringify(flow)), context)
}

function openFlow<T extends SealedFlow | SealedChoice>(
  { services }: Call,
  context: string,
  flow: string,
): T | undefined {
  try {
    return JSON.parse(services.authority.sealer.open(flow, context).toString('utf8')) as T
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
    case 'linked_to_other_identity':
      return `the provider knows ${email} as another person than before: ask an owner or admin to remove the user and to send a new invitation`
  }
}

/**
 * The user as whom the person signs in. If there are several, the person must choose, also if one is linked: another
 * account may have invited the address of this person without being asked. The first sign-in links identity and user, and
 * accepts an open invitation.
 */
async function chosenUser(
  { db, nowMs, services }: Call,
  identity: Identity,
  account?: string,
): Promise<Row<'console_user'>> {
  const { email = '', refusal, issuer, subject } = identity
  const { options, isLinkedToOther } = await findSignInOptions(db, identity, nowMs)
  if (options.length === 0) {
    const reason = refusal ?? (isLinkedToOther ? 'linked_to_other_identity' : 'user_not_invited')
    services.log.warn({ issuer, subject, reason }, 'a person without access signed in at the provider')
    throw new Failure('permission-denied', notInvited(reason, email), { reason, email })
  }
  if (options.length > 1 && account === undefined) {
    const id = randomChallenge(services.platform.random)
    const flow = sealFlow(services, CHOICE, { id, identity, expiresMs: nowMs + FLOW_MS })
    const usedBefore = options.filter((option) => option.isLinked).map((option) => option.account_name)
    throw severalAccounts(options, { flow, usedBefore })
  }
  const user = account === undefined ? options[0] : options.find((option) => option.account_name === account)
  if (!user) throw invalid('account', 'is none of the accounts of this person: start again')
  if (!user.isLinked) {
    await linkIdentity(db, identity, user.user_id, nowMs)
    if (user.accepted_ms !== null) await endUnprovenAccess(db, user.user_id)
  }
  if (user.accepted_ms === null) {
    const name = user.name || identity.name || user.email
    await acceptAs(db, user.user_id, { name, passwordHash: null }, nowMs)
  }
  return user
}
