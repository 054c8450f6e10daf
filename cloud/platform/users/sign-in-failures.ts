import { hash } from 'node:crypto'
import { sql } from 'kysely'
import { Failure } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'

/** Period in which failed sign-ins are counted, ms. */
export const FAILURE_PERIOD_MS = 15 * 60_000
/** Maximum number of failed sign-ins in a period: of one user, for one e-mail address, and of one client address. */
export const FAILURE_LIMITS = { user: 10, email: 10, address: 100 } as const

/** What failed sign-ins are counted for. */
export interface SignInSubjects {
  /** User or credential, if the caller named one. A success clears these failures. */
  readonly user?: string
  /**
   * E-mail address. Unknown addresses count like known ones, so that callers cannot tell them apart. A success does not clear
   * these failures, because a user of another account may have the same address.
   */
  readonly email?: string
  readonly address: string
}

const KINDS = ['user', 'email', 'address'] as const
type Kind = (typeof KINDS)[number]

const keyOf = (kind: Kind, subject: string) => hash('sha256', `${kind}\0${subject}`, 'base64url')

/** The counters of the subjects. */
const countersOf = (subjects: Partial<SignInSubjects>): { kind: Kind; key: string }[] =>
  KINDS.flatMap((kind) => {
    const subject = subjects[kind]
    return subject === undefined ? [] : [{ kind, key: keyOf(kind, subject) }]
  })

/** Throws 429 if one of the subjects has too many failed sign-ins. */
export async function assertMayTry(db: Db, subjects: SignInSubjects, nowMs: number): Promise<void> {
  for (const { kind, key } of countersOf(subjects)) {
    const row = await db.selectFrom('sign_in_failure').selectAll().where('subject', '=', key).executeTakeFirst()
    if (!row || row.count < FAILURE_LIMITS[kind] || row.since_ms + FAILURE_PERIOD_MS <= nowMs) continue
    throw tooManySignIns(row.since_ms, nowMs)
  }
}

const tooManySignIns = (sinceMs: number, nowMs: number) =>
  new Failure('resource-exhausted', 'too many failed sign-ins: wait, then try again', {
    reason: 'too_many_sign_ins',
    retryAfter: Math.max(1, Math.ceil((sinceMs + FAILURE_PERIOD_MS - nowMs) / 1_000)),
  })

/**
 * Counts a failed sign-in, or a wrong guess in a sign-in that succeeded. Returns the 429 that the caller must get
 * instead if others at the same time reached the limit first, so that more tries at once tell no more.
 */
export async function countFailure(
  db: Db,
  subjects: Partial<SignInSubjects>,
  nowMs: number,
): Promise<Failure | undefined> {
  const expiredMs = nowMs - FAILURE_PERIOD_MS
  await db.deleteFrom('sign_in_failure').where('since_ms', '<=', expiredMs).execute()
  let refusal: Failure | undefined
  for (const { kind, key } of countersOf(subjects)) {
    const row = await db
      .insertInto('sign_in_failure')
      .values({ subject: key, count: 1, since_ms: nowMs })
      .onConflict((c) => c.column('subject').doUpdateSet({ count: sql`sign_in_failure.count + 1` }))
      .returning(['count', 'since_ms'])
      .executeTakeFirstOrThrow()
    if (row.count > FAILURE_LIMITS[kind]) refusal ??= tooManySignIns(row.since_ms, nowMs)
  }
  return refusal
}

/** Forgets the failures of a user who has signed in. */
export async function clearFailures(db: Db, { user }: { readonly user: string }): Promise<void> {
  await db.deleteFrom('sign_in_failure').where('subject', '=', keyOf('user', user)).execute()
}
