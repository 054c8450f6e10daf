import { z } from 'zod'
import { newId } from '../../../policy/ids.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { userCaller, EVERY_ROLE } from '../foundation/caller.ts'
import { notFound, precondition } from '../foundation/failure.ts'
import { Id, Success } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import { passkeySiteOf, type PasskeySite } from './console-address.ts'
import {
  assertMayChangeFactors,
  endOtherCredentialSteps,
  findBegun,
  ownUser,
  storeBegun,
} from './session-operations.ts'
import {
  CHALLENGE_MS,
  newSignInChallenge,
  openChallenge,
  randomChallenge,
  useChallenge,
  CreationOptions,
  NewCredential,
  PasskeyName,
  PasskeyRecord,
  RequestOptions,
  SignedCredential,
  toPasskeyRecord,
  findPasskey,
  findPasskeyToSignIn,
  listPasskeys,
  PASSKEYS_LIMIT,
  userHandleOf,
} from './passkeys.ts'
import { Device, SignInAnswer } from './schema.ts'
import { writeSecondFactor } from './sessions.ts'
import { addressOf, countTry, failedSignIn, signedIn } from './sign-in-operations.ts'
import { accountName, findUser } from './user-queries.ts'
import type { Row } from '../persistence/schema.ts'

/** Checks responses of authenticators. The library loads at the first use, because it takes 0.2 s. */

/** Algorithms of COSE: Ed25519, ECDSA with P-256, RSA with SHA-256. */
const ALGORITHMS = [-8, -7, -257]

type Created = z.output<typeof NewCredential>
type Signed = z.output<typeof SignedCredential>

/** What the response must fit. */
interface Expected {
  readonly challenge: string
  readonly site: PasskeySite
}

/** The challenge that a response names; undefined if it names none. The response is not verified yet. */
function challengeOf({ response }: Created | Signed): string | undefined {
  try {
    const data = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()) as { challenge?: unknown }
    return typeof data.challenge === 'string' ? data.challenge : undefined
  } catch {
    return undefined
  }
}

/**
 * True if the response was made in a frame of a page that is not the console (Web Authentication Level 3 §7). The library
 * does not check it. A browser that does not name the page counts as one in a foreign page.
 */
function isInForeignPage({ response }: Created | Signed, { origin }: PasskeySite): boolean {
  const data = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()) as Record<string, unknown>
  const isInFrame = data['crossOrigin'] === true || data['topOrigin'] !== undefined
  return isInFrame && data['topOrigin'] !== origin
}

/** What the cloud stores of a new passkey. */
type VerifiedKey = Pick<Row<'user_passkey'>, 'credential_id' | 'public_key' | 'counter' | 'backed_up'>

/** Verifies a new passkey; undefined if it does not fit. The cloud does not ask who made the authenticator. */
async function verifyCreated(credential: Created, { challenge, site }: Expected): Promise<VerifiedKey | undefined> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const { id, rawId, type, response } = credential
  const { clientDataJSON, attestationObject } = response
  try {
    if (isInForeignPage(credential, site) || (await hasCertificates(attestationObject))) return undefined
    const { registrationInfo: found } = await verifyRegistrationResponse({
      response: { id, rawId, type, response: { clientDataJSON, attestationObject }, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!found || found.credential.id !== id) return undefined
    return {
      credential_id: id,
      public_key: Buffer.from(found.credential.publicKey).toString('base64url'),
      counter: found.credential.counter,
      backed_up: found.credentialBackedUp ? 1 : 0,
    }
  } catch {
    return undefined
  }
}

/** True unless the attestation has no certificates. The library would fetch revocation lists that they name. */
async function hasCertificates(attestationObject: string): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const decoded = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')))
  const format = decoded.get('fmt')
  return format !== 'none' && (format !== 'packed' || decoded.get('attStmt').get('x5c') !== undefined)
}

/** Verifies a signature with a stored passkey; undefined if it does not fit. */
async function verifySigned(
  credential: Signed,
  passkey: Row<'user_passkey'>,
  { challenge, site }: Expected,
): Promise<Pick<Row<'user_passkey'>, 'counter' | 'backed_up'> | undefined> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  const { id, rawId, type, response } = credential
  const { clientDataJSON, authenticatorData, signature } = response
  try {
    if (isInForeignPage(credential, site)) return undefined
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: {
        id,
        rawId,
        type,
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      requireUserVerification: true,
      credential: {
        id: passkey.credential_id,
        publicKey: new Uint8Array(Buffer.from(passkey.public_key, 'base64url')),
        counter: passkey.counter,
      },
    })
    if (!verified) return undefined
    return { counter: authenticationInfo.newCounter, backed_up: authenticationInfo.credentialBackedUp ? 1 : 0 }
  } catch {
    return undefined
  }
}

/**
 * Passkeys of users. Registration: `beginPasskey` → the browser makes a key → `registerPasskey`. Sign-in:
 * `beginPasskeySignIn` → the browser signs the challenge → `signInWithPasskey`.
 */

const EXAMPLE = { id: 'q83vASNFZ4k', rawId: 'q83vASNFZ4k', type: 'public-key' } as const
const NO_CHALLENGE = { passkey_challenge: null, passkey_challenge_expires_ms: null }
const EXAMPLE_CLIENT_DATA = 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0'

function requiredSite({ services }: Call): PasskeySite {
  const site = passkeySiteOf(services.config)
  if (site) return site
  throw precondition(
    'passkeys_unavailable',
    'browsers allow passkeys only over HTTPS with a host name, or on localhost: set the public URL of the cloud',
  )
}

export const beginPasskey = operation({
  name: 'beginPasskey',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Makes the challenge for a new passkey of the calling user.',
  description:
    'Pass `options` to `navigator.credentials.create` within 5 minutes, and the answer to `registerPasskey` in the same session. A later call replaces the challenge. A user who has a second factor must have signed in with it.',
  changes: true,
  secretResponse: true,
  refusals: ['passkeys_unavailable', 'too_many_passkeys'],
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, options: CreationOptions }),
  example: {},
  async run(call) {
    const site = requiredSite(call)
    const user = await ownUser(call)
    await assertMayChangeFactors(call, user)
    const passkeys = await listPasskeys(call.db, user.user_id)
    assertRoom(passkeys.length)
    const challenge = randomChallenge(call.services.platform.random)
    await storeBegun(call, { passkey_challenge: challenge, passkey_challenge_expires_ms: call.nowMs + CHALLENGE_MS })
    const account = await accountName(call.db, user.account_id)
    const options: z.input<typeof CreationOptions> = {
      challenge,
      rp: { id: site.id, name: 'untag' },
      user: {
        id: userHandleOf(user.user_id),
        name: user.email,
        displayName: `${user.name || user.email} (${account})`,
      },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
      timeout: CHALLENGE_MS,
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      excludeCredentials: passkeys.map((row) => ({
        id: row.credential_id,
        type: 'public-key',
        transports: JSON.parse(row.transports) as string[],
      })),
    }
    call.changed(user.user_id)
    return { success: true as const, options }
  },
})

function assertRoom(count: number): void {
  if (count >= PASSKEYS_LIMIT)
    throw precondition('too_many_passkeys', `you have ${PASSKEYS_LIMIT} passkeys, which is the most: remove one`)
}

export const registerPasskey = operation({
  name: 'registerPasskey',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Stores a new passkey of the calling user. Ends all other sessions.',
  description: 'The session then has a second factor, as does each sign-in with the passkey.',
  changes: true,
  refusals: ['passkeys_unavailable', 'too_many_passkeys', 'passkey_rejected', 'passkey_exists'],
  request: z.strictObject({ name: PasskeyName, credential: NewCredential }),
  response: PasskeyRecord.extend(Success),
  example: {
    name: 'Phone of Jana',
    credential: { ...EXAMPLE, response: { clientDataJSON: EXAMPLE_CLIENT_DATA, attestationObject: 'o2NmbXRkbm9uZQ' } },
  },
  async prepare(call, { credential }) {
    const site = requiredSite(call)
    const challenge = challengeOf(credential)
    return challenge === undefined ? undefined : verifyCreated(credential, { challenge, site })
  },
  async run(call, { name, credential }, key) {
    const user = await ownUser(call)
    await assertMayChangeFactors(call, user)
    assertRoom((await listPasskeys(call.db, user.user_id)).length)
    const { challenge } = await findBegun(call)
    const isOpen = challenge !== null && secretsEqual(challenge, challengeOf(credential) ?? '')
    if (!key || !isOpen)
      throw precondition(
        'passkey_rejected',
        'the passkey does not fit the challenge of this session, or 5 minutes have passed: try again',
        { afterRefusal: (db) => (isOpen ? storeBegun({ ...call, db }, NO_CHALLENGE) : Promise.resolve()) },
      )
    if (await findPasskey(call.db, key.credential_id))
      throw precondition('passkey_exists', 'this passkey is registered already')
    const row = {
      ...key,
      passkey_id: newId('psk', call.services.platform),
      user_id: user.user_id,
      name,
      transports: JSON.stringify(credential.response.transports ?? []),
      created_ms: call.nowMs,
      last_used_ms: null,
    }
    await call.db.insertInto('user_passkey').values(row).execute()
    const { sessionId } = userCaller(call.caller)
    await writeSecondFactor(call.db, sessionId)
    await endOtherCredentialSteps(call.db, user.user_id, sessionId)
    call.changed(user.user_id)
    return { success: true as const, ...toPasskeyRecord(row) }
  },
})

export const fetchPasskeys = operation({
  name: 'fetchPasskeys',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Lists the passkeys of the calling user, oldest first.',
  changes: false,
  request: z.strictObject({}),
  response: z.strictObject({
    ...Success,
    available: z.boolean().describe('False if browsers allow no passkeys at the address of this cloud.'),
    passkeys: z.array(PasskeyRecord),
  }),
  example: {},
  async run(call) {
    const rows = await listPasskeys(call.db, userCaller(call.caller).keyId)
    const available = passkeySiteOf(call.services.config) !== undefined
    return { success: true as const, available, passkeys: rows.map(toPasskeyRecord) }
  },
})

export const removePasskey = operation({
  name: 'removePasskey',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: [],
  roles: EVERY_ROLE,
  summary: 'Removes a passkey of the calling user. Ends all other sessions.',
  description:
    'The session must have a second factor. If the user has no other second factor left, this call ends its own session too.',
  changes: true,
  request: z.strictObject({ passkeyId: Id }),
  response: z.strictObject({ ...Success, passkeyId: z.string() }),
  example: { passkeyId: 'psk_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { passkeyId }) {
    const user = await ownUser(call)
    const passkeys = await listPasskeys(call.db, user.user_id)
    if (!passkeys.some((row) => row.passkey_id === passkeyId)) throw notFound('passkey')
    await assertMayChangeFactors(call, user)
    await call.db.deleteFrom('user_passkey').where('passkey_id', '=', passkeyId).execute()
    const isLast = user.totp_secret === null && passkeys.length === 1
    await endOtherCredentialSteps(call.db, user.user_id, isLast ? undefined : userCaller(call.caller).sessionId)
    call.changed(user.user_id)
    return { success: true as const, passkeyId }
  },
})

export const beginPasskeySignIn = operation({
  name: 'beginPasskeySignIn',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: ['anyone'],
  roles: [],
  summary: 'Makes the challenge for a sign-in with a passkey.',
  description: 'Pass `options` to `navigator.credentials.get` within 5 minutes.',
  changes: true,
  audited: false,
  refreshesPages: false,
  refusals: ['passkeys_unavailable'],
  request: z.strictObject({}),
  response: z.strictObject({ ...Success, options: RequestOptions }),
  example: {},
  run(call) {
    const site = requiredSite(call)
    const { authority, platform } = call.services
    const challenge = newSignInChallenge(authority.sealer, call.nowMs, platform.random)
    const options = { challenge, rpId: site.id, timeout: CHALLENGE_MS, userVerification: 'required' as const }
    return Promise.resolve({ success: true as const, options })
  },
})

export const signInWithPasskey = operation({
  name: 'signInWithPasskey',
  area: 'users',
  minimumPackage: 'DISCOVER',
  callers: ['anyone'],
  roles: [],
  summary: 'Signs a user in with a passkey, which also counts as the second factor.',
  description: 'Unknown passkeys and wrong signatures get the same answer, and count as failed sign-ins.',
  changes: true,
  secretResponse: true,
  refusals: ['passkeys_unavailable'],
  request: z.strictObject({ credential: SignedCredential, device: Device }),
  response: SignInAnswer,
  example: {
    credential: {
      ...EXAMPLE,
      response: { clientDataJSON: EXAMPLE_CLIENT_DATA, authenticatorData: 'SZYN5YgOjGh0', signature: 'MEUCIQDx' },
    },
  },
  countTry: (call, { credential }) =>
    countTry(call, { user: `passkey ${credential.id}`, address: addressOf(call.caller) }),
  async prepare(call, { credential }) {
    const site = requiredSite(call)
    const challenge = challengeOf(credential)
    const passkey = await findPasskey(call.db, credential.id)
    if (challenge === undefined || !passkey) return undefined
    const verified = await verifySigned(credential, passkey, { challenge, site })
    return verified && { ...verified, former: passkey.counter }
  },
  async run(call, { credential, device = '' }, verified) {
    const challenge = challengeOf(credential) ?? ''
    const open = openChallenge(call.services.authority.sealer, challenge, call.nowMs)
    const passkey = await findPasskeyToSignIn(call.db, credential.id)
    const user = passkey && (await findUser(call.db, passkey.user_id))
    // The counter may have changed since the signature was verified.
    const isRight = verified && open && passkey?.counter === verified.former
    const isOwn = user && credential.response.userHandle === userHandleOf(user.user_id)
    if (!isRight || !isOwn || !(await useChallenge(call.db, open)))
      throw failedSignIn('this passkey is unknown or was not accepted: try again, or sign in with your password')
    const { counter, backed_up } = verified
    await call.db
      .updateTable('user_passkey')
      .set({ counter, backed_up, last_used_ms: call.nowMs })
      .where('credential_id', '=', credential.id)
      .execute()
    return signedIn(call, user, { state: 'active', hasSecondFactor: true, userAgent: device })
  },
})
