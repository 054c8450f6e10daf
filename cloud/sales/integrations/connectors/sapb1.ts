import { z } from 'zod'
import { connector, type Page, type Push, type PushFault } from '../connector.ts'
import { articlesOf, BOOKING_NEEDS, BOOKING_SETTINGS, PricesSetting, unitPrice } from '../mapping.ts'
import { odataPage, odataRows, quoted } from '../odata.ts'
import { sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import {
  type VendorAnswer,
  type VendorClient,
  type VendorRequest,
  VendorFault,
  fit,
  readAnswer,
  Secret,
  urlOf,
} from '../vendor-client.ts'

/**
 * SAP Business One, Service Layer with OData 4 (`/b1s/v2`; https://help.sap.com/docs/SAP_BUSINESS_ONE, "Working with
 * SAP Business One Service Layer"). A login returns a session cookie for 30 minutes; after 401 the connector logs in
 * again.
 */
const PAGE = 100

const SapCredentials = z.strictObject({
  baseUrl: z.string().min(1).max(2_048),
  companyDb: z.string().min(1).max(120),
  username: z.string().min(1).max(120),
  password: Secret,
  warehouse: z.string().min(1).max(20).optional(),
  cardCode: z.string().min(1).max(30).optional(),
  ...BOOKING_SETTINGS,
  prices: PricesSetting.optional(),
})
type SapCredentials = z.output<typeof SapCredentials>

const Login = z.looseObject({ SessionId: z.string().min(1) })

interface Api {
  readonly base: string
  call(request: Omit<VendorRequest, 'headers'>): Promise<unknown>
}

function serviceLayer(client: VendorClient, { baseUrl, companyDb, username, password }: SapCredentials): Api {
  const base = urlOf(baseUrl, 'b1s/v2')
  let cookie: string | undefined
  const login = async (): Promise<string> => {
    const answer = await client.send({
      method: 'POST',
      url: `${base}/Login`,
      json: { CompanyDB: companyDb, UserName: username, Password: password },
      repeatable: true,
    })
    const route = /\bROUTEID=([^;,\s]+)/.exec(answer.headers['set-cookie'] ?? '')?.[1]
    return `B1SESSION=${readAnswer(Login, answer.json, 'Login').SessionId}${route === undefined ? '' : `; ROUTEID=${route}`}`
  }
  const send = (request: Omit<VendorRequest, 'headers'>, session: string): Promise<VendorAnswer> =>
    client.send({ ...request, headers: { cookie: session, prefer: `odata.maxpagesize=${PAGE}` }, expected: [401] })
  return {
    base,
    async call(request) {
      const isNew = cookie === undefined
      cookie ??= await login()
      let answer = await send(request, cookie)
      if (answer.status === 401 && !isNew) {
        cookie = await login()
        answer = await send(request, cookie)
      }
      if (answer.status === 401)
        throw new VendorFault('credentials_refused', 'the Service Layer rejects the session (401)', { status: 401 })
      return answer.json
    },
  }
}

const text = z.string().nullish()
const Item = z.looseObject({
  ItemCode: z.string(),
  BarCode: text,
  QuantityOnStock: z.number().nullish(),
  ItemWarehouseInfoCollection: z.array(z.looseObject({ WarehouseCode: text, InStock: z.number().nullish() })).nullish(),
})
const Order = z.looseObject({
  DocEntry: z.int(),
  DocNum: z.int().nullish(),
  DocumentStatus: text,
  CardCode: text,
  DocDate: text,
  DocDueDate: text,
  DocTotal: z.number().nullish(),
  DocCurrency: text,
})
const Partner = z.looseObject({
  CardCode: z.string(),
  CardName: text,
  EmailAddress: text,
  Phone1: text,
  Country: text,
  FederalTaxID: text,
})

function stockOf(
  { QuantityOnStock, ItemWarehouseInfoCollection }: z.output<typeof Item>,
  warehouse: string | undefined,
): number {
  if (warehouse === undefined) return QuantityOnStock ?? 0
  return ItemWarehouseInfoCollection?.find(({ WarehouseCode }) => WarehouseCode === warehouse)?.InStock ?? 0
}

function pull<S extends z.ZodType>(
  { base, call }: Api,
  list: string,
  query: Record<string, string>,
  row: S,
  make: (row: z.output<S>) => Record<string, unknown>,
): (cursor: string | null) => Promise<Page> {
  return async (cursor) =>
    odataPage(await call({ method: 'GET', url: cursor ?? urlOf(base, list, query) }), base, row, make)
}

/** Returns an ISO 4217 code. Returns undefined for other currency signs. */
const currencyOf = (currency: string | null | undefined) => (/^[A-Z]{3}$/.test(currency ?? '') ? currency : undefined)

function pushTo({ base, call }: Api, credentials: SapCredentials): Push {
  const { cardCode, warehouse, prices } = credentials
  const find = async <S extends z.ZodType>(list: string, filter: string, select: string, row: S) =>
    odataRows(
      await call({ method: 'GET', url: urlOf(base, list, { $filter: filter, $top: '1', $select: select }) }),
      row,
    )
  /** Writes an order or a credit note. Both documents have the same form. */
  const write = async (
    document: 'Orders' | 'CreditNotes',
    { id, day, lines }: Pick<Transaction, 'id' | 'day' | 'lines'>,
    place: { index: number; field: string },
    more: object,
  ): Promise<PushFault | undefined> => {
    const known = await find(document, `NumAtCard eq ${quoted(id)}`, 'DocEntry', z.looseObject({ DocEntry: z.int() }))
    if (known.length > 0) return undefined
    const articles = await articlesOf(lines, place, credentials, {
      byEan: async (ean) =>
        (await find('Items', `BarCode eq ${quoted(ean)}`, 'ItemCode', z.looseObject({ ItemCode: z.string() })))[0]
          ?.ItemCode,
      byNumber: (number) => number,
    })
    if ('fault' in articles) return articles.fault
    const DocumentLines = articles.found.map(({ line, article }) => {
      const price =
        prices === 'net' ? { UnitPrice: unitPrice(line, 'net') } : { PriceAfterVAT: unitPrice(line, 'gross') }
      return {
        ItemCode: article,
        Quantity: line.quantity,
        ...price,
        ...(warehouse !== undefined && { WarehouseCode: warehouse }),
      }
    })
    await call({
      method: 'POST',
      url: `${base}/${document}`,
      json: {
        CardCode: cardCode,
        NumAtCard: id,
        ...(day !== undefined && { DocDate: day, DocDueDate: day }),
        ...more,
        DocumentLines,
      },
    })
    return undefined
  }
  const sale = (transaction: Transaction, index: number) => write('Orders', transaction, { index, field: 'items' }, {})
  const refund = (back: TransactionRefund, place: RefundPlace) =>
    write('CreditNotes', back, place, { Comments: `untag: refund of ${place.sale.id}` })
  return {
    dataTypes: ['transactions'],
    batch: 50,
    async send(_dataType, records) {
      if (cardCode === undefined)
        throw new VendorFault('system_refused', 'cardCode is required to write sales to SAP Business One')
      return sendTransactions(records, { sale, refund })
    },
  }
}

export const sapb1 = connector<SapCredentials>({
  name: 'sapb1',
  sides: ['erp'],
  credentials: SapCredentials,
  needs: `\`baseUrl\`, \`companyDb\`, \`username\`, \`password\`, \`warehouse\`?, \`cardCode\` (to write sales), ${BOOKING_NEEDS}, \`prices\`?`,
  addressOf: ({ baseUrl }) => baseUrl,
  sourceOf: ({ baseUrl, companyDb, warehouse }) => `${baseUrl} ${companyDb} ${warehouse ?? ''}`,
  connect(credentials, client) {
    const { warehouse } = credentials
    const sap = serviceLayer(client, credentials)
    const select = `ItemCode,BarCode,QuantityOnStock${warehouse === undefined ? '' : ',ItemWarehouseInfoCollection'}`
    return {
      pull: {
        stock: pull(sap, 'Items', { $filter: "InventoryItem eq 'tYES'", $select: select }, Item, (item) => ({
          externalProductId: item.ItemCode,
          ean: item.BarCode,
          quantity: stockOf(item, warehouse),
        })),
        orders: pull(
          sap,
          'PurchaseOrders',
          { $select: 'DocEntry,DocNum,DocumentStatus,CardCode,DocDate,DocDueDate,DocTotal,DocCurrency' },
          Order,
          (row) => ({
            externalId: String(row.DocEntry),
            number: row.DocNum,
            status: row.DocumentStatus,
            supplierId: row.CardCode,
            orderedAt: row.DocDate,
            expectedAt: row.DocDueDate,
            total: row.DocTotal,
            currency: currencyOf(row.DocCurrency),
          }),
        ),
        suppliers: pull(
          sap,
          'BusinessPartners',
          { $filter: "CardType eq 'cSupplier'", $select: 'CardCode,CardName,EmailAddress,Phone1,Country,FederalTaxID' },
          Partner,
          (row) => ({
            externalId: row.CardCode,
            name: fit(row.CardName, 300),
            email: row.EmailAddress,
            phone: row.Phone1,
            countryCode: row.Country,
            vatId: row.FederalTaxID,
          }),
        ),
      },
      push: pushTo(sap, credentials),
    }
  },
})
