import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { newProductRow, sharedColumns, findByEans } from '../../../../cloud/shop/catalogue/queries.ts'
import { entryOf, listingsIn } from '../../../../cloud/shop/catalogue/search-queries.ts'
import { searchDocuments } from '../../../../cloud/shop/catalogue/search.ts'
import { removeListing, writeProducts, type ProductWrite } from '../../../../cloud/shop/catalogue/write-products.ts'
import { takeListingNumbers } from '../../../../cloud/platform/persistence/listing-numbers.ts'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import type { Tenant } from '../../../../cloud/platform/foundation/caller.ts'
import { newDatabase, type DatabaseKind, type TestDatabase } from '../../../support/databases.ts'

/** A store as the oracle knows it: its listings in the order in which it got them. */
interface Goods {
  ean: string
  name: string
  brand: string | undefined
}
interface Store {
  id: string
  tenant: Tenant
  listings: string[]
}

const WORDS =
  'Bio g 500 Hafer Haferdrink Hafermilch Häfele Milch Milchreis Käse Kase Käsekuchen Öl Olivenöl Straße Strasse Weiß weisse ' +
  'Müller Mueller Muller L’Oréal Crème brûlée 1 12 123 100% A Ab Abc ÄB x-y Z Éclair Smørrebrød Ελλάδα Straßenfest'
/** Words that most products have, words that few have. */
const anyWord = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('Bio', 'g', 'Milch', 'Hafer') },
  { weight: 5, arbitrary: fc.constantFrom(...WORDS.split(' ')) },
  { weight: 1, arbitrary: fc.constantFrom('Quitte', 'Rarität') },
)
const separator = fc.constantFrom(' ', ' ', ' ', '-', ', ', ' / ', ' „', '  ')
const anyName = fc.array(fc.tuple(anyWord, separator), { minLength: 1, maxLength: 5 }).map((parts) =>
  parts
    .map(([word, after]) => word + after)
    .join('')
    .trim(),
)
const anyBrand = fc.option(anyWord, { nil: undefined })
const eanOf = (n: number) => String(4_000_000_000_000 + n * 7_919)

const prefixOf = (word: string) => fc.integer({ min: 1, max: word.length }).map((n) => word.slice(0, n))
const term = fc.oneof(
  { weight: 4, arbitrary: anyWord },
  { weight: 4, arbitrary: anyWord.chain(prefixOf) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 300 }).map(eanOf).chain(prefixOf) },
  { weight: 1, arbitrary: fc.constantFrom('…', 'nichts', '!', 'MILCH', 'STRASSE', 'e') },
)
const query = fc.tuple(
  fc.array(term, { minLength: 1, maxLength: 4 }).map((terms) => terms.join(' ')),
  fc.constantFrom(1, 3, 20, 500),
)

/** Words of a text without case and accents; written without the code under test. */
function wordsIn(text: string): string[] {
  const letters = [...text.toLowerCase().replaceAll('ß', 'ss').normalize('NFD')]
  const plain = letters.filter((letter) => letter < '\u0300' || letter > '\u036f').join('')
  return plain.split(/[^\p{Letter}\p{Number}]+/u).filter((word) => word !== '')
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** The expected result: looks at every product. */
function expected(q: string, limit: number, store: Store, goods: ReadonlyMap<string, Goods>): string[] {
  const terms = [...new Set(wordsIn(q))].slice(0, 6)
  const longest = terms.reduce((best, each) => (each.length > best.length ? each : best), '')
  const ranked = store.listings.flatMap((ean, place) => {
    const { name, brand } = goods.get(ean) as Goods
    const words = [ean, ...wordsIn(name), ...wordsIn(brand ?? '')]
    if (terms.length === 0 || !terms.every((each) => words.some((word) => word.startsWith(each)))) return []
    const [begun = ''] = words.filter((word) => word.startsWith(longest)).sort(byBytes)
    return [{ ean, place, begun, whole: terms.every((each) => words.includes(each)) }]
  })
  ranked.sort((a, b) => Number(b.whole) - Number(a.whole) || byBytes(a.begun, b.begun) || a.place - b.place)
  return ranked.slice(0, limit).map(({ ean }) => ean)
}

type Step =
  | { kind: 'list'; store: number; n: number; name: string; brand: string | undefined }
  | { kind: 'rename'; n: number; name: string; brand: string | undefined }
  | { kind: 'remove'; store: number; n: number }
  | { kind: 'skip'; count: number }

const place = { store: fc.nat({ max: 2 }), n: fc.nat({ max: 250 }) }
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant('list' as const), ...place, name: anyName, brand: anyBrand }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('rename' as const), n: place.n, name: anyName, brand: anyBrand }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove' as const), ...place }) },
  // Leaves numbers out, so that the listings lie in many blocks.
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('skip' as const), count: fc.integer({ min: 1, max: 5_000 }) }),
  },
)

/** A database with three stores: two of one tenant, one of its live data. */
class Catalogue {
  readonly test: TestDatabase
  readonly stores: readonly Store[] = [
    { id: 'st_1', tenant: 'acc_1.test' as Tenant, listings: [] },
    { id: 'st_2', tenant: 'acc_1.test' as Tenant, listings: [] },
    { id: 'st_3', tenant: 'acc_1.live' as Tenant, listings: [] },
  ]
  readonly goods = new Map<string, Map<string, Goods>>([
    ['acc_1.test', new Map()],
    ['acc_1.live', new Map()],
  ])
  #made = 0

  constructor(test: TestDatabase) {
    this.test = test
  }

  async begin(): Promise<void> {
    const empty = {
      legal_name: '',
      trading_name: '',
      street: '',
      city: '',
      postal_code: '',
      country_code: 'DE',
      package: 'GROW',
    }
    const counters = {
      has_scan_and_go: 0,
      has_offers: 0,
      policy_version: 1,
      document_version: 1,
      deny_seq: 0,
      created_ms: 0,
    }
    await this.test.database.write(async (db) => {
      for (const { id, tenant } of this.stores) {
        const row = { store_id: id, tenant, ...empty, ...counters, security_tag_mode: 'none', policy: '{}' }
        await db.insertInto('store').values(row).execute()
      }
    })
  }

  run(each: Step): Promise<void> {
    return this.test.database.write((db) => this.#apply(db, each))
  }

  async #apply(db: Db, each: Step): Promise<void> {
    if (each.kind === 'skip') return void (await takeListingNumbers(db, each.count))
    const stores = each.kind === 'rename' ? this.stores : [this.stores[each.store] as Store]
    for (const tenant of new Set(stores.map((store) => store.tenant))) {
      const ean = eanOf(each.n)
      const before = (await findByEans(db, tenant, [ean])).get(ean)
      const store = stores.find((one) => one.tenant === tenant)
      const isHere = store?.listings.includes(ean) === true
      if (each.kind === 'remove') {
        if (!before || !store || !isHere) continue
        await removeListing(db, store.id, before.product_id)
        store.listings.splice(store.listings.indexOf(ean), 1)
        continue
      }
      if (each.kind === 'rename' ? !before : !store || isHere) continue
      const input = { name: each.name, brand: each.brand, price: 1, vat: 7 as const }
      const made = { tenant, ean, productId: `prd_${tenant}_${this.#made++}`, nowMs: 1 }
      const columns = sharedColumns({ name: each.name, brand: each.brand ?? null })
      const after = before ? { ...before, ...columns } : newProductRow(input as never, made)
      const listing = { store_id: store?.id ?? '', price_cent: 100, old_price_cent: null, updated_ms: 1 }
      const write: ProductWrite = {
        before,
        after,
        here: undefined,
        listing: each.kind === 'list' ? listing : undefined,
      }
      await writeProducts(db, [write])
      this.goods.get(tenant)?.set(ean, { ean, name: each.name, brand: each.brand })
      if (each.kind === 'list') store?.listings.push(ean)
    }
  }

  async found(q: string, limit: number, store: Store): Promise<string[]> {
    const documents = await searchDocuments(this.test.database.reads, store.id, q, limit)
    return documents.map((document) => (JSON.parse(document) as Goods).ean)
  }

  expected(q: string, limit: number, store: Store): string[] {
    return expected(q, limit, store, this.goods.get(store.tenant) ?? new Map())
  }

  /** Words of all listings, from the index. */
  async indexed(): Promise<string[]> {
    const { reads } = this.test.database
    const eans = new Map(
      (
        await reads
          .selectFrom('store_product')
          .innerJoin('product', 'product.product_id', 'store_product.product_id')
          .select(['store_id', 'listing_no', 'ean'])
          .execute()
      ).map(({ store_id, listing_no, ean }) => [`${store_id} ${listing_no}`, ean]),
    )
    const rows = await reads.selectFrom('product_word').selectAll().execute()
    return rows
      .flatMap((row) => {
        const listings = listingsIn(row)
        return listings.length === 0
          ? [`an empty row of ${row.word}`]
          : listings.map((no) => `${row.store_id} ${row.word} ${eans.get(`${row.store_id} ${no}`)}`)
      })
      .sort(byBytes)
  }

  expectedIndex(): string[] {
    return this.stores
      .flatMap(({ id, tenant, listings }) =>
        listings.flatMap((ean) => {
          const known = this.goods.get(tenant)?.get(ean)
          const words = new Set([ean, ...wordsIn(known?.name ?? ''), ...wordsIn(known?.brand ?? '')])
          return [...words].map((word) => `${id} ${word} ${ean}`)
        }),
      )
      .sort(byBytes)
  }
}

const KINDS: readonly DatabaseKind[] = inject('postgresUrl') === '' ? ['sqlite'] : ['sqlite', 'postgres']

describe(`search on ${KINDS.join(' and ')}`, () => {
  let catalogues: Catalogue[]
  beforeAll(async () => {
    catalogues = await Promise.all(KINDS.map(async (kind) => new Catalogue(await newDatabase(kind))))
    for (const each of catalogues) await each.begin()
  })
  afterAll(async () => {
    for (const { test } of catalogues) {
      await test.database.close()
      await test.remove()
    }
  })

  it('finds and sorts like a scan of all products, after any changes of the catalogue', async () => {
    const steps = fc.array(step, { minLength: 60, maxLength: 300, size: 'max' })
    await fc.assert(
      fc.asyncProperty(steps, fc.array(query, { minLength: 40, maxLength: 40 }), async (changes, queries) => {
        for (const catalogue of catalogues) {
          for (const each of changes) await catalogue.run(each)
          expect(await catalogue.indexed()).toEqual(catalogue.expectedIndex())
          for (const [q, limit] of queries)
            for (const store of catalogue.stores)
              expect([q, limit, await catalogue.found(q, limit, store)]).toEqual([
                q,
                limit,
                catalogue.expected(q, limit, store),
              ])
        }
      }),
      { numRuns: 2, endOnFailure: true },
    )
  })

  it('reads few blocks for frequent words, and finds a rare word among them', async () => {
    const rows = Array.from({ length: 300 }, (_, block) => ({ store_id: 'st_9', block }))
    const half = (from: number) => {
      const places = Array.from({ length: 2_048 }, (_, i) => entryOf(from + i * 2))
      return places.join('')
    }
    for (const { test } of catalogues) {
      await test.database.write(async (db) => {
        for (const [word, products] of [
          ['eins', half(0)],
          ['zwei', half(1)],
          ['beide', half(0)],
          ['selten', entryOf(8)],
        ] as const)
          for (const row of word === 'selten' ? rows.slice(299) : rows) {
            await db
              .insertInto('product_word')
              .values({ ...row, word, products })
              .execute()
          }
      })
      const search = async (q: string) => {
        let [statements, blocks] = [0, 0]
        const { reads } = test.database
        const counted = reads.withPlugin({
          transformQuery: ({ node }) => node,
          transformResult: async ({ result }) => {
            statements++
            blocks += JSON.stringify(result.rows).length
            return result
          },
        })
        await searchDocuments(counted, 'st_9', q, 20)
        return { statements, blocks }
      }
      // 300 blocks of two words hold 1.2 million listings; the first window holds enough results.
      const both = await search('eins beide')
      expect(both.statements).toBeLessThan(5)
      expect(both.blocks).toBeLessThan(80_000)
      const rare = await search('selten beide')
      expect(rare.statements).toBeLessThan(8)
      expect(rare.blocks).toBeLessThan(40_000)
      expect((await search('eins zwei')).statements).toBeLessThan(12)
    }
  })
})
