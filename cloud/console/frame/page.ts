import type { Child } from 'hono/jsx'
import type { z } from 'zod'
import type { Language } from '../../../policy/page-language.ts'
import type { Mode, UserCaller, UserRole } from '../../platform/foundation/caller.ts'
import type { Operation, TypedOperation } from '../../platform/operations/operation.ts'
import type { fetchOpenTasks, TaskKind } from '../../sales/store-operations/open-tasks.ts'
import type { StoreName } from '../../platform/stores/schema.ts'
import type { ConsoleTexts } from '../texts/catalogue.ts'
import type { Formats } from '../texts/texts.ts'
import type { FormFields, FormState } from './form.ts'
import type { Context } from 'hono'
import type { performStream } from '../../platform/operations/perform.ts'
import type { OperationResult } from '../../platform/operations/call-context.ts'

/** A user as the console shows them. */
export interface ConsoleUser {
  readonly userId: string
  readonly name: string
  readonly email: string
  readonly role: UserRole
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
interface ConsoleCall {
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
  /** Counts a page of the user. Throws 429 if there were too many. */
  takePage(session: ConsoleSession): void
  /** Performs an operation with the rights of the user. Throws a `Failure`. */
  performAs(session: ConsoleSession, call: ConsoleCall): Promise<OperationResult>
  /** Like `performAs`, for operations that stream a file. */
  streamAs(session: ConsoleSession, call: ConsoleCall): ReturnType<typeof performStream>
  /** The sign-in page, for every address of the console while the browser is signed out. */
  signInPage(c: Context): Promise<Response>
  /** Ends this session, or all sessions of the user. */
  signOut(c: Context, session: ConsoleSession, everywhere: boolean): Promise<void>
}

/** Groups of the navigation, in their order. */
export const NAVIGATION_GROUPS = ['work', 'platform', 'operations', 'goods', 'developers', 'settings'] as const
type NavigationGroup = (typeof NAVIGATION_GROUPS)[number]

/** Name of an icon in components/icons.tsx. */
export type IconName =
  | 'today'
  | 'alarm'
  | 'check'
  | 'chat'
  | 'orders'
  | 'stock'
  | 'people'
  | 'user'
  | 'money'
  | 'device'
  | 'store'
  | 'chart'
  | 'settings'
  | 'more'
  | 'warning'
  | 'info'
  | 'down'
  | 'out'
  | 'language'
  | 'tag'
  | 'key'
  | 'hook'
  | 'code'
  | 'history'
  | 'recall'
  | 'product'
  | 'offer'
  | 'gift'
  | 'shield'

/** One entry of each kind of task. */
export type OpenTasks = z.output<typeof fetchOpenTasks.response>['tasks']

/** Stores in which something waits. */
export type BusyStores = NonNullable<z.output<typeof fetchOpenTasks.response>['stores']>

/** What loaders and views know about a request. */
export interface PageContext {
  readonly user: ConsoleUser
  readonly mode: Mode
  /** False if the session may see sandbox data only. */
  readonly mayUseLive: boolean
  /** Stores that the user may see, at most `STORES_LIMIT`. */
  readonly stores: readonly StoreName[]
  /** Number of all stores that the user may see. */
  readonly storesTotal: number
  /** The chosen store. Undefined: all stores. A page with the scope `store` is then not drawn. */
  readonly store: StoreName | undefined
  readonly language: Language
  readonly texts: ConsoleTexts
  readonly formats: Formats
  readonly nowMs: number
  /** Base URL of the API, under which agents and programs reach this cloud. */
  readonly cloudUrl: string
  /** Path of the page, without a query. */
  readonly path: string
  readonly query: URLSearchParams
  /** Values of `:name` in the path. */
  readonly params: Readonly<Record<string, string>>
  /** What waits for a person in the chosen store, or in all stores. */
  readonly tasks: OpenTasks
  /** The stores in which something waits, with what; only while all stores are chosen. */
  readonly busyStores: BusyStores
  /** True if the person runs the cloud: there are no stores, and no sandbox. */
  readonly isOfPlatform: boolean
  /** True if the user has one of these roles. */
  has(roles: readonly UserRole[]): boolean
  /** True if there is a page at this path that the user may open. */
  opens(path: string): boolean
  /** Calls an operation with the rights of the user. Throws a `Failure`. */
  run<I extends z.ZodType, O extends z.ZodType>(
    operation: TypedOperation<string, I, O>,
    input: z.input<I> & Record<string, unknown>,
  ): Promise<z.output<O>>
  /** Like `run`; undefined if the role of the user or the package of the store does not allow the operation. */
  runIfAllowed<I extends z.ZodType, O extends z.ZodType>(
    operation: TypedOperation<string, I, O>,
    input: z.input<I> & Record<string, unknown>,
  ): Promise<z.output<O> | undefined>
}

/** What a view draws. */
export interface ViewContext<D = unknown> extends PageContext {
  readonly data: D
  /** State of the form that was sent and rejected. */
  readonly form: FormState
  readonly csrfToken: string
  /** A new Idempotency-Key for a form. */
  newKey(): string
}

type ActionInput = Record<string, unknown>

/** A button or form of a page. It calls one operation. */
export interface PageAction {
  /** A function, if the address names the operation. It throws 404 if there is none. */
  readonly operation: Operation | ((at: PageContext) => Operation)
  /** Roles that may use it. Default: all roles of the page. */
  readonly roles?: readonly UserRole[]
  /**
   * Request of the operation. The operation validates it, so values may be missing or wrong. A list is one call each, in
   * its order; the first refusal ends it.
   */
  input(
    form: FormFields,
    at: PageContext,
  ): ActionInput | readonly ActionInput[] | Promise<ActionInput | readonly ActionInput[]>
  /** The message after success in the mode of the form. Empty: none, because the answer says it. */
  done(texts: ConsoleTexts, mode: Mode): string
  /** What the form says if nothing has the id or code that was entered. Default: the entry no longer exists. */
  notFound?(texts: ConsoleTexts): string
  /** Address to show after success. Default: the page itself. */
  next?(result: Record<string, unknown>, at: PageContext): string
  /**
   * Draws the answer instead of the page, for secrets that are shown once, and for a look at what a change would do. The
   * browser is then not redirected. `sent`: the form, and the request of the operation, the last one of a list.
   */
  show?(result: Record<string, unknown>, at: ViewContext, sent: { form: FormFields; input: ActionInput }): Child
  /** True if `show` draws with what the page loads, in `at.data`, and with the sent values, in `at.form`. */
  readonly showsWithData?: boolean
  /**
   * Of an operation that answers with a file: its name, and whether the text of a short file contains nothing. The form
   * then says `notFound` instead.
   */
  readonly download?: {
    name(input: ActionInput, day: string): string
    isNothing(text: string): boolean
  }
  /** Field of the form for a path in the request that has an error. Default: the first part of the path. */
  fieldOf?(path: string): string
}

/** One page of the console. Add it to pages/registry.ts. */
export interface ConsolePage<D = unknown> {
  /** Path such as `/console/agents` or `/console/orders/:orderId`. */
  readonly path: `/console${string}`
  readonly roles: readonly UserRole[]
  /**
   * `store`: the page shows one store, and asks for it while all are chosen. `stores`: it shows one store or all of
   * them. `account`: it needs no store.
   */
  readonly scope: 'store' | 'stores' | 'account'
  /** Place in the navigation; undefined: the page is not in it. */
  readonly navigation?: {
    readonly group: NavigationGroup
    readonly icon: IconName
    /** Tasks that are done on the page. The navigation shows how many wait. */
    readonly tasks?: readonly TaskKind[]
  }
  /** Topics after whose changes the page's live regions reload, see `liveRoute` in console.tsx. */
  readonly live?: readonly string[]
  readonly actions?: Readonly<Record<string, PageAction>>
  /** Operation whose file the forms of the page may contain. Roles that may not call it send no files. */
  readonly upload?: Pick<Operation, 'multipart' | 'roles'>
  /** A file with what the page lists, at the page's address with `?file`. */
  readonly file?: {
    name(at: PageContext): string
    /** Its content type. Default: CSV. */
    readonly type?: 'application/json'
    /** Its text: CSV (RFC 4180), or of its type. */
    text(at: PageContext): Promise<string>
  }
  title(texts: ConsoleTexts): string
  /** A sentence below the title. */
  lead?(at: ViewContext<D>): string | undefined
  load(at: PageContext): Promise<D>
  view(at: ViewContext<D>): Child
}

/** Declares a page. `D` is what `load` returns and `view` draws. */
export function page<D>(declaration: ConsolePage<D>): ConsolePage {
  return declaration as ConsolePage
}
