import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { productOfArticle, readErpDocument, readStock } from '../../../../cloud/sales/integrations/apply-batch.ts'
import { findConnector } from '../../../../cloud/sales/integrations/connectors.ts'
import { mapRecord, mappingOf } from '../../../../cloud/sales/integrations/mapping.ts'
import { DATA_TYPES, ERP_SYSTEMS, POS_SYSTEMS, type Side } from '../../../../cloud/sales/integrations/connector.ts'
import { readTransaction } from '../../../../cloud/sales/integrations/transaction.ts'
import {
  type VendorAnswer,
  type VendorClient,
  VendorFault,
} from '../../../../cloud/sales/integrations/vendor-client.ts'

const GUID = '3f2504e0-4f89-11d3-9a0c-0305e82c3301'
const BASE = 'https://system.example'

/** Valid credentials of each system. */
const CREDENTIALS: Record<string, Record<string, string>> = {
  generic: { baseUrl: BASE, token: 't' },
  shopify: { shop: 'a.myshopify.com', accessToken: 't' },
  square: { accessToken: 't', locationId: 'L' },
  lightspeed: { domainPrefix: 'a', accessToken: 't' },
  clover: { merchantId: 'M', accessToken: 't' },
  sumup: { subdomain: 's', username: 'u', password: 'p' },
  odoo: { baseUrl: BASE, apiKey: 'k', partnerId: '1' },
  erpnext: { baseUrl: BASE, apiKey: 'k', apiSecret: 's', warehouse: 'w', customer: 'c' },
  businesscentral: { tenantId: GUID, clientId: GUID, clientSecret: 's', companyId: GUID, customerNumber: '1' },
  sapb1: { baseUrl: BASE, companyDb: 'd', username: 'u', password: 'p', cardCode: 'c' },
}

/** Strings that occur in responses of vendors. Random input with them passes the first checks. */
const WORDS = (
  'data articles records value elements objects result error errors message nextCursor cursor @odata.nextLink version max id name token access_token SessionId ' +
  'shop currencyCode taxesIncluded productVariants nodes pageInfo hasNextPage endCursor item_data variations price orders orderCreate userErrors order status'
).split(' ')
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom<unknown>(
      null,
      true,
      false,
      0,
      1,
      -1,
      '',
      'EUR',
      'x',
      `${BASE}/next`,
      'https://elsewhere.example/next',
    ),
    tie('object'),
    tie('array'),
  ),
  object: fc.dictionary(fc.constantFrom(...WORDS), tie('value'), { maxKeys: 6 }),
  array: fc.array(tie('value'), { maxLength: 3 }),
})).value

function answering(answers: readonly unknown[]): VendorClient {
  let n = 0
  const client: VendorClient = {
    send: async (request): Promise<VendorAnswer> => {
      if (n > 20) throw new VendorFault('system_unavailable', 'enough')
      expect(URL.canParse(request.url)).toBe(true)
      return { status: 200, headers: {}, json: answers[n++ % answers.length] }
    },
    throttledBy: (wait) => {
      for (const answer of answers)
        expect(wait({ status: 200, headers: {}, json: answer }) ?? 0).toBeGreaterThanOrEqual(0)
      return client
    },
    now: () => Date.parse('2026-11-21T08:00:00Z'),
    at: () => client,
  }
  return client
}

async function orFault<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof VendorFault)) throw error
    return undefined
  }
}

const SALE = {
  transactionId: 'pur_1',
  completedAt: '2026-11-20T08:00:00Z',
  total: 2,
  items: [{ name: 'A', ean: '4006381333931', quantity: 1, priceUnit: 2, vat: 19 }],
}
const ROWS = (['pos', 'erp'] as const).flatMap((side) =>
  [...(side === 'pos' ? POS_SYSTEMS : ERP_SYSTEMS)].map((system) => [system, side] as const),
)

describe('any response of a system', () => {
  it.each(ROWS)('%s (%s) reads it or throws a VendorFault', async (system, side: Side) => {
    const connector = findConnector(system, side)
    if (!connector) throw new Error(`${system} is not built`)
    const credentials = connector.credentials.parse(CREDENTIALS[connector.name])
    expect(new URL(connector.addressOf(credentials)).protocol).toBe('https:')
    await fc.assert(
      fc.asyncProperty(fc.array(json, { minLength: 1, maxLength: 4 }), async (answers) => {
        const { pull, push } = connector.connect(credentials, answering(answers), side)
        for (const type of DATA_TYPES[side]) {
          const page = await orFault(async () => pull[type]?.(null))
          if (page)
            expect([Array.isArray(page.records), page.next === null || typeof page.next === 'string']).toEqual([
              true,
              true,
            ])
          for (const [index, record] of (page?.records ?? []).entries()) takes(type, record, index)
        }
        const faults = await orFault(async () => push?.send('transactions', [SALE], 'key'))
        for (const fault of faults ?? []) expect(fault.index).toBe(0)
      }),
      { numRuns: 150 },
    )
  })

  function takes(type: string, record: unknown, index: number): void {
    const read =
      type === 'articles'
        ? productOfArticle(record, index, true)
        : type === 'stock'
          ? readStock(record, index)
          : readErpDocument(type as 'orders', record, index)
    const errors = 'errors' in read ? read.errors : []
    expect('errors' in read ? errors.length > 0 : true).toBe(true)
    for (const error of errors)
      expect([error.index, typeof error.code, JSON.stringify(error).includes('\\u0000')]).toEqual([
        index,
        'string',
        false,
      ])
  }

  it('accepts a record or reports its errors', () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true }),
        fc.dictionary(
          fc.constantFrom(
            'ean',
            'name',
            'price',
            'vat',
            'quantity',
            'externalId',
            'externalProductId',
            'lines',
            'address',
            '__proto__',
          ),
          fc.anything(),
        ),
        (any, fields) => {
          for (const record of [any, fields])
            for (const type of ['articles', 'stock', 'orders', 'suppliers']) takes(type, record, 3)
          const read = readTransaction(fields, 3)
          if ('fault' in read) expect(read.fault.index).toBe(3)
        },
      ),
    )
  })

  it('maps field names as in the specification, and a merchant’s mapping in either direction', () => {
    const spec = {
      article_number: '1',
      article_name: '2',
      sell_price: '3',
      tax_rate: '4',
      category: '5',
      unit: '6',
      image_url: '7',
      external_id: '8',
      receipt_number: '9',
      revenue: '10',
    }
    expect(mapRecord(spec, 'articles', mappingOf('articles'))).toEqual({
      ean: '1',
      name: '2',
      price: '3',
      vat: '4',
      category: '5',
      unit: '6',
      imageUrl: '7',
      externalProductId: '8',
    })
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{2,8}_[a-z]{2,8}$/), fc.string({ minLength: 1 }), (field, value) => {
        const record = { [field]: value, article_number: 'other' }
        expect(mapRecord(record, 'articles', mappingOf('articles', { [field]: 'ean' }))['ean']).toBe(value)
        expect(mapRecord(record, 'articles', mappingOf('articles', { ean: field }))['ean']).toBe(value)
      }),
    )
    expect(
      mapRecord(
        { constructor: 'x', a: { b: 1 } },
        'articles',
        mappingOf('articles', { 'a.b': 'price', toString: 'name' }),
      ),
    ).toEqual({ price: 1 })
  })
})
