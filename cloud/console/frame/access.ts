import type { Context } from 'hono'
import type { Language } from '../../../policy/page-language.ts'
import type { Mode, UserCaller } from '../../platform/foundation/caller.ts'
import type { Role } from '../../platform/foundation/roles.ts'
import type { OperationResult } from '../../platform/operations/call-context.ts'
import type { Operation } from '../../platform/operations/operation.ts'

/** A user as the console shows them. */
export interface ConsoleUser {
  readonly userId: string
  readonly name: string
  readonly email: string
  readonly role: Role
  readonly accountId: string
  /** Stores that the user may see; null: all stores of the account. */
  readonly storeIds: readonly string[] | null
  /** The language that the user chose; undefined: the browser's. */
  readonly language?: Language | undefined
}

/** A signed-in browser. */
export interface ConsoleSession {
  readonly user: ConsoleUser
  readonly caller: UserCaller
  /** Mode in which the session starts. */
  readonly mode: Mode
  /** False if the session may use sandbox data only. */
  readonly mayUseLive: boolean
  /** Secret that each form of this session contains. */
  readonly csrfToken: string
}

/** One call of an operation by a user. */
export interface ConsoleCall {
  readonly operation: Operation
  readonly mode: Mode
  readonly input: Record<string, unknown>
  readonly idempotencyKey: string | undefined
  readonly requestId: string
}

/** What the console needs of users and sessions. */
export interface ConsoleAccess {
  /** The session of the request's cookie; undefined if the browser is signed out. */
  sessionOf(c: Context): Promise<ConsoleSession | undefined>
  /** Performs an operation with the rights of the user. Throws a `Failure`. */
  performAs(session: ConsoleSession, call: ConsoleCall): Promise<OperationResult>
  /** The sign-in page, for every address of the console while the browser is signed out. */
  signInPage(c: Context): Promise<Response>
  /** Ends this session, or all sessions of the user. */
  signOut(c: Context, session: ConsoleSession, everywhere: boolean): Promise<void>
}
