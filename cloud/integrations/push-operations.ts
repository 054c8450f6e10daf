import { z } from 'zod'
import { Id, Success } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { Credentials } from './connection.ts'
import { push, type EmitPushed, type Pushed } from './push.ts'
import { SyncError } from './sync-error.ts'
import { ERP_SYSTEMS, POS_SYSTEMS } from './systems.ts'
import { rolesFrom } from '../foundation/roles.ts'

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
