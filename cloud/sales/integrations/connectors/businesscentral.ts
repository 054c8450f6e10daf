import { z } from 'zod'
import { connector, type Page, type Push, type PushFault, type TransactionLine } from '../connector.ts'
import { articlesOf, BOOKING_NEEDS, BOOKING_SETTINGS, PricesSetting, unitPrice } from '../mapping.ts'
import { odataPage, odataRows, quoted } from '../odata.ts'
import { sendTransactions, type RefundPlace, type Transaction } from '../transaction.ts'
import type { TransactionRefund } from '../transaction-refunds.ts'
import { type VendorClient, VendorFault, BaseUrlSetting, fit, readAnswer, Secret, urlOf } from '../vendor-client.ts'

/**
 * Dynamics 365 Business Central, API v2.0
 * (https://learn.microsoft.com/dynamics365/business-central/dev-itpro/api-reference/v2.0): items, purchaseOrders,
 * vendors, salesOrders, salesCreditMemos. Logs in with client credentials at Microsoft Entra.
 */
const HOST = 'https://api.businesscentral.dynamics.com'
const LOGIN_HOST = 'https://login.microsoftonline.com'
const SCOPE = 'https://api.businesscentral.dynamics.com/.default'
const PAGE = 500
/** Maximum length of an external document number. */
const NUMBER_LENGTH = 35

const guid = z.string().regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'must be a GUID')
const BcCredentials = z.strictObject({
  tenantId: guid,
  clientId: guid,
  clientSecret: Secret,
  environment: z
    .string()
    .regex(/^[A-Za-z0-9-]{1,60}$/, 'must consist of letters, digits and hyphens')
    .optional(),
  companyId: guid,
  customerNumber: z.string().min(1).max(20).optional(),
  ...BOOKING_SETTINGS,
  prices: PricesSetting.optional(),
  baseUrl: BaseUrlSetting,
})
type BcCredentials = z.output<typeof BcCredentials>

const addressOf = ({ baseUrl }: BcCredentials) => baseUrl ?? HOST

interface Api {
  /** Address of the company in the API. */
  readonly base: string
  get(url: string): Promise<unknown>
  post(path: string, json: object): Promise<unknown>
}

function api(client: VendorClient, credentials: BcCredentials): Api {
  const { tenantId, clientId, clientSecret, environment, companyId, baseUrl } = credentials
  const base = urlOf(
    addressOf(credentials),
    `v2.0/${tenantId}/${environment ?? 'Production'}/api/v2.0/companies(${companyId})`,
  )
  let token: string | undefined
  const login = async (): Promise<string> => {
    const host = baseUrl ?? LOGIN_HOST
    const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret, scope: SCOPE }
    const { json, status } = await client.at(host).send({
      method: 'POST',
      url: urlOf(host, `${tenantId}/oauth2/v2.0/token`),
      form,
      repeatable: true,
      expected: [400],
    })
    if (status === 400)
      throw new VendorFault('credentials_refused', 'Microsoft Entra rejects tenantId, clientId or clientSecret', {
        status,
      })
    return readAnswer(z.looseObject({ access_token: z.string().min(1) }), json, 'the login').access_token
  }
  const headers = async () => ({
    authorization: `Bearer ${(token ??= await login())}`,
    prefer: `odata.maxpagesize=${PAGE}`,
  })
  return {
    base,
    get: async (url) => (await client.send({ method: 'GET', url, headers: await headers() })).json,
    post: async (path, json) =>
      (await client.send({ method: 'POST', url: `${base}/${path}`, headers: await headers(), json })).json,
  }
}

const text = z.string().nullish()
/** Business Central stores year 1 for missing dates. */
const date = text.transform((value) => (value === null || value?.startsWith('0001-') === true ? undefined : value))
const Item = z.looseObject({ id: z.string(), number: z.string(), gtin: text, inventory: z.number() })
const Order = z.looseObject({
  id: z.string(),
  number: z.string(),
  status: text,
  orderDate: date,
  requestedReceiptDate: date,
  vendorNumber: text,
  totalAmountIncludingTax: z.number().nullish(),
  currencyCode: text,
})
const Vendor = z.looseObject({
  number: z.string(),
  displayName: text,
  email: text,
  phoneNumber: text,
  country: text,
  taxRegistrationNumber: text,
})

function pull<S extends z.ZodType>(
  { base, get }: Api,
  list: string,
  query: Record<string, string>,
  row: S,
  make: (row: z.output<S>) => Record<string, unknown>,
): (cursor: string | null) => Promise<Page> {
  return async (cursor) => odataPage(await get(cursor ?? urlOf(base, list, query)), base, row, make)
}

const Numbered = z.looseObject({ number: z.string() })

function pushTo({ base, get, post }: Api, credentials: BcCredentials): Push {
  const { customerNumber, prices } = credentials
  const find = async (list: string, filter: string) =>
    odataRows(await get(urlOf(base, list, { $filter: filter, $top: '1', $select: 'number' })), Numbered)
  const has = async (list: string, number: string) =>
    (await find(list, `externalDocumentNumber eq ${quoted(number)}`)).length > 0
  const articles = {
    byEan: async (ean: string) => (await find('items', `gtin eq ${quoted(ean)}`))[0]?.number,
    byNumber: (number: string) => number,
  }
  const lineOf = ({ line, article }: { line: TransactionLine; article: string }) => ({
    lineType: 'Item',
    lineObjectNumber: article,
    quantity: line.quantity,
    unitPrice: unitPrice(line, prices),
  })
  const sale = async ({ id, day, lines }: Transaction, index: number): Promise<PushFault | undefined> => {
    const externalDocumentNumber = id.slice(0, NUMBER_LENGTH)
    if (await has('salesOrders', externalDocumentNumber)) return undefined
    const read = await articlesOf(lines, { index, field: 'items' }, credentials, articles)
    if ('fault' in read) return read.fault
    await post('salesOrders', {
      customerNumber,
      externalDocumentNumber,
      ...(day !== undefined && { orderDate: day }),
      salesOrderLines: read.found.map(lineOf),
    })
    return undefined
  }
  const refund = async ({ id, day, lines }: TransactionRefund, place: RefundPlace): Promise<PushFault | undefined> => {
    const externalDocumentNumber = id.slice(0, NUMBER_LENGTH)
    if (await has('salesCreditMemos', externalDocumentNumber)) return undefined
    const read = await articlesOf(lines, place, credentials, articles)
    if ('fault' in read) return read.fault
    await post('salesCreditMemos', {
      customerNumber,
      externalDocumentNumber,
      ...(day !== undefined && { creditMemoDate: day }),
      salesCreditMemoLines: read.found.map(lineOf),
    })
    return undefined
  }
  return {
    dataTypes: ['transactions'],
    batch: 50,
    async send(_dataType, records) {
      if (customerNumber === undefined)
        throw new VendorFault('system_refused', 'customerNumber is required to write sales to Business Central')
      return sendTransactions(records, { sale, refund })
    },
  }
}

export const businesscentral = connector<BcCredentials>({
  name: 'businesscentral',
  sides: ['erp'],
  credentials: BcCredentials,
  needs: `\`tenantId\`, \`clientId\`, \`clientSecret\`, \`companyId\`, \`environment\`? (Production), \`customerNumber\` (to write sales), ${BOOKING_NEEDS}, \`prices\`?`,
  addressOf,
  sourceOf: (credentials) =>
    `${addressOf(credentials)} ${credentials.tenantId} ${credentials.environment ?? ''} ${credentials.companyId}`,
  connect(credentials, client) {
    const bc = api(client, credentials)
    return {
      pull: {
        stock: pull(
          bc,
          'items',
          { $filter: "type eq 'Inventory' and blocked eq false", $select: 'id,number,gtin,inventory' },
          Item,
          ({ number, gtin, inventory }) => ({
            externalProductId: number,
            ean: gtin,
            quantity: inventory,
          }),
        ),
        orders: pull(
          bc,
          'purchaseOrders',
          {
            $select:
              'id,number,status,orderDate,requestedReceiptDate,vendorNumber,totalAmountIncludingTax,currencyCode',
          },
          Order,
          (row) => ({
            externalId: row.number,
            number: row.number,
            status: row.status,
            supplierId: row.vendorNumber,
            orderedAt: row.orderDate,
            expectedAt: row.requestedReceiptDate,
            total: row.totalAmountIncludingTax,
            currency: row.currencyCode,
          }),
        ),
        suppliers: pull(
          bc,
          'vendors',
          { $select: 'number,displayName,email,phoneNumber,country,taxRegistrationNumber' },
          Vendor,
          (row) => ({
            externalId: row.number,
            name: fit(row.displayName, 300),
            email: row.email,
            phone: row.phoneNumber,
            countryCode: row.country,
            vatId: row.taxRegistrationNumber,
          }),
        ),
      },
      push: pushTo(bc, credentials),
    }
  },
})
