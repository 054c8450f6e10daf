import { hash } from 'node:crypto'
import { sql } from 'kysely'
import { Failure } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'

/** Period in which failed sign-ins are counted, ms. */
export const FAILURE_PERIOD_MS = 15 * 60_000
/** Maximum number of failed sign-ins in a period, for one e-mail address or user and for one client address. */
export const FAILURE_LIMITS = { user: 10, address: 100 } as const

/** What failed sign-ins are counted for. */
export interface SignInSubjects {
  /** E-mail address, or id of the user. Unknown addresses count like known ones, so that nobody can tell them apart. */
  readonly user: string
  readonly address: string
}

const KINDS = ['user', 'address'] as const

function keyOf(kind: (typeof KINDS)[number], subjects: SignInSubjects): string {
  return hash('sha256', `${kind}\0${subjects[kind]}`, 'base64url')
}

/** Throws 429 if one of the subjects has too many failed sign-ins. */
export async function assertMayTry(db: Db, subjects: SignInSubjects, nowMs: number): Promise<void> {
  for (const kind of KINDS) {
    const row = await db
      .selectFrom('sign_in_failure')
      .selectAll()
      .where('subject', '=', keyOf(kind, subjects))
      .executeTakeFirst()
    if (!row || row.count < FAILURE_LIMITS[kind] || row.since_ms + FAILURE_PERIOD_MS <= nowMs) continue
    const retryAfter = Math.max(1, Math.ceil((row.since_ms + FAILURE_PERIOD_MS - nowMs) / 1_000))
    throw new Failure('resource-exhausted', 'too many failed sign-ins: wait, then try again', {
      reason: 'too_many_sign_ins',
      retryAfter,
    })
  }
}

/** Counts a failed sign-in. */
export async function countFailure(db: Db, subjects: SignInSubjects, nowMs: number): Promise<void> {
  const expiredMs = nowMs - FAILURE_PERIOD_MS
  await db.deleteFrom('sign_in_failure').where('since_ms', '<=', expiredMs).execute()
  for (const kind of KINDS)
    await db
      .insertInto('sign_in_failure')
      .values({ subject: keyOf(kind, subjects), count: 1, since_ms: nowMs })
      .onConflict((c) => c.column('subject').doUpdateSet({ count: sql`sign_in_failure.count + 1` }))
      .execute()
}

/** Forgets the failures of a user who has signed in. */
export async function clearFailures(db: Db, subjects: SignInSubjects): Promise<void> {
  await db.deleteFrom('sign_in_failure').where('subject', '=', keyOf('user', subjects)).execute()
}
