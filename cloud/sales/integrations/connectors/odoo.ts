import { z } from 'zod'
import { connector, type Page, type Push, type PushFault } from '../connector.ts'
import { articlesOf, BOOKING_NEEDS, BOOKING_SETTINGS, PricesSetting, unitPrice } from '../mapping.ts'
import { sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { type VendorClient, VendorFault, fit, readAnswer, readRecord, Secret, urlOf } from '../vendor-client.ts'

/**
 * Odoo: the External JSON-2 API of Odoo 19
 * (https://www.odoo.com/documentation/19.0/developer/reference/external_api.html). `api: jsonrpc` selects the older
 * JSON-RPC of Odoo 14 to 21, which Odoo 22 will remove. Lists have pages by id.
 */
const PAGE = 200

const OdooCredentials = z
  .strictObject({
    baseUrl: z.string().min(1).max(2_048),
    database: z.string().min(1).max(120).optional(),
    apiKey: Secret,
    api: z.enum(['json2', 'jsonrpc']).optional(),
    username: z.string().min(1).max(256).optional(),
    locationId: z
      .string()
      .regex(/^\d{1,9}$/, 'must be the id of a stock location')
      .optional(),
    partnerId: z
      .string()
      .regex(/^\d{1,9}$/, 'must be the id of the contact for sales')
      .optional(),
    ...BOOKING_SETTINGS,
    prices: PricesSetting.optional(),
  })
  .refine(
    (sent) => sent.api !== 'jsonrpc' || (sent.database !== undefined && sent.username !== undefined),
    'requires database and username with jsonrpc',
  )
type OdooCredentials = z.output<typeof OdooCredentials>

type Execute = (model: string, method: string, args: Record<string, unknown>, repeatable?: boolean) => Promise<unknown>

function json2(client: VendorClient, { baseUrl, database, apiKey }: OdooCredentials): Execute {
  const headers = { authorization: `bearer ${apiKey}`, ...(database !== undefined && { 'x-odoo-database': database }) }
  return async (model, method, args, repeatable = true) =>
    (
      await client.send({
        method: 'POST',
        url: urlOf(baseUrl, `json/2/${model}/${method}`),
        headers,
        json: args,
        repeatable,
      })
    ).json
}

const RpcAnswer = z.looseObject({
  result: z.unknown().optional(),
  error: z
    .looseObject({ message: z.string().optional(), data: z.looseObject({ name: z.string().optional() }).optional() })
    .optional(),
})

function jsonrpc(client: VendorClient, { baseUrl, database, username, apiKey }: OdooCredentials): Execute {
  let uid: number | undefined
  const rpc = async (service: string, method: string, args: unknown[], repeatable: boolean): Promise<unknown> => {
    const json = { jsonrpc: '2.0', method: 'call', id: 1, params: { service, method, args } }
    const { result, error } = readAnswer(
      RpcAnswer,
      (await client.send({ method: 'POST', url: urlOf(baseUrl, 'jsonrpc'), json, repeatable })).json,
      'JSON-RPC',
    )
    if (!error) return result
    const name = error.data?.name ?? ''
    const isRefused = /AccessDenied|AccessError|SessionExpired/.test(name)
    throw new VendorFault(
      isRefused ? 'credentials_refused' : 'system_refused',
      isRefused ? 'Odoo rejects the credentials' : `Odoo rejects the call (${name.slice(0, 80)})`,
    )
  }
  return async (model, method, args, repeatable = true) => {
    if (uid === undefined) {
      const found = await rpc('common', 'login', [database, username, apiKey], true)
      if (typeof found !== 'number')
        throw new VendorFault('credentials_refused', 'Odoo rejects database, username or apiKey')
      uid = found
    }
    return rpc('object', 'execute_kw', [database, uid, apiKey, model, method, [], args], repeatable)
  }
}

const Rows = z.array(z.looseObject({ id: z.int() }))

interface Reading<S extends z.ZodType> {
  model: string
  domain: unknown[]
  fields: readonly string[]
  context?: object | undefined
  row: S
  make(row: z.output<S>): Record<string, unknown>
}

function pull<S extends z.ZodType>(
  execute: Execute,
  { model, domain, fields, context, row, make }: Reading<S>,
): (cursor: string | null) => Promise<Page> {
  return async (cursor) => {
    const args = {
      domain: [...domain, ['id', '>', Number(cursor ?? 0)]],
      fields,
      limit: PAGE,
      order: 'id',
      ...(context && { context }),
    }
    const rows = readAnswer(Rows, await execute(model, 'search_read', args), `search_read of ${model}`)
    const last = rows.at(-1)?.id
    return { records: rows.map((raw) => readRecord(row, raw, make)), next: last === undefined ? null : String(last) }
  }
}

/** Odoo sends false for empty fields. */
const text = z
  .union([z.string(), z.literal(false)])
  .nullish()
  .transform((value) => (value === false || value === null ? undefined : value))
const many2one = z.union([z.tuple([z.int(), z.string()]), z.literal(false)]).nullish()
const idOf = (value: z.output<typeof many2one>) => (Array.isArray(value) ? String(value[0]) : undefined)

const STOCK = z.looseObject({ id: z.int(), barcode: text, qty_available: z.number() })
const ORDER = z.looseObject({
  id: z.int(),
  name: text,
  state: text,
  partner_id: many2one,
  date_order: text,
  date_planned: text,
  amount_total: z.number(),
  currency_id: many2one,
})
const SUPPLIER = z.looseObject({ id: z.int(), name: text, email: text, phone: text, vat: text, country_code: text })

const Ids = z.union([z.int(), z.array(z.int())])

function pushTo(execute: Execute, credentials: OdooCredentials): Push {
  const { partnerId, prices } = credentials
  const find = async (field: string, value: string) => {
    const found = await execute('product.product', 'search_read', {
      domain: [[field, '=', value]],
      fields: ['id'],
      limit: 1,
    })
    return readAnswer(Rows, found, 'search_read')[0]?.id
  }
  const counted = async (model: string, field: string, value: string) =>
    readAnswer(
      z.int(),
      await execute(model, 'search_count', { domain: [[field, '=', value]] }),
      `search_count of ${model}`,
    )
  const articles = {
    byEan: (ean: string) => find('barcode', ean),
    byNumber: (number: string) => find('default_code', number),
  }
  const create = async (model: string, vals: object) =>
    readAnswer(Ids, await execute(model, 'create', { vals_list: [vals] }, false), `create of ${model}`)
  const sale = async ({ id, completedAt, lines }: Transaction, index: number): Promise<PushFault | undefined> => {
    if ((await counted('sale.order', 'client_order_ref', id)) > 0) return undefined
    const read = await articlesOf(lines, { index, field: 'items' }, credentials, articles)
    if ('fault' in read) return read.fault
    const order_line = read.found.map(({ line, article }) => [
      0,
      0,
      { product_id: article, name: line.name, product_uom_qty: line.quantity, price_unit: unitPrice(line, prices) },
    ])
    const date_order = completedAt?.slice(0, 19).replace('T', ' ')
    await create('sale.order', {
      partner_id: Number(partnerId),
      client_order_ref: id,
      origin: 'untag',
      ...(date_order !== undefined && { date_order }),
      order_line,
    })
    return undefined
  }
  /** Writes a draft credit note (account.move of type out_refund) that an accountant posts. */
  const refund = async ({ id, day, lines }: TransactionRefund, place: RefundPlace): Promise<PushFault | undefined> => {
    if ((await counted('account.move', 'ref', id)) > 0) return undefined
    const read = await articlesOf(lines, place, credentials, articles)
    if ('fault' in read) return read.fault
    const invoice_line_ids = read.found.map(({ line, article }) => [
      0,
      0,
      { product_id: article, name: line.name, quantity: line.quantity, price_unit: unitPrice(line, prices) },
    ])
    await create('account.move', {
      move_type: 'out_refund',
      partner_id: Number(partnerId),
      ref: id,
      invoice_origin: place.sale.id,
      ...(day !== undefined && { invoice_date: day }),
      invoice_line_ids,
    })
    return undefined
  }
  return {
    dataTypes: ['transactions'],
    batch: 50,
    async send(_dataType, records) {
      if (partnerId === undefined)
        throw new VendorFault('system_refused', 'partnerId is required to write sales to Odoo')
      return sendTransactions(records, { sale, refund })
    },
  }
}

export const odoo = connector<OdooCredentials>({
  name: 'odoo',
  sides: ['erp'],
  credentials: OdooCredentials,
  needs: `\`baseUrl\`, \`apiKey\`, \`database\`?, \`api\`? (json2, jsonrpc with \`username\`), \`locationId\`?, \`partnerId\` (to write sales), ${BOOKING_NEEDS}, \`prices\`?`,
  addressOf: ({ baseUrl }) => baseUrl,
  sourceOf: ({ baseUrl, database, locationId }) => `${baseUrl} ${database ?? ''} ${locationId ?? ''}`,
  connect(credentials, client) {
    const execute = credentials.api === 'jsonrpc' ? jsonrpc(client, credentials) : json2(client, credentials)
    const context = credentials.locationId === undefined ? undefined : { location: Number(credentials.locationId) }
    return {
      pull: {
        stock: pull(execute, {
          model: 'product.product',
          domain: [['sale_ok', '=', true]],
          fields: ['id', 'barcode', 'qty_available'],
          context,
          row: STOCK,
          make: ({ id, barcode, qty_available }) => ({
            externalProductId: String(id),
            ean: barcode,
            quantity: qty_available,
          }),
        }),
        orders: pull(execute, {
          model: 'purchase.order',
          domain: [['state', '!=', 'cancel']],
          fields: ['id', 'name', 'state', 'partner_id', 'date_order', 'date_planned', 'amount_total', 'currency_id'],
          row: ORDER,
          make: (row) => ({
            externalId: String(row.id),
            number: row.name,
            status: row.state,
            supplierId: idOf(row.partner_id),
            orderedAt: row.date_order,
            expectedAt: row.date_planned,
            total: row.amount_total,
            currency: Array.isArray(row.currency_id) ? row.currency_id[1] : undefined,
          }),
        }),
        suppliers: pull(execute, {
          model: 'res.partner',
          domain: [['supplier_rank', '>', 0]],
          fields: ['id', 'name', 'email', 'phone', 'vat', 'country_code'],
          row: SUPPLIER,
          make: ({ id, name, email, phone, vat, country_code }) => ({
            externalId: String(id),
            name: fit(name, 300),
            email,
            phone,
            vatId: vat,
            countryCode: country_code,
          }),
        }),
      },
      push: pushTo(execute, credentials),
    }
  },
})
