import type { z } from 'zod'
import type { TillEvidence } from '../../../policy/journal.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Authority } from '../authority/authority.ts'
import type { Log } from '../foundation/log.ts'
import type { CloudConfig } from '../foundation/config.ts'
import type {
  ImageStore,
  AgentChannel,
  Siblings,
  IdentityProvider,
  KeyUsage,
  LastSeen,
  RequestMetrics,
  VapidKeys,
  UploadReader,
} from '../foundation/ports.ts'
import type { OutgoingHttp } from '../outgoing/outgoing-http.ts'
import type { Db, Gate } from '../persistence/database.ts'
import type { Caller, KnownCaller, Tenant, UserRole, Package } from '../foundation/caller.ts'
import type { Serializable } from './raw-json.ts'
import type { WaitForRelease, Notifier, ChangeFeed } from './notifier.ts'
import type { Multipart, ResponseFormat, StreamedResponse } from './validation.ts'
import type { Readiness } from '../foundation/readiness.ts'
import type { Area } from './fields.ts'

/** Kinds of callers; `anyone` has no key. */
export type CallerKind = 'secret' | 'publishable' | 'admin' | 'agent' | 'anyone'

/** The parts of the cloud that operations use in addition to the database. */
export interface Services {
  readonly platform: Platform
  readonly config: CloudConfig
  readonly log: Log
  readonly authority: Authority
  readonly agents: AgentChannel
  readonly siblings: Siblings | undefined
  /** Tells open pages of the console about commits. */
  readonly changes: ChangeFeed
  readonly keyUsage: KeyUsage
  /**
   * Finds a caller that was authenticated earlier, with its present rights; undefined if its key, session or agent has
   * ended.
   */
  readonly findCaller: (db: Db, caller: KnownCaller, nowMs: number) => Promise<KnownCaller | undefined>
  readonly lastSeen: LastSeen
  readonly readiness: Readiness
  readonly metrics: RequestMetrics | undefined
  readonly images: ImageStore
  readonly uploads: UploadReader
  /** `wake` starts the sender after notices were enqueued. */
  readonly push: { readonly wake: () => void; readonly vapid: VapidKeys }
  /** Notifies after a commit that changed offers. */
  readonly offersChanged: Notifier
  /**
   * Notifies after a commit that registered an item, device or similar. A job then applies reports of agents that had
   * to wait for this registration.
   */
  readonly entityRegistered: Notifier
  /**
   * Applies what a till reported to an agent. Provided by cloud/sales/tills, because journals lie below sales. False if
   * the cloud lacks something that may come later.
   */
  readonly applyTill: (
    call: Call,
    agent: { agentId: string; storeId: string },
    evidence: TillEvidence,
    storedMs: number,
  ) => Promise<boolean>
  /** Notifies after a commit that made payments or refunds due. */
  readonly paymentsDue: Notifier
  /** Undefined without OpenID Connect. */
  readonly identityProvider: IdentityProvider | undefined
  /** HTTP client for addresses that merchants configured. */
  readonly outgoing: OutgoingHttp
  /** `wake` starts the dispatcher after events were stored. `assertEvent` throws if an event is not as declared. */
  readonly webhooks: { readonly wake: () => void; readonly assertEvent: (event: OutgoingEvent) => void }
}

/** An event for webhooks; `protection.*` events go through cloud/protection/records/record-event.ts. */
export interface OutgoingEvent {
  type: string
  storeId: string | null
  data: Record<string, unknown>
}

/** Context of one call. `db` is its transaction. An operation must await only promises of `db`. */
export interface Call<C extends Caller = Caller> {
  readonly operation: Operation
  readonly caller: C
  readonly db: Db
  /** Start of the transaction, ms since 1970. */
  readonly nowMs: number
  readonly requestId: string
  readonly services: Services
  /** Stores an event in the outbox when the transaction commits. */
  emit(event: OutgoingEvent): void
  /**
   * Sets the entity of the audit row. `owner` is the tenant that owns the entity, if that tenant is not the caller's.
   */
  changed(entityId: string, owner?: Tenant): void
  /** Names a store whose open pages the change refreshes. */
  concerns(storeId: string): void
  /**
   * Runs `task` after the commit. A crash loses the task, so use it only for hints, such as messages to agents. The
   * response waits for the promise of the task, which must not reject.
   */
  afterCommit(task: () => void | Promise<void>): void
  /**
   * Rolls this transaction back, stores the recall in its own transaction, waits, and runs the operation again. Has no
   * effect in the second run, in a step or in a job.
   */
  recallLeaseAndRetry(recall: (db: Db) => Promise<WaitForRelease>): void
  /**
   * For operations with `together`: rolls this transaction back and runs the operation again, alone. Has no effect in a
   * transaction that already runs alone.
   */
  requireAlone(): void
}

/** Result of `once`: a later attempt of the same request reads the result from the database. */
export type Checkpoint = Readonly<Record<string, string | null>>

/**
 * Context of an operation that needs several transactions or waits for other systems. Each step commits and emits its
 * own events. After a crash the operation may start again, so each step must be safe to repeat.
 */
export interface StepContext {
  readonly operation: Operation
  readonly caller: Caller
  readonly services: Services
  /**
   * Key that is the same for all attempts with one Idempotency-Key. Send this key to other systems as their idempotency
   * key. Undefined if the request has no Idempotency-Key.
   */
  readonly repeatKey: string | undefined
  /** Reads committed data. */
  read<T>(look: (call: Call) => Promise<T>): Promise<T>
  /** One transaction. */
  step<T>(change: (call: Call) => Promise<T>): Promise<T>
  /**
   * One transaction that all attempts with one Idempotency-Key execute once, even after a crash. Later attempts get the
   * stored result. If `isStill` resolves to false, the stored result is no longer valid and the change runs again. An
   * operation may call `once` at most once. Return ids only, because the result is stored as JSON.
   */
  once<T extends Checkpoint>(
    change: (call: Call) => Promise<T>,
    isStill?: (call: Call, made: T) => Promise<boolean>,
  ): Promise<T>
  /** One transaction that gives back what the request holds for itself, also after the caller's rights have ended. */
  release(change: (db: Db) => Promise<void>): Promise<void>
  /** Sends a progress report, if the caller accepts server-sent events. */
  progress(report: Readonly<Record<string, unknown>>): void
}

/** Context of a streamed response. Each read sees the data that is committed at that time. */
export type ReadContext = Pick<StepContext, 'operation' | 'caller' | 'services' | 'read'>

export interface LegacyForm {
  readonly request: z.ZodType
  readonly response: z.ZodType
  run(call: Call, input: unknown): Promise<object>
}

/** One operation of the API. */
export interface Operation {
  readonly name: string
  readonly area: Area
  readonly minimumPackage: Package
  readonly summary: string
  readonly description: string
  readonly callers: readonly CallerKind[]
  /** Roles of the users who may call the operation. Empty: no user may. */
  readonly roles: readonly UserRole[]
  /** True if the operation changes data. The operation then accepts an Idempotency-Key. */
  readonly changes: boolean
  /** True if a change writes an audit row. False for calls that agents make every few seconds. */
  readonly audited: boolean
  /**
   * True if a change refreshes the open pages of the console that show its area. False for polls: a refresh by a poll
   * would delay the next one, which may be an alarm, by a second.
   */
  readonly refreshesPages: boolean
  readonly request: z.ZodType
  readonly response: z.ZodType
  /** An example request for the documentation. */
  readonly example: Record<string, unknown>
  /** Example response. Default: generated from the schema. */
  readonly answer: Record<string, unknown> | undefined
  /** The values of `reason` in the operation's 409 responses, for the documentation. */
  readonly refusals: readonly string[]
  /**
   * Events that the operation emits, directly or through `performTask`. Excludes `protection.*` events of
   * `recordEvent`.
   */
  readonly emits: readonly string[]
  /** True if the response contains a secret. The stored copy of the response is then sealed (stored-response.ts). */
  readonly secretResponse: boolean
  /**
   * The gate (group of operations) in which PostgreSQL runs this operation at the same time as others (ADR database). An
   * operation without a gate runs alone. `run` calls `requireAlone` in the cases that the reasons in ADR database do not
   * cover.
   */
  readonly together: Gate | undefined
  /**
   * True if a replica may answer with data that is a few seconds old (ADR database). Never true for operations that decide,
   * grant rights or move money. Never true for lists that callers poll by position (persistence/positions.ts).
   */
  readonly mayBeStale: boolean
  /** True if the body authenticates the caller. An Idempotency-Key then works without an API key. */
  readonly proofInBody: boolean
  /** Maximum size of the body, bytes. */
  readonly bodyLimit: number
  /** List of the request whose rows `steps` checks with `readRow`, also their texts, and refuses one by one. */
  readonly rows: string | undefined
  /** The legacy GET form of a listing. */
  readonly get: LegacyForm | undefined
  readonly getOnly: boolean
  readonly multipart: Multipart | undefined
  /**
   * Counts a try of a secret that can be guessed. Runs in a transaction of its own before `prepare` and `run`: of many
   * tries at once, none above the limit is compared. A try stays counted if the answer is 401.
   */
  readonly countTry: ((call: Call, input: unknown) => Promise<SettleTry>) | undefined
  /**
   * Expensive computation for `run`, outside of the transaction. The computation reads committed data and rejects the
   * same input as `run`. If the request already has a stored response, `perform` skips the computation.
   */
  readonly prepare: ((call: Call, input: unknown) => Promise<unknown>) | undefined
  run(call: Call, input: unknown, prepared?: unknown): Promise<object>
  /**
   * Replaces `run` if the operation needs several transactions. Callers that accept server-sent events get the
   * progress.
   */
  readonly steps: ((work: StepContext, input: unknown) => Promise<object>) | undefined
  /** Replaces `run` for reads with a response of any length. `response` describes the JSON form of the response. */
  readonly stream: ((reading: ReadContext, input: unknown) => Promise<StreamedResponse>) | undefined
  /** Content types of the stream other than JSON. */
  readonly formats: readonly ResponseFormat[]
}

const JSON_BODY_LIMIT = 1024 * 1024
/** For operations that callers without a key may call. The largest of their requests has a certificate or passkey. */
const ANONYMOUS_BODY_LIMIT = 32 * 1024

/** An operation with its types, from which the client's methods are derived (clients/typescript/exchange.ts). */
export interface TypedOperation<N extends string, I extends z.ZodType, O extends z.ZodType> extends Operation {
  readonly name: N
  readonly request: I
  readonly response: O
}

interface Declaration<N extends string, I extends z.ZodType, O extends z.ZodType> {
  name: N
  area: Area
  minimumPackage: Package
  roles: readonly UserRole[]
  summary: string
  description?: string
  callers?: readonly CallerKind[]
  changes: boolean
  audited?: boolean
  refreshesPages?: boolean
  request: I
  response: O
  example: z.input<I> & Record<string, unknown>
  answer?: z.input<O> & Record<string, unknown>
  refusals?: readonly string[]
  emits?: readonly string[]
  secretResponse?: boolean
  together?: Gate
  mayBeStale?: boolean
  proofInBody?: boolean
  bodyLimit?: number
  rows?: string
  get?: LegacyForm
  getOnly?: boolean
  multipart?: Multipart
  formats?: readonly ResponseFormat[]
}

/** Removes a counted try from the counts, because the secret was right, or was not compared. */
export type SettleTry = (db: Db, isRight: boolean) => Promise<void>

type Implementation<I extends z.ZodType, O extends z.ZodType, P> =
  | {
      countTry?(call: Call, input: z.output<I>): Promise<SettleTry>
      prepare?(call: Call, input: z.output<I>): Promise<P>
      run(call: Call, input: z.output<I>, prepared: P): Promise<Serializable<z.input<O>>>
    }
  | { steps(work: StepContext, input: z.output<I>): Promise<Serializable<z.input<O>>> }
  | { stream(reading: ReadContext, input: z.output<I>): Promise<StreamedResponse> }

/** Declares an operation. Routes, checks, documentation and tests are derived from this declaration. */
export function operation<const N extends string, I extends z.ZodType, O extends z.ZodType, P = undefined>(
  declaration: Declaration<N, I, O> & Implementation<I, O, P>,
): TypedOperation<N, I, O> {
  return {
    answer: undefined,
    refusals: [],
    description: declaration.summary,
    callers: ['secret'],
    emits: [],
    audited: declaration.changes,
    refreshesPages: true,
    secretResponse: false,
    together: undefined,
    mayBeStale: false,
    proofInBody: false,
    bodyLimit: declaration.callers?.includes('anyone') ? ANONYMOUS_BODY_LIMIT : JSON_BODY_LIMIT,
    rows: undefined,
    get: undefined,
    getOnly: false,
    multipart: undefined,
    formats: [],
    ...declaration,
    countTry: 'countTry' in declaration ? (declaration.countTry as Operation['countTry']) : undefined,
    prepare: 'prepare' in declaration ? (declaration.prepare as Operation['prepare']) : undefined,
    run: 'run' in declaration ? (declaration.run as Operation['run']) : notRunDirectly,
    steps: 'steps' in declaration ? (declaration.steps as Operation['steps']) : undefined,
    stream: 'stream' in declaration ? (declaration.stream as Operation['stream']) : undefined,
  }
}

function notRunDirectly(): never {
  throw new Error('this operation runs in steps or streams its response')
}

/** Declares another name for an operation. */
export function operationAlias<const N extends string, I extends z.ZodType, O extends z.ZodType>(
  name: N,
  { name: first, ...operation }: TypedOperation<string, I, O>,
): TypedOperation<N, I, O> {
  return { ...operation, name, summary: `Another name of ${first}.` }
}

/** Declares the legacy GET form of a listing (ADR requests). */
export function legacyForm<I extends z.ZodType, O extends z.ZodType>(form: {
  request: I
  response: O
  run(call: Call, input: z.output<I>): Promise<Serializable<z.input<O>>>
}): LegacyForm {
  return form as unknown as LegacyForm
}

/** Areas that test keys may use whatever package the merchant has (ADR accounts). */
const FREE_IN_SANDBOX: ReadonlySet<Area> = new Set(['scan and go', 'receipts', 'protection', 'agents'])

/** True if calls in this mode need the operation's package. */
export function needsPackage(operation: Operation, mode: 'test' | 'live'): boolean {
  return !(mode === 'test' && FREE_IN_SANDBOX.has(operation.area))
}
