import { z } from 'zod'
import { eurosOf } from '../../operations/fields.ts'
import { connector, type Page } from '../connector.ts'
import type { VendorClient } from '../vendor-client.ts'
import { VendorFault } from '../vendor-fault.ts'
import { BaseUrlSetting, fit, grossOf, readAnswer, Secret, urlOf, VatSetting } from '../vendor-values.ts'
import { squareSales, type SquareApi } from './square-sales.ts'

/**
 * Square, Connect API v2, Square-Version 2026-09-16 (https://developer.squareup.com/reference/square): ListCatalog,
 * CreateOrder, CreatePayment, ListPayments, RefundPayment. One variation of an item is one article; categories and
 * taxes are separate objects.
 */
const VERSION = '2026-09-16'
/** Maximum number of pages of categories and taxes, 100 objects each. */
const NAMES_PAGES_LIMIT = 50

const SquareCredentials = z.strictObject({
  accessToken: Secret,
  environment: z.enum(['production', 'sandbox']).optional(),
  locationId: z.string().min(1).max(60).optional(),
  vat: VatSetting.optional(),
  baseUrl: BaseUrlSetting,
})
type SquareCredentials = z.output<typeof SquareCredentials>

const addressOf = ({ environment, baseUrl }: SquareCredentials) =>
  baseUrl ?? (environment === 'sandbox' ? 'https://connect.squareupsandbox.com' : 'https://connect.squareup.com')
const headersOf = ({ accessToken }: SquareCredentials) => ({
  authorization: `Bearer ${accessToken}`,
  'square-version': VERSION,
})

const Listed = z.looseObject({ objects: z.array(z.unknown()).optional(), cursor: z.string().nullish() })
const Category = z.looseObject({
  type: z.literal('CATEGORY'),
  id: z.string(),
  category_data: z.looseObject({ name: z.string() }),
})
const Tax = z.looseObject({
  type: z.literal('TAX'),
  id: z.string(),
  tax_data: z.looseObject({
    percentage: z.string().nullish(),
    inclusion_type: z.string().nullish(),
    enabled: z.boolean().nullish(),
  }),
})
const Money = z.looseObject({ amount: z.number().nullish(), currency: z.string().nullish() })
const Ref = z.looseObject({ id: z.string().nullish() })
const Variation = z.looseObject({
  id: z.string(),
  item_variation_data: z.looseObject({
    name: z.string().nullish(),
    upc: z.string().nullish(),
    price_money: Money.nullish(),
    location_overrides: z
      .array(z.looseObject({ location_id: z.string().nullish(), price_money: Money.nullish() }))
      .nullish(),
  }),
})
const Item = z.looseObject({
  present_at_all_locations: z.boolean().nullish(),
  present_at_location_ids: z.array(z.string()).nullish(),
  absent_at_location_ids: z.array(z.string()).nullish(),
  item_data: z.looseObject({
    name: z.string().nullish(),
    is_archived: z.boolean().nullish(),
    tax_ids: z.array(z.string()).nullish(),
    reporting_category: Ref.nullish(),
    categories: z.array(Ref).nullish(),
    variations: z.array(z.unknown()).nullish(),
  }),
})
type Item = z.output<typeof Item>

interface Names {
  categories: Map<string, string>
  taxes: Map<string, { rate: number; isIncluded: boolean }>
}

async function listPage(
  client: VendorClient,
  credentials: SquareCredentials,
  types: string,
  cursor: string | null,
): Promise<z.output<typeof Listed>> {
  const url = urlOf(addressOf(credentials), 'v2/catalog/list', { types, cursor: cursor ?? undefined })
  return readAnswer(
    Listed,
    (await client.send({ method: 'GET', url, headers: headersOf(credentials) })).json ?? {},
    'ListCatalog',
  )
}

async function readNames(client: VendorClient, credentials: SquareCredentials): Promise<Names> {
  const names: Names = { categories: new Map(), taxes: new Map() }
  let cursor: string | null = null
  for (let page = 0; page < NAMES_PAGES_LIMIT; page++) {
    const listed: z.output<typeof Listed> = await listPage(client, credentials, 'CATEGORY,TAX', cursor)
    for (const object of listed.objects ?? []) {
      const category = Category.safeParse(object).data
      if (category) names.categories.set(category.id, category.category_data.name)
      const tax = Tax.safeParse(object).data
      if (tax && tax.tax_data.enabled !== false)
        names.taxes.set(tax.id, {
          rate: Number(tax.tax_data.percentage ?? Number.NaN),
          isIncluded: tax.tax_data.inclusion_type === 'INCLUSIVE',
        })
    }
    cursor = listed.cursor ?? null
    if (cursor === null || cursor === '') return names
  }
  throw new VendorFault('answer_not_understood', 'the list of categories and taxes does not end')
}

function isSoldAt(item: Item, locationId: string | undefined): boolean {
  if (item.item_data.is_archived === true) return false
  if (locationId === undefined) return true
  if (item.present_at_all_locations === false) return item.present_at_location_ids?.includes(locationId) === true
  return item.absent_at_location_ids?.includes(locationId) !== true
}

function articlesOf(
  object: unknown,
  names: Names,
  { locationId, vat }: SquareCredentials,
): (Record<string, unknown> | null)[] {
  const item = Item.safeParse(object).data
  if (!item) return [null]
  if (!isSoldAt(item, locationId)) return []
  const { name, tax_ids, reporting_category, categories, variations } = item.item_data
  const tax = (tax_ids ?? []).map((id) => names.taxes.get(id)).find((found) => found !== undefined)
  const rate = tax?.rate ?? Number(vat ?? 19)
  const category = names.categories.get(reporting_category?.id ?? categories?.[0]?.id ?? '')
  return (variations ?? []).map((raw) => {
    const variation = Variation.safeParse(raw).data
    if (!variation) return null
    const data = variation.item_variation_data
    const money =
      data.location_overrides?.find(({ location_id }) => location_id !== undefined && location_id === locationId)
        ?.price_money ?? data.price_money
    const isPriced = typeof money?.amount === 'number' && (money.currency ?? 'EUR') === 'EUR'
    const price = isPriced ? eurosOf(money.amount ?? 0) : money?.currency
    const hasOne = (variations ?? []).length === 1
    return {
      externalProductId: variation.id,
      ean: data.upc,
      name: fit(hasOne ? name : `${name ?? ''} ${data.name ?? ''}`, 120),
      price: typeof price === 'number' && tax?.isIncluded === false ? grossOf(price, rate) : price,
      vat: rate,
      category: fit(category, 120),
    }
  })
}

function pullArticles(client: VendorClient, credentials: SquareCredentials): (cursor: string | null) => Promise<Page> {
  let names: Names | undefined
  return async (cursor) => {
    names ??= await readNames(client, credentials)
    const known = names
    const { objects, cursor: next } = await listPage(client, credentials, 'ITEM', cursor)
    return {
      records: (objects ?? []).flatMap((object) => articlesOf(object, known, credentials)),
      next: next === undefined || next === '' ? null : next,
    }
  }
}

function salesApi(client: VendorClient, credentials: SquareCredentials): SquareApi {
  const base = addressOf(credentials)
  const headers = headersOf(credentials)
  return {
    get: async (path, query) => (await client.send({ method: 'GET', url: urlOf(base, path, query), headers })).json,
    post: (path, json) =>
      client.send({ method: 'POST', url: urlOf(base, path), headers, json, repeatable: true, expected: [400] }),
  }
}

export const square = connector<SquareCredentials>({
  name: 'square',
  sides: ['pos'],
  credentials: SquareCredentials,
  needs: '`accessToken`, `locationId` (to write sales), `environment`?, `vat`?',
  addressOf,
  sourceOf: (credentials) => `${addressOf(credentials)} ${credentials.locationId ?? ''}`,
  connect: (credentials, client) => ({
    pull: { articles: pullArticles(client, credentials) },
    push: squareSales(salesApi(client, credentials), credentials.locationId),
  }),
})
