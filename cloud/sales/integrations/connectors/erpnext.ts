import { eansOf } from '../../../shop/catalogue/ean.ts'
import { z } from 'zod'
import { connector, type Page, type Push, type PushFault } from '../connector.ts'
import { articlesOf, BOOKING_NEEDS, BOOKING_SETTINGS, PricesSetting, unitPrice } from '../mapping.ts'
import { sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { type VendorClient, VendorFault, fit, readAnswer, readRecord, Secret, urlOf } from '../vendor-client.ts'

/**
 * ERPNext over the REST API of Frappe 15 (https://docs.frappe.io/framework/user/en/api/rest). Stock is read from the
 * bins of one warehouse. EANs are in a separate table. For an item without an EAN in that table, the connector uses the
 * item code if it is a valid EAN.
 */
/** Items per page. The URL of the EAN query contains all item codes of a page, so pages stay small. */
const PAGE = 100

const ErpnextCredentials = z.strictObject({
  baseUrl: z.string().min(1).max(2_048),
  apiKey: Secret,
  apiSecret: Secret,
  warehouse: z.string().min(1).max(140),
  customer: z.string().min(1).max(140).optional(),
  ...BOOKING_SETTINGS,
  prices: PricesSetting.optional(),
})
type ErpnextCredentials = z.output<typeof ErpnextCredentials>

type Filters = readonly (readonly [string, string, unknown])[]

const Listed = z.looseObject({ data: z.array(z.unknown()) })
const Barcodes = z.looseObject({
  message: z.array(z.looseObject({ parent: z.string(), barcode: z.string() })).nullish(),
})

interface Frappe {
  list(
    doctype: string,
    fields: readonly string[],
    filters: Filters,
    page: { start: number; length: number },
  ): Promise<unknown[]>
  barcodes(filters: Filters): Promise<{ parent: string; barcode: string }[]>
  insert(doctype: string, doc: object): Promise<void>
}

function frappe(client: VendorClient, { baseUrl, apiKey, apiSecret }: ErpnextCredentials): Frappe {
  const headers = { authorization: `token ${apiKey}:${apiSecret}` }
  const get = async (path: string, query: Record<string, string>) =>
    (await client.send({ method: 'GET', url: urlOf(baseUrl, path, query), headers })).json
  return {
    async list(doctype, fields, filters, { start, length }) {
      const query = {
        fields: JSON.stringify(fields),
        filters: JSON.stringify(filters),
        order_by: 'name asc',
        limit_start: String(start),
        limit_page_length: String(length),
      }
      return readAnswer(
        Listed,
        await get(`api/resource/${encodeURIComponent(doctype)}`, query),
        `the list of ${doctype}`,
      ).data
    },
    async barcodes(filters) {
      const query = {
        doctype: 'Item Barcode',
        parent: 'Item',
        fields: '["parent","barcode"]',
        filters: JSON.stringify(filters),
        limit_page_length: '0',
      }
      return (
        readAnswer(Barcodes, await get('api/method/frappe.client.get_list', query), 'the list of Item Barcode')
          .message ?? []
      )
    },
    async insert(doctype, doc) {
      await client.send({
        method: 'POST',
        url: urlOf(baseUrl, `api/resource/${encodeURIComponent(doctype)}`),
        headers,
        json: doc,
      })
    },
  }
}

/**
 * Reads pages by offset until a page is empty. A page with fewer rows than requested is not always the last page,
 * because the server may limit the size of pages.
 */
function paged(
  read: (start: number) => Promise<{ count: number; records: unknown[] }>,
): (cursor: string | null) => Promise<Page> {
  return async (cursor) => {
    const start = Number(cursor ?? 0)
    const { count, records } = await read(start)
    return { records, next: count === 0 ? null : String(start + count) }
  }
}

const Bin = z.looseObject({ item_code: z.string(), actual_qty: z.number() })
const text = z.string().nullish()
const Order = z.looseObject({
  name: z.string(),
  supplier: text,
  status: text,
  transaction_date: text,
  schedule_date: text,
  grand_total: z.number(),
  currency: text,
})
const Supplier = z.looseObject({
  name: z.string(),
  supplier_name: text,
  country: text,
  tax_id: text,
  email_id: text,
  mobile_no: text,
})

async function readStock(
  api: Frappe,
  warehouse: string,
  start: number,
): Promise<{ count: number; records: unknown[] }> {
  const bins = await api.list('Bin', ['item_code', 'actual_qty'], [['warehouse', '=', warehouse]], {
    start,
    length: PAGE,
  })
  const codes = bins.flatMap((bin) => Bin.safeParse(bin).data?.item_code ?? [])
  const eans = new Map(
    (codes.length === 0 ? [] : await api.barcodes([['parent', 'in', codes]])).map(({ parent, barcode }) => [
      parent,
      barcode,
    ]),
  )
  const records = bins.map((bin) =>
    readRecord(Bin, bin, ({ item_code, actual_qty }) => ({
      externalProductId: item_code,
      ean: eans.get(item_code) ?? eanOf(item_code),
      quantity: actual_qty,
    })),
  )
  return { count: bins.length, records }
}

const eanOf = (code: string) => (/^\d{8,14}$/.test(code) && eansOf(code).length > 0 ? code : undefined)

function pushTo(api: Frappe, credentials: ErpnextCredentials): Push {
  const { customer, prices } = credentials
  const articles = {
    byEan: async (ean: string) => (await api.barcodes([['barcode', '=', ean]]))[0]?.parent,
    byNumber: (number: string) => number,
  }
  const has = async (doctype: string, id: string) =>
    (await api.list(doctype, ['name'], [['po_no', '=', id]], { start: 0, length: 1 })).length > 0
  const sale = async ({ id, day, lines }: Transaction, index: number): Promise<PushFault | undefined> => {
    if (await has('Sales Order', id)) return undefined
    const read = await articlesOf(lines, { index, field: 'items' }, credentials, articles)
    if ('fault' in read) return read.fault
    const items = read.found.map(({ line, article }) => ({
      item_code: article,
      qty: line.quantity,
      rate: unitPrice(line, prices),
    }))
    await api.insert('Sales Order', {
      customer,
      po_no: id,
      ...(day !== undefined && { transaction_date: day, delivery_date: day }),
      items,
    })
    return undefined
  }
  /** Writes a credit note: a Sales Invoice that is a return, with negative quantities. */
  const refund = async ({ id, day, lines }: TransactionRefund, place: RefundPlace): Promise<PushFault | undefined> => {
    if (await has('Sales Invoice', id)) return undefined
    const read = await articlesOf(lines, place, credentials, articles)
    if ('fault' in read) return read.fault
    const items = read.found.map(({ line, article }) => ({
      item_code: article,
      qty: -line.quantity,
      rate: unitPrice(line, prices),
    }))
    await api.insert('Sales Invoice', {
      customer,
      is_return: 1,
      po_no: id,
      remarks: `untag: refund of ${place.sale.id}`,
      ...(day !== undefined && { set_posting_time: 1, posting_date: day }),
      items,
    })
    return undefined
  }
  return {
    dataTypes: ['transactions'],
    batch: 50,
    async send(_dataType, records) {
      if (customer === undefined)
        throw new VendorFault('system_refused', 'customer is required to write sales to ERPNext')
      return sendTransactions(records, { sale, refund })
    },
  }
}

export const erpnext = connector<ErpnextCredentials>({
  name: 'erpnext',
  sides: ['erp'],
  credentials: ErpnextCredentials,
  needs: `\`baseUrl\`, \`apiKey\`, \`apiSecret\`, \`warehouse\`, \`customer\` (to write sales), ${BOOKING_NEEDS}, \`prices\`?`,
  addressOf: ({ baseUrl }) => baseUrl,
  sourceOf: ({ baseUrl, warehouse }) => `${baseUrl} ${warehouse}`,
  connect(credentials, client) {
    const api = frappe(client, credentials)
    const list = <S extends z.ZodType>(
      doctype: string,
      fields: readonly string[],
      filters: Filters,
      row: S,
      make: (row: z.output<S>) => Record<string, unknown>,
    ) =>
      paged(async (start) => {
        const rows = await api.list(doctype, fields, filters, { start, length: PAGE })
        return { count: rows.length, records: rows.map((raw) => readRecord(row, raw, make)) }
      })
    return {
      pull: {
        stock: paged((start) => readStock(api, credentials.warehouse, start)),
        orders: list(
          'Purchase Order',
          ['name', 'supplier', 'status', 'transaction_date', 'schedule_date', 'grand_total', 'currency'],
          [['docstatus', '<', 2]],
          Order,
          (row) => ({
            externalId: row.name,
            number: row.name,
            status: row.status,
            supplierId: row.supplier,
            orderedAt: row.transaction_date,
            expectedAt: row.schedule_date,
            total: row.grand_total,
            currency: row.currency,
          }),
        ),
        suppliers: list(
          'Supplier',
          ['name', 'supplier_name', 'country', 'tax_id', 'email_id', 'mobile_no'],
          [['disabled', '=', 0]],
          Supplier,
          (row) => ({
            externalId: row.name,
            name: fit(row.supplier_name ?? row.name, 300),
            email: row.email_id,
            phone: row.mobile_no,
            countryCode: row.country,
            vatId: row.tax_id,
          }),
        ),
      },
      push: pushTo(api, credentials),
    }
  },
})
