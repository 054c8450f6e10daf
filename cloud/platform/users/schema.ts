import { z } from 'zod'
import { EVERY_ROLE, ROLES } from '../foundation/caller.ts'
import { definedFields, iso, text } from '../operations/fields.ts'
import type { Row } from '../persistence/schema.ts'
import { modeOf, roleOf, storesOf } from './user-queries.ts'

/** Maximum number of stores that a user can be limited to. */
export const USER_STORES_LIMIT = 100

/** Lowers A to Z only: full Unicode would turn U+212A, the kelvin sign, into the k of another address. */
const lowerAscii = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())

/** The only normal form of an e-mail address: ASCII, with small letters. RFC 5321 §4.5.3.1 limits its length. */
export const Email = z
  .string()
  .max(254)
  .trim()
  .overwrite(lowerAscii)
  .pipe(z.email('must be an e-mail address'))
  .describe('E-mail address. Capital letters count as small ones.')
export const RoleField = z.enum(ROLES).describe('Highest first: owner, admin, manager, associate, viewer.')
export const UserName = text(80)
export const Device = text(200).optional().describe('Browser or device, for the list of sessions.')

/** A user in listings. */
export const UserRecord = z.strictObject({
  userId: z.string(),
  email: z.string(),
  name: z.string(),
  role: z.enum(EVERY_ROLE),
  storeIds: z.array(z.string()).optional().describe('Stores of the user; absent: all stores of the account.'),
  sandboxOnly: z.boolean().describe('True if the user may see sandbox data only.'),
  status: z.enum(['invited', 'active']),
  createdAt: z.string(),
  lastSignInAt: z.string().optional(),
  invitationExpiresAt: z.string().optional(),
})

/** Fields of a user that only the system sets. Callers may send them back (ADR requests). */
export const USER_SYSTEM_FIELDS = UserRecord.pick({
  email: true,
  status: true,
  createdAt: true,
  lastSignInAt: true,
  invitationExpiresAt: true,
}).partial().shape

/** Converts a row. */
export function toUserRecord(row: Row<'console_user'>): z.infer<typeof UserRecord> {
  return {
    userId: row.user_id,
    email: row.email,
    name: row.name,
    role: roleOf(row),
    sandboxOnly: row.sandbox_only === 1,
    status: row.accepted_ms === null ? 'invited' : 'active',
    createdAt: iso(row.created_ms),
    ...definedFields({
      storeIds: storesOf(row) as string[] | null,
      lastSignInAt: row.last_sign_in_ms === null ? null : iso(row.last_sign_in_ms),
      invitationExpiresAt: row.invitation_expires_ms === null ? null : iso(row.invitation_expires_ms),
    }),
  }
}

/** A session in listings, without its token. */
export const SessionRecord = z.strictObject({
  sessionId: z.string(),
  device: z.string(),
  mode: z.enum(['test', 'live']),
  isCurrent: z.boolean().describe('True for the session of this call.'),
  hasSecondFactor: z.boolean(),
  createdAt: z.string(),
  lastUsedAt: z.string().describe('To five minutes.'),
  expiresAt: z.string(),
})

/** Converts a row. */
export function toSessionRecord(row: Row<'user_session'>, currentId: string): z.infer<typeof SessionRecord> {
  return {
    sessionId: row.session_id,
    device: row.user_agent,
    mode: modeOf(row),
    isCurrent: row.session_id === currentId,
    hasSecondFactor: row.second_factor === 1,
    createdAt: iso(row.created_ms),
    lastUsedAt: iso(row.seen_ms),
    expiresAt: iso(row.expires_ms),
  }
}

/** Response of a sign-in. */
export const SignInAnswer = z.strictObject({
  success: z.literal(true),
  sessionToken: z.string().describe('Send it as Authorization: Bearer. Shown once.'),
  state: z
    .enum(['active', 'pending'])
    .describe('`pending`: the second factor is missing; call `confirmSignIn` within 10 minutes.'),
  userId: z.string(),
  role: z.enum(EVERY_ROLE),
  mode: z.enum(['test', 'live']),
  expiresAt: z.string(),
})
