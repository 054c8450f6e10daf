import { newId } from '../../policy/ids.ts'
import type { Database, Db } from '../persistence/database.ts'
import { fieldsOf, prepared } from '../persistence/prepared.ts'
import type { AuditEntryRow } from '../persistence/tables/accounts.ts'
import { actorOf, type Caller } from './caller.ts'
import { Failure } from './failure.ts'
import { canonicalJson, findAnswer, findTrueAnswer, hashOf, keepAnswer, openAnswer, sealAnswer, type KeptAnswer, type RequestIdentity } from './idempotency.ts'
import { needsPackage, type Basis, type Call, type Operation, type OutgoingEvent, type Services } from './operation.ts'
import { isAtLeast } from './packages.ts'
import { errorBody } from './error-body.ts'
import { writeAnswer } from './raw-json.ts'
import { validate } from './validation.ts'

/**
 *   input ─ validate ─ package ─ [ transaction: kept answer? ─ run ─ audit ─ outbox ─ keep answer ] ─ after commit
 *
 * How every operation is carried out, whoever asks and over whatever wire (decisions §2).
 */
export interface Request {
  readonly operation: Operation
  readonly caller: Caller
  /** The parsed body, or the query of the older form. */
  readonly input: unknown
  readonly older: boolean
  readonly idempotencyKey: string | undefined
  readonly requestId: string
}

export interface Performed {
  readonly status: number
  readonly body: string
  readonly replayed: boolean
}

const NO_TENANT = '-'

/** The way of every call: caller, gate, body, repeat, transaction, answer. Never throws a Failure: it is an answer. */
export async function perform(request: Request, database: Database, services: Services): Promise<Performed> {
  const { operation, caller } = request
  const form = request.older && operation.get ? operation.get : operation
  const input = validate(form.request, request.input)
  checkAccountPackage(operation, caller)
  if (caller.kind !== 'anyone') await services.authority.ready(caller.tenant)
  if (!operation.changes) {
    const call = openCall(request, database.reads, services)
    return { status: 200, body: await answerOf(form, call.call, input, services), replayed: false }
  }
  return performChange(request, input, database, services)
}

function checkAccountPackage(operation: Operation, caller: Caller): void {
  if (caller.kind === 'anyone' || !needsPackage(operation, caller.mode)) return
  if (isAtLeast(caller.package, operation.minimumPackage)) return
  throw packageTooLow(operation, caller.package)
}

/** 403 with what the account has and what it needs. */
export function packageTooLow(operation: Operation, have: string): Failure {
  return new Failure('permission-denied', `${operation.name} needs the package ${operation.minimumPackage}`, {
    reason: 'package_too_low',
    requiredUpgrade: operation.minimumPackage,
    currentPackage: have,
  })
}

async function performChange(request: Request, input: unknown, database: Database, services: Services): Promise<Performed> {
  const { operation } = request
  const identity = identityOf(request)
  const { random } = services.platform
  let after: (() => void)[] = []
  try {
    const performed = await database.write(async (db) => {
      const nowMs = services.platform.clock.wall()
      const kept = identity && (await findKept(db, identity, request, nowMs))
      after = []
      if (kept) {
        const open = operation.secretAnswer && request.idempotencyKey !== undefined
        return { replayed: true, ...(open ? openAnswer(kept, request.idempotencyKey ?? '', random) : kept) }
      }
      const opened = openCall(request, db, services)
      const answer: KeptAnswer = { status: 200, body: await answerOf(operation, opened.call, input, services) }
      if (operation.audited) await writeAudit(db, request, opened.entityId(), nowMs, services)
      await writeOutbox(db, request.caller, opened.events, nowMs, services)
      if (identity) {
        const secret = operation.secretAnswer && request.idempotencyKey !== undefined
        await keepAnswer(db, identity, secret ? sealAnswer(answer, request.idempotencyKey ?? '', random) : answer, opened.rests(), nowMs)
      }
      after = opened.after
      return { replayed: false, ...answer }
    })
    for (const task of after) task()
    return performed
  } catch (error) {
    if (error instanceof Failure && error.extras.afterRefusal) await database.write(error.extras.afterRefusal)
    // A refused state move is an answer too: the same key must not succeed later.
    if (!(error instanceof Failure) || error.code !== 'failed-precondition' || !identity || request.idempotencyKey === undefined) throw error
    return keepRefusal(error, identity, request, database, services)
  }
}

/** Carries out work that no API call asked for, with the same transaction, audit row and outbox. */
export async function performTask(
  who: Pick<Request, 'operation' | 'caller' | 'requestId'>,
  database: Database,
  services: Services,
  work: (call: Call) => Promise<void>,
): Promise<void> {
  const request: Request = { ...who, input: {}, older: false, idempotencyKey: undefined }
  if (who.caller.kind !== 'anyone') await services.authority.ready(who.caller.tenant)
  let after: (() => void)[] = []
  await database.write(async (db) => {
    const nowMs = services.platform.clock.wall()
    const opened = openCall(request, db, services)
    await work(opened.call)
    await writeAudit(db, request, opened.entityId(), nowMs, services)
    await writeOutbox(db, request.caller, opened.events, nowMs, services)
    after = opened.after
  })
  for (const task of after) task()
}

async function keepRefusal(failure: Failure, identity: RequestIdentity, request: Request, database: Database, services: Services): Promise<Performed> {
  const answer: KeptAnswer = { status: 409, body: JSON.stringify(errorBody(failure, request.requestId)) }
  return database.write(async (db) => {
    const nowMs = services.platform.clock.wall()
    const kept = await findAnswer(db, identity, nowMs)
    if (kept) return { replayed: true, ...kept }
    await keepAnswer(db, identity, answer, { basis: [] }, nowMs)
    return { replayed: false, ...answer }
  })
}

/** What the request is known by: its Idempotency-Key, or where the operation says so its own hash. */
function identityOf({ operation, caller, input, idempotencyKey }: Request): RequestIdentity | undefined {
  if (caller.kind === 'anyone') return undefined
  const requestHash = hashOf(canonicalJson(input))
  const scope = { tenant: caller.tenant, operation: operation.name, requestHash }
  if (idempotencyKey !== undefined) return { keyHash: hashOf(`key\0${idempotencyKey}`), ...scope }
  if (!operation.answersRepeats) return undefined
  const who = caller.kind === 'agent' ? caller.agentId : 'key'
  return { keyHash: hashOf(`repeat\0${who}\0${requestHash}`), ...scope }
}

function findKept(db: Db, identity: RequestIdentity, request: Request, nowMs: number): Promise<KeptAnswer | undefined> {
  return request.idempotencyKey === undefined ? findTrueAnswer(db, identity, nowMs) : findAnswer(db, identity, nowMs)
}

interface OpenCall {
  call: Call
  events: OutgoingEvent[]
  after: (() => void)[]
  entityId(): string | null
  rests(): { basis: Basis[]; untilMs: number | undefined }
}

function openCall({ operation, caller, requestId }: Request, db: Db, services: Services): OpenCall {
  const events: OutgoingEvent[] = []
  const after: (() => void)[] = []
  const basis = new Map<string, Basis>()
  let entityId: string | null = null
  let untilMs: number | undefined
  const call: Call = {
    operation,
    caller,
    db,
    nowMs: services.platform.clock.wall(),
    requestId,
    services,
    emit: (event) => void events.push(event),
    changed: (id) => void (entityId = id),
    restsOn: (row) => void basis.set(`${row.kind} ${row.id}`, row),
    trueUntil: (ms) => void (untilMs = Math.min(untilMs ?? ms, ms)),
    afterCommit: (task) => void after.push(task),
  }
  return { call, events, after, entityId: () => entityId, rests: () => ({ basis: [...basis.values()], untilMs }) }
}

async function answerOf(form: Pick<Operation, 'run' | 'response'>, call: Call, input: unknown, { config }: Services): Promise<string> {
  const body = writeAnswer(await form.run(call, input))
  if (config.checkAnswers) form.response.parse(JSON.parse(body))
  return body
}

const insertAudit = prepared((db, p: AuditEntryRow) =>
  db.insertInto('audit_entry').values(fieldsOf(p, ['entry_id', 'tenant', 'at_ms', 'actor', 'operation', 'entity_id', 'request_id'])),
)

async function writeAudit(db: Db, request: Request, entityId: string | null, nowMs: number, { platform }: Services): Promise<void> {
  const { caller, operation, requestId } = request
  const tenant = caller.kind === 'anyone' ? NO_TENANT : caller.tenant
  const what = { operation: operation.name, entity_id: entityId, request_id: requestId }
  await insertAudit(db, { entry_id: newId('aud', platform), tenant, at_ms: nowMs, actor: actorOf(caller), ...what })
}

async function writeOutbox(db: Db, caller: Caller, events: readonly OutgoingEvent[], nowMs: number, { platform }: Services): Promise<void> {
  if (events.length === 0 || caller.kind === 'anyone') return
  const rows = events.map((event) => ({
    event_id: newId('whe', platform),
    tenant: caller.tenant,
    store_id: event.storeId,
    type: event.type,
    at_ms: nowMs,
    data: JSON.stringify(event.data),
  }))
  await db.insertInto('outbox_event').values(rows).execute()
}
