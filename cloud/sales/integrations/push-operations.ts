import { z } from 'zod'
import { Id, Success, iso, Limit, Offset } from '../../platform/operations/fields.ts'
import { operation, type Call, type StepContext } from '../../platform/operations/operation.ts'
import { Credentials, storedCredentials, readCredentials, systemRules, SyncError, printable } from './connection.ts'
import {
  ERP_SYSTEMS,
  POS_SYSTEMS,
  canonical,
  type Side,
  type SystemName,
  type Connector,
  type Push,
  type PushedRecord,
} from './connector.ts'
import { rolesFrom, keyCaller } from '../../platform/foundation/caller.ts'
import { newId } from '../../../policy/ids.ts'
import { deadline } from '../../../policy/platform.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import { hashOf } from '../../platform/operations/idempotency.ts'
import { ownStoreOrOnly, ownStore } from '../../platform/stores/own-store.ts'
import { findConnector } from './connectors.ts'
import { findConnection, listErpRecords } from './queries.ts'
import { sandboxWarnings } from './sandbox.ts'
import { every15Seconds, vendorClient, failureOf, VendorFault } from './vendor-client.ts'
import { pageAfter, pageLimits, invalidCursor, readPageWithinText } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'

const DEFAULT_PAGE = 50

const ErpRecord = z.looseObject({ externalId: z.string(), updatedAt: z.string() })

export const fetchERPRecords = operation({
  name: 'fetchERPRecords',
  area: 'integrations',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Lists purchase orders or suppliers that syncERP has stored.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    dataType: z.enum(['orders', 'suppliers']),
    system: z.enum(ERP_SYSTEMS).describe('Default generic.').optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: z.string().optional().describe('The `nextCursor` of the previous page.'),
  }),
  response: z.strictObject({ ...Success, records: z.array(ErpRecord), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', dataType: 'suppliers' },
  answer: {
    success: true,
    records: [{ externalId: 'S-17', name: 'Lindwerk GmbH', updatedAt: '2026-11-20T09:00:00.000Z' }],
  },
  async run(call, { storeId, dataType, system = 'generic', ...paging }) {
    await ownStore(call, storeId)
    const page = pageLimits(paging, DEFAULT_PAGE)
    const after = page.after === undefined ? undefined : readCursor(dataType, page.after)
    const { items, nextCursor } = await readPageWithinText(
      (limit, last: Row<'erp_record'> | undefined) =>
        listErpRecords(call.db, storeId, dataType, canonical(system), {
          ...pageAfter({ ...page, after }, last?.external_id),
          limit,
        }),
      (row) => row.external_id,
      (row) => row.doc.length,
      page,
    )
    const records = items.map(({ doc, updated_ms }) => ({
      ...(JSON.parse(doc) as { externalId: string }),
      updatedAt: iso(updated_ms),
    }))
    return { success: true as const, records, ...(nextCursor && { nextCursor: writeCursor(dataType, nextCursor) }) }
  },
})

/** External ids have no fixed form, so the prefix distinguishes a cursor from other texts. */
function writeCursor(dataType: string, externalId: string): string {
  return Buffer.from(`${dataType}/${externalId}`).toString('base64url')
}

function readCursor(dataType: string, cursor: string): string {
  const read = Buffer.from(cursor, 'base64url').toString()
  // PostgreSQL rejects NUL characters.
  if (!read.startsWith(`${dataType}/`) || read.includes('\0')) throw invalidCursor()
  return read.slice(dataType.length + 1)
}

interface PushInput {
  system: SystemName
  storeId?: string | undefined
  dataType: string
  records: readonly PushedRecord[]
  credentials?: Credentials | undefined
}

interface Pushed {
  isSandbox: boolean
  pushed: number
  errors: SyncError[]
  warnings: string[]
}

const CALL_WITHIN_MS = 120_000
const BYTES_LIMIT = 64 * 1024 * 1024

/** Emits the event of a push. The function runs within the step that ends the call. */
type EmitPushed = (call: Call, storeId: string, pushed: Pushed) => void

/**
 * Writes records to a till or ERP system in batches. Throws 503 if the system does not respond; the caller may then
 * repeat the call with the same key.
 */
async function push(work: StepContext, side: Side, input: PushInput, announce: EmitPushed): Promise<Pushed> {
  const connector = findConnector(input.system, side)
  if (connector?.takesNoRecords !== undefined) throw invalid('system', connector.takesNoRecords, 'not_supported')
  if (keyCaller(work.caller).mode === 'test') return pushSandbox(work, input, connector, announce)
  if (!connector) throw invalid('system', `${input.system} is not available yet`, 'system_not_built')
  const { storeId, stored } = await work.read(async (call) => {
    const store = await ownStoreOrOnly(call, input.storeId)
    const row = await findConnection(call.db, { storeId: store.store_id, side, system: canonical(input.system) })
    return { storeId: store.store_id, stored: input.credentials ?? storedCredentials(call.services, row) }
  })
  if (!stored)
    throw precondition(
      'system_not_connected',
      'no credentials of this system are stored: send them, or synchronise first',
    )
  const credentials = readCredentials(connector, stored, work.services.config)
  try {
    const errors = await pushWith(work, side, connector, credentials, input)
    const failed = new Set(errors.map(({ index }) => index)).size
    const result: Pushed = { isSandbox: false, pushed: input.records.length - failed, errors, warnings: [] }
    // A call that is repeated after a crash sends the same keys again, but the event is emitted only once.
    await work.once(async (call) => {
      call.changed(storeId)
      announce(call, storeId, result)
      return {}
    })
    return result
  } catch (error) {
    throw error instanceof VendorFault ? failureOf(error) : error
  }
}

async function pushWith(
  work: StepContext,
  side: Side,
  connector: Connector,
  credentials: unknown,
  input: PushInput,
): Promise<SyncError[]> {
  const { platform, outgoing, config } = work.services
  const time = deadline(platform.timers, CALL_WITHIN_MS)
  try {
    const client = vendorClient(connector.addressOf(credentials), {
      outgoing,
      platform,
      rules: systemRules(config),
      budget: { bytes: BYTES_LIMIT, signal: time.signal },
      // An empty step extends the time for which the Idempotency-Key is reserved for this request.
      beat: every15Seconds(platform, () => work.step(async () => undefined)),
    })
    const { push: to } = connector.connect(credentials, client, side)
    checkDataType(connector, to, input.dataType)
    return await sendAll(work, to, input)
  } finally {
    time.done()
  }
}

function checkDataType(connector: Connector, to: Push | undefined, dataType: string): asserts to is Push {
  if (!to) throw invalid('system', `${connector.name} does not accept records`, 'not_supported')
  if (to.dataTypes?.includes(dataType) === false)
    throw invalid('dataType', `${connector.name} accepts only ${to.dataTypes.join(', ')}`, 'not_supported')
}

/** A repeated call computes the same batch keys, so that systems with idempotency keys write each batch once. */
async function sendAll(work: StepContext, to: Push, { dataType, records }: PushInput): Promise<SyncError[]> {
  const errors: SyncError[] = []
  const key = work.repeatKey ?? newId('psh', work.services.platform)
  for (let from = 0; from < records.length; from += to.batch) {
    const batch = records.slice(from, from + to.batch)
    const faults = await to.send(dataType, batch, hashOf(`${key} ${from}`))
    for (const { index, field, code, message } of faults) {
      const record = batch[index] ?? {}
      const externalId = printable(record['id'] ?? record['transactionId'] ?? record['externalId'])
      errors.push({ dataType, index: from + index, ean: printable(record['ean']), externalId, field, code, message })
    }
    work.progress({
      dataType,
      done: Math.min(from + to.batch, records.length),
      records: records.length,
      errors: errors.length,
    })
  }
  return errors
}

function pushSandbox(
  work: StepContext,
  input: PushInput,
  connector: Connector | undefined,
  announce: EmitPushed,
): Promise<Pushed> {
  return work.step(async (call) => {
    const store = await ownStoreOrOnly(call, input.storeId)
    const warnings = sandboxWarnings(connector, input.system, input.credentials, call)
    const result: Pushed = { isSandbox: true, pushed: input.records.length, errors: [], warnings }
    call.changed(store.store_id)
    announce(call, store.store_id, result)
    return result
  })
}

const RECORDS_LIMIT = 500
const BODY_LIMIT = 2 * 1024 * 1024

const request = {
  storeId: Id.describe('Optional if the account has exactly one store.').optional(),
  dataType: z
    .string()
    .min(1)
    .max(60)
    .regex(/^[A-Za-z][A-Za-z0-9_-]*$/)
    .describe(
      'Such as `transactions`; systems other than `generic` accept the types in docs/reference/integrations.md.',
    ),
  records: z
    .array(z.record(z.string().max(120), z.unknown()))
    .min(1)
    .max(RECORDS_LIMIT)
    .describe('Sent unchanged.'),
  credentials: Credentials.describe('Used instead of the stored credentials, and not stored.').optional(),
}

const response = z.strictObject({
  ...Success,
  _sandbox: z.literal(true).optional(),
  system: z.string(),
  pushed: z.int().describe('Records that the system accepted.'),
  errors: z.array(SyncError),
  warnings: z.array(z.string()).optional(),
})

const HOW =
  'If you repeat this call with the same Idempotency-Key, the system also receives the same keys. A repeat ' +
  'after a crash or a 503 then does nothing twice in systems that support such keys. `errors[]` contains the ' +
  'records that the system did not accept. In the sandbox nothing is sent.'

function answerOf(system: string, { isSandbox, pushed, errors, warnings }: Pushed) {
  return {
    success: true as const,
    ...(isSandbox && { _sandbox: true as const }),
    system,
    pushed,
    errors,
    ...(warnings.length > 0 && { warnings }),
  }
}

function announcing(type: string, system: string, dataType: string): EmitPushed {
  return (call, storeId, { pushed, errors }) => {
    const failed = new Set(errors.map(({ index }) => index)).size
    call.emit({ type, storeId, data: { storeId, system, dataType, pushed, ...(failed > 0 && { failed }) } })
  }
}

export const pushToPOS = operation({
  name: 'pushToPOS',
  area: 'integrations',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Writes records, such as transactions, to a till system.',
  description: HOW,
  refusals: ['system_not_connected'],
  changes: true,
  bodyLimit: BODY_LIMIT,
  request: z.strictObject({ system: z.enum(POS_SYSTEMS), ...request }),
  response,
  example: {
    system: 'generic',
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    dataType: 'transactions',
    records: [{ transactionId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', total: 49.9 }],
  },
  answer: { success: true, system: 'generic', pushed: 1, errors: [] },
  emits: ['integration.pos.pushed'],
  steps: async (work, input) =>
    answerOf(
      input.system,
      await push(work, 'pos', input, announcing('integration.pos.pushed', input.system, input.dataType)),
    ),
})

export const pushToERP = operation({
  name: 'pushToERP',
  area: 'integrations',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Writes records, such as transactions, to an ERP system.',
  description: HOW,
  refusals: ['system_not_connected'],
  changes: true,
  bodyLimit: BODY_LIMIT,
  request: z.strictObject({ system: z.enum(ERP_SYSTEMS), ...request }),
  response,
  example: {
    system: 'generic',
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    dataType: 'transactions',
    records: [{ transactionId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', total: 49.9 }],
  },
  answer: { success: true, system: 'generic', pushed: 1, errors: [] },
  emits: ['integration.erp.pushed'],
  steps: async (work, input) =>
    answerOf(
      input.system,
      await push(work, 'erp', input, announcing('integration.erp.pushed', input.system, input.dataType)),
    ),
})
