import type { z } from 'zod'
import type { Platform } from '../../policy/platform.ts'
import type { Authority } from '../authority/authority.ts'
import type { CloudConfig } from '../foundation/config.ts'
import type { Log } from '../foundation/log.ts'
import type { ImageStore } from '../foundation/image-store.ts'
import type { AgentChannel } from '../foundation/agent-channel.ts'
import type { OutgoingHttp } from '../outgoing/outgoing-http.ts'
import type { Db } from '../persistence/database.ts'
import type { Caller, Tenant } from '../foundation/caller.ts'
import type { Package } from '../foundation/packages.ts'
import type { Serializable } from './raw-json.ts'
import type { WaitForRelease } from './lease-recall.ts'
import type { Notifier } from './notifier.ts'
import type { KeyUsage, LastSeen, VapidKeys } from '../foundation/ports.ts'
import type { Readiness } from '../foundation/readiness.ts'

export const AREAS = [
  'accounts',
  'stores',
  'catalogue',
  'offers',
  'click and collect',
  'loyalty',
  'scan and go',
  'receipts',
  'protection',
  'agents',
  'webhooks',
  'payments',
  'integrations',
  'analytics',
  'assistance',
  'customers',
] as const
export type Area = (typeof AREAS)[number]

/** With test keys these work at any package (decisions §3). */
const FREE_IN_SANDBOX: ReadonlySet<Area> = new Set(['scan and go', 'receipts', 'protection', 'agents'])

/** Who may call: holders of a key of some kind, an enrolled agent, or anyone without a key. */
export type CallerKind = 'secret' | 'publishable' | 'admin' | 'agent' | 'anyone'

/** The parts of the cloud that operations use beside the database. */
export interface Services {
  readonly platform: Platform
  readonly config: CloudConfig
  readonly log: Log
  readonly authority: Authority
  readonly agents: AgentChannel
  readonly keyUsage: KeyUsage
  readonly lastSeen: LastSeen
  readonly readiness: Readiness
  readonly images: ImageStore
  /** Push notices: `wake` says that there may be new ones. */
  readonly push: { readonly wake: () => void; readonly vapid: VapidKeys }
  /** Given after a commit that changed offers: what is due next may have changed. */
  readonly offersChanged: Notifier
  /** Given after a commit by which something became known that agents had reported on before. */
  readonly entityRegistered: Notifier
  /** Given after a commit that leaves payments or refunds to be seen to. */
  readonly paymentsDue: Notifier
  /** Requests to merchants' own systems. */
  readonly outgoing: OutgoingHttp
  /** Sends events; `wake` says that there may be new ones. `assertEvent` throws if an event or its data is not declared. */
  readonly webhooks: { readonly wake: () => void; readonly assertEvent: (event: OutgoingEvent) => void }
}

/** An event for webhooks; `protection.*` events go through cloud/protection/records/record-event.ts. */
export interface OutgoingEvent {
  type: string
  storeId: string | null
  data: Record<string, unknown>
}

/** What an operation works with. `db` is its transaction; nothing else is awaited. */
export interface Call<C extends Caller = Caller> {
  readonly operation: Operation
  readonly caller: C
  readonly db: Db
  /** The moment of the call, ms since 1970. */
  readonly nowMs: number
  readonly requestId: string
  readonly services: Services
  /** Puts an event into the outbox of this transaction. */
  emit(event: OutgoingEvent): void
  /** Names what was changed, for the audit row of this transaction; with its owner when that is not the caller. */
  changed(entityId: string, owner?: Tenant): void
  /**
   * Runs once the transaction is durable: for telling agents, never for work that must not be lost. What it
   * promises is waited for before the answer is given; it does not reject.
   */
  afterCommit(task: () => void | Promise<void>): void
  /**
   * Before anybody is refused: undoes this transaction, makes `ask` durable in one of its own, waits as that says, and
   * runs the operation once more. That second time, and in steps and jobs, it does nothing.
   */
  recallLeaseAndRetry(ask: (db: Db) => Promise<WaitForRelease>): void
}

/** What a successor of a request that died is told. */
export type Checkpoint = Readonly<Record<string, string | null>>

/**
 * What an operation works with that is too long for one transaction, or that waits for more than the database. Each step is
 * durable by itself and sends its events; the whole may be begun again after a crash and must then do no harm.
 */
export interface StepContext {
  readonly operation: Operation
  readonly caller: Caller
  readonly services: Services
  /** The same whenever this request is repeated under its Idempotency-Key, for keys to other systems; undefined without one. */
  readonly repeatKey: string | undefined
  /** Looks at what is committed. */
  read<T>(look: (call: Call) => Promise<T>): Promise<T>
  /** One transaction. */
  step<T>(change: (call: Call) => Promise<T>): Promise<T>
  /**
   * One transaction that a request makes once, however often it is repeated under its Idempotency-Key and whenever its process
   * died: a successor gets the same result, and goes on from there. At most one in an operation; the result is kept as JSON, so
   * it is ids. `isStill` false: what was done has come to nothing since, and is done anew.
   */
  once<T extends Checkpoint>(
    change: (call: Call) => Promise<T>,
    isStill?: (call: Call, made: T) => Promise<boolean>,
  ): Promise<T>
  /** Tells whoever listens how far it is. */
  progress(report: Readonly<Record<string, unknown>>): void
}

/** An answer that is made part by part while it is sent. */
export interface StreamedResponse {
  readonly contentType: string
  /** Under which name a browser keeps it. */
  readonly fileName?: string
  readonly chunks: AsyncIterable<string>
}

/** Another type of a streamed answer than JSON, for requests with this `format`. */
export interface ResponseFormat {
  readonly format: string
  readonly contentType: string
  readonly description: string
}

/** What an operation with a streamed answer works with: every part looks for itself at what is committed. */
export type ReadContext = Pick<StepContext, 'operation' | 'caller' | 'services' | 'read'>

/** How an operation takes multipart/form-data: text fields arrive as text, the file as an `UploadedFile`. */
export interface Multipart {
  readonly fileField: string
  /** Of the whole body, bytes. */
  readonly limit: number
  /** Whether it takes JSON as well. */
  readonly alsoJson: boolean
}

export interface LegacyForm {
  readonly request: z.ZodType
  readonly response: z.ZodType
  run(call: Call, input: unknown): Promise<object>
}

/** One operation of the API as the kit sees it. */
export interface Operation {
  readonly name: string
  readonly area: Area
  readonly minimumPackage: Package
  readonly summary: string
  readonly description: string
  readonly callers: readonly CallerKind[]
  /** Whether it changes anything: then it takes an Idempotency-Key and leaves an audit row. */
  readonly changes: boolean
  /** Whether a change leaves an audit row: not what agents do every few seconds. */
  readonly audited: boolean
  readonly request: z.ZodType
  readonly response: z.ZodType
  /** An example request for the documentation. */
  readonly example: Record<string, unknown>
  /** An example answer; where none is declared, one is made up from the schema. */
  readonly answer: Record<string, unknown> | undefined
  /** The `reason`s of its refusals (409) that the documentation shows. */
  readonly refusals: readonly string[]
  /** Every event that the operation emits, or a job that runs in its name (`performTask`), except `protection.*` events of `recordEvent`. */
  readonly emits: readonly string[]
  /** The answer holds a secret: a stored copy is sealed (response-sealer.ts). */
  readonly secretResponse: boolean
  /** The request itself proves who asks, so that an Idempotency-Key works without an API key. */
  readonly proofInBody: boolean
  /** Body at most, bytes. */
  readonly bodyLimit: number
  /** The older listing form over GET, or GET as the only form (`only`). */
  readonly get: LegacyForm | undefined
  readonly getOnly: boolean
  readonly multipart: Multipart | undefined
  /**
   * What of `run` takes long to compute, before its transaction and beside those of others. It looks at what is committed, and refuses
   * what `run` would refuse; a repeated request that has its answer gets that instead.
   */
  readonly prepare: ((call: Call, input: unknown) => Promise<unknown>) | undefined
  run(call: Call, input: unknown, prepared?: unknown): Promise<object>
  /** Instead of `run`: several transactions, with progress as server-sent events for who accepts them. */
  readonly steps: ((work: StepContext, input: unknown) => Promise<object>) | undefined
  /** Instead of `run`, for what changes nothing: an answer of any length. `response` describes its JSON form. */
  readonly stream: ((reading: ReadContext, input: unknown) => Promise<StreamedResponse>) | undefined
  /** In which other types it is streamed. */
  readonly formats: readonly ResponseFormat[]
}

const JSON_BODY_LIMIT = 1024 * 1024

/** An operation that still knows its types: the client's methods are made of them (client/operations.ts). */
export interface TypedOperation<N extends string, I extends z.ZodType, O extends z.ZodType> extends Operation {
  readonly name: N
  readonly request: I
  readonly response: O
}

interface Declaration<N extends string, I extends z.ZodType, O extends z.ZodType> {
  name: N
  area: Area
  minimumPackage: Package
  summary: string
  description?: string
  callers?: readonly CallerKind[]
  changes: boolean
  audited?: boolean
  request: I
  response: O
  example: z.input<I> & Record<string, unknown>
  answer?: z.input<O> & Record<string, unknown>
  refusals?: readonly string[]
  emits?: readonly string[]
  secretResponse?: boolean
  proofInBody?: boolean
  bodyLimit?: number
  get?: LegacyForm
  getOnly?: boolean
  multipart?: Multipart
  formats?: readonly ResponseFormat[]
}

type Implementation<I extends z.ZodType, O extends z.ZodType, P> =
  | {
      prepare?(call: Call, input: z.output<I>): Promise<P>
      run(call: Call, input: z.output<I>, prepared: P): Promise<Serializable<z.input<O>>>
    }
  | { steps(work: StepContext, input: z.output<I>): Promise<Serializable<z.input<O>>> }
  | { stream(reading: ReadContext, input: z.output<I>): Promise<StreamedResponse> }

/** Declares an operation. Routes, checks, documentation and tests all come from this. */
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
    secretResponse: false,
    proofInBody: false,
    bodyLimit: JSON_BODY_LIMIT,
    get: undefined,
    getOnly: false,
    multipart: undefined,
    formats: [],
    ...declaration,
    prepare: 'prepare' in declaration ? (declaration.prepare as Operation['prepare']) : undefined,
    run: 'run' in declaration ? (declaration.run as Operation['run']) : notRunDirectly,
    steps: 'steps' in declaration ? (declaration.steps as Operation['steps']) : undefined,
    stream: 'stream' in declaration ? (declaration.stream as Operation['stream']) : undefined,
  }
}

function notRunDirectly(): never {
  throw new Error('this operation is carried out in steps, or its answer is streamed')
}

/** The same operation by another name. */
export function operationAlias<const N extends string, I extends z.ZodType, O extends z.ZodType>(
  name: N,
  { name: first, ...operation }: TypedOperation<string, I, O>,
): TypedOperation<N, I, O> {
  return { ...operation, name, summary: `Another name of ${first}.` }
}

/** Declares the older GET form of a listing (decisions §1). */
export function legacyForm<I extends z.ZodType, O extends z.ZodType>(form: {
  request: I
  response: O
  run(call: Call, input: z.output<I>): Promise<Serializable<z.input<O>>>
}): LegacyForm {
  return form as unknown as LegacyForm
}

/** Whether the package gate applies to this call at all. */
export function needsPackage(operation: Operation, mode: 'test' | 'live'): boolean {
  return !(mode === 'test' && FREE_IN_SANDBOX.has(operation.area))
}
