import { z } from 'zod'
import { connector, type Page, type PushFault, type DataType } from '../connector.ts'
import { yieldToEventLoop } from '../../../platform/operations/job-steps.ts'
import { mapRecord, mappingOf, unknownTargets } from '../mapping.ts'
import { type VendorClient, VendorFault } from '../vendor-client.ts'

/** Connector for a merchant's own system, or for a bridge to a system (ADR webhooks, docs/reference/integrations.md). */

const GenericCredentials = z
  .strictObject({
    baseUrl: z.string().min(1).max(2_048),
    token: z.string().min(1).max(8_192).optional(),
    apiKey: z.string().min(1).max(8_192).optional(),
    username: z.string().min(1).max(256).optional(),
    password: z.string().max(1_024).optional(),
    mapping: z
      .record(z.string().min(1).max(120), z.string().min(1).max(60))
      .refine(
        (mapping) => unknownTargets(mapping).length === 0,
        'must map fields to fields of this API, such as {"sku": "ean"}',
      )
      .optional(),
  })
  .refine(
    (sent) => sent.username === undefined || (sent.token ?? sent.apiKey) === undefined,
    'must contain either token (or apiKey), or username and password',
  )
type GenericCredentials = z.output<typeof GenericCredentials>

/** Address of a path below the base address. Keeps the query of the base address. */
function at({ baseUrl }: GenericCredentials, path: string, query: Readonly<Record<string, string>> = {}): string {
  const url = new URL(baseUrl)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path}`
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url.href
}

function authorization({ token, apiKey, username, password }: GenericCredentials): Record<string, string> {
  const bearer = token ?? apiKey
  if (bearer !== undefined) return { authorization: `Bearer ${bearer}` }
  if (username === undefined) return {}
  return { authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` }
}

/** Records that are mapped in one turn: with a long mapping, in some 10 ms. */
const MAPPED_AT_ONCE = 500

const ListResponse = z.looseObject({ nextCursor: z.union([z.string(), z.number()]).nullish() })

function pull(
  client: VendorClient,
  credentials: GenericCredentials,
  dataType: DataType,
): (cursor: string | null) => Promise<Page> {
  const mapping = mappingOf(dataType, credentials.mapping)
  return async (cursor) => {
    const { json } = await client.send({
      method: 'GET',
      url: at(credentials, dataType, cursor === null ? {} : { cursor }),
      headers: authorization(credentials),
    })
    const answered = ListResponse.safeParse(json)
    const records = answered.success ? (answered.data[dataType] ?? answered.data['records']) : undefined
    if (!answered.success || !Array.isArray(records))
      throw new VendorFault(
        'answer_not_understood',
        `the response to GET /${dataType} is not {"${dataType}": […], "nextCursor"?}`,
      )
    const { nextCursor } = answered.data
    const next = nextCursor === undefined || nextCursor === null || nextCursor === '' ? null : String(nextCursor)
    const made: unknown[] = []
    for (let at = 0; at < records.length; at += MAPPED_AT_ONCE) {
      const some: unknown[] = records.slice(at, at + MAPPED_AT_ONCE)
      made.push(...some.map((record) => mapped(record, dataType, mapping)))
      await yieldToEventLoop()
    }
    return { records: made, next }
  }
}

function mapped(record: unknown, dataType: DataType, mapping: ReturnType<typeof mappingOf>): unknown {
  return typeof record === 'object' && record !== null && !Array.isArray(record)
    ? mapRecord(record as Record<string, unknown>, dataType, mapping)
    : null
}

/** Maps records of a request to our field names. */
export function mapRecords(
  records: readonly unknown[],
  dataType: DataType,
  written: Readonly<Record<string, string>> | undefined,
): unknown[] {
  const mapping = mappingOf(dataType, written)
  return records.map((record) => mapped(record, dataType, mapping))
}

const Fault = z.looseObject({
  index: z.int().min(0),
  field: z.string().max(120).optional(),
  code: z.string().max(60).optional(),
  message: z.string().max(300).optional(),
})
const PushAnswer = z.looseObject({ errors: z.array(Fault).max(500).optional() })

export const generic = connector<GenericCredentials>({
  name: 'generic',
  sides: ['pos', 'erp'],
  credentials: GenericCredentials,
  needs: '`baseUrl`, `token` or `username` and `password`, `mapping`?',
  addressOf: ({ baseUrl }) => baseUrl,
  sourceOf: ({ baseUrl, username }) => `${baseUrl} ${username ?? ''}`,
  connect: (credentials, client, side) => ({
    pull:
      side === 'pos'
        ? { articles: pull(client, credentials, 'articles') }
        : {
            stock: pull(client, credentials, 'stock'),
            orders: pull(client, credentials, 'orders'),
            suppliers: pull(client, credentials, 'suppliers'),
          },
    push: {
      dataTypes: undefined,
      batch: 500,
      async send(dataType, records, key): Promise<PushFault[]> {
        const headers = { ...authorization(credentials), 'idempotency-key': key }
        const { status, json } = await client.send({
          method: 'POST',
          url: at(credentials, dataType),
          headers,
          json: { records },
          repeatable: true,
          expected: [207, 422],
        })
        const answered = PushAnswer.safeParse(json ?? {})
        if (!answered.success)
          throw new VendorFault(
            'answer_not_understood',
            `the response to POST /${dataType} is not {"errors"?: [{"index", …}]}`,
          )
        const errors = answered.data.errors ?? []
        if (status === 422 && errors.length === 0)
          throw new VendorFault('system_refused', `the system responded with status 422 to POST /${dataType}`, {
            status,
          })
        if (errors.some(({ index }) => index >= records.length))
          throw new VendorFault('answer_not_understood', 'an error refers to a record that was not sent')
        return errors.map(({ index, field, code, message }) => ({
          index,
          field: field ?? '',
          code: code ?? 'refused',
          message: message ?? 'the system did not accept it',
        }))
      },
    },
  }),
})
