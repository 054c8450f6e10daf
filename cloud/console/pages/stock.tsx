import type { z } from 'zod'
import type { Product } from '../../shop/catalogue/schema.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchStock, setStock } from '../../shop/stock/operations.ts'
import { Card, EmptyState } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { Results, Pagination, Table } from '../components/table.tsx'
import { ProductSearch, productsFound, productsOfStores } from '../components/product-search.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { NO_FORM, type FormFields } from '../frame/form.ts'
import { storeName } from '../components/all-stores.tsx'
import {
  rowsOfLists,
  rowsOfStores,
  storeColumn,
  storesByName,
  type ListOfStore,
  type OfStore,
} from '../components/rows-of-stores.tsx'
import { fetchProduct } from '../../shop/catalogue/operations.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Level = z.output<typeof fetchStock.response>['stock'][number]

/** A product and its counted stock; undefined if it is not counted. */
interface Row {
  readonly product: Pick<Product, 'productId' | 'name' | 'ean'>
  readonly level: Level | undefined
}

/** What the page shows: found products, or all of the store. */
interface StockView {
  /** Instead of `rows`, while all stores are chosen. */
  readonly ofStores?: readonly OfStore<Row>[]
  readonly rows: readonly Row[]
  readonly total: number | undefined
  readonly nextCursor: string | undefined
}

/** Fields of a product: the typed number, and the one that the page showed. The product id follows. */
const COUNTED = 'counted-'
const BEFORE = 'before-'
/** Products on a page. The page reads the stock of each. */
const PAGE = 20

/** Stock of a store: search, count, correct. */
export const stockPage = page<StockView>({
  path: '/console/stock',
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'operations', icon: 'stock' },
  title: (texts) => texts.stock.title,
  lead: (at) => (at.store && at.has(rolesFrom('associate')) ? at.texts.stock.lead : at.texts.stock.leadOfViewer),
  actions: {
    set: {
      operation: setStock,
      roles: rolesFrom('associate'),
      input: (form, at) => countedIn(form).map((counted) => ({ storeId: at.store?.storeId, ...counted })),
      done: (texts) => texts.stock.saved,
    },
  },
  async load(at) {
    if (!at.store) return stockOfStores(at)
    const { storeId } = at.store
    const { products, total, nextCursor } = await productsFound(at, PAGE)
    const rows = await Promise.all(
      products.map(async (product) => {
        const found = await at.run(fetchStock, { storeId, productId: product.productId })
        return { product, level: found.stock[0] }
      }),
    )
    return { rows, total, nextCursor }
  },
  view(at) {
    const t = at.texts.stock
    const { rows, ofStores, total, nextCursor } = at.data
    const isSearch = at.query.has('q')
    return (
      <>
        <ProductSearch at={at} texts={t} />
        <Results>
          <Card flush>
            {ofStores ? (
              <LevelsOfStores at={at} rows={ofStores} />
            ) : rows.length === 0 ? (
              <EmptyState icon="stock" title={isSearch ? t.nothingFound : t.nothing}>
                {isSearch ? t.nothingFoundText : t.nothingText}
              </EmptyState>
            ) : (
              <Levels at={at} rows={rows} />
            )}
          </Card>
          <Pagination at={at} shown={(ofStores ?? rows).length} total={total} nextCursor={nextCursor} />
        </Results>
      </>
    )
  },
})

/** The counted products of all stores; of a search, where the found products are counted. */
async function stockOfStores(at: PageContext): Promise<StockView> {
  const isSearch = (at.query.get('q')?.trim() ?? '') !== ''
  const products = new Map<string, Row['product'] | undefined>()
  const named = async ({ stock, nextCursor }: z.output<typeof fetchStock.response>) => {
    const rows: Row[] = []
    for (const level of stock) {
      const { productId } = level
      // A product that is gone has no name.
      if (!products.has(productId)) products.set(productId, await at.runIfAllowed(fetchProduct, { productId }))
      const product = products.get(productId)
      if (product) rows.push({ product, level })
    }
    return { rows, ...(nextCursor !== undefined && { nextCursor }) }
  }
  const listOf = (storeId: string, about: { limit: number; cursor?: string; productId?: string }) =>
    at.run(fetchStock, { storeId, ...about }).then(named)
  const found = isSearch
    ? await rowsOfLists(at, await listsOfSearch(at, products, listOf))
    : await rowsOfStores(at, ({ storeId, ...about }) => listOf(storeId, about))
  return { rows: [], ofStores: found.rows, total: undefined, nextCursor: found.nextCursor }
}

/** A list for each found product and store: at most one row. */
async function listsOfSearch(
  at: PageContext,
  products: Map<string, Row['product'] | undefined>,
  listOf: (storeId: string, about: { limit: number; productId: string }) => ReturnType<ListOfStore<Row>['read']>,
): Promise<ListOfStore<Row>[]> {
  const storeIds = storesByName(at)
  const found = await productsOfStores(at, storeIds, PAGE)
  for (const product of found) products.set(product.productId, product)
  return found.flatMap(({ productId }) =>
    storeIds.map((storeId) => ({
      name: `${productId}-${storeId}`,
      storeId,
      read: ({ limit }) => listOf(storeId, { limit, productId }),
    })),
  )
}

/** Columns of both tables: the product, and the pieces that are reserved and available. */
function columnsOf(at: ViewContext) {
  const t = at.texts.stock
  const pieces = (count: number | null | undefined) =>
    typeof count === 'number' ? at.formats.number(count) : undefined
  const product = {
    label: t.product,
    kind: 'head' as const,
    cell: ({ product: { name, ean } }: Row) => (
      <>
        {name}
        <span class="sub">{ean}</span>
      </>
    ),
  }
  const counts = [
    { label: t.reserved, kind: 'number' as const, cell: ({ level }: Row) => pieces(level?.reserved) },
    { label: t.available, kind: 'number' as const, cell: ({ level }: Row) => pieces(level?.available) },
  ]
  return { product, counts, pieces }
}

/** Where products are counted. */
function LevelsOfStores({ at, rows }: { at: ViewContext; rows: readonly OfStore<Row>[] }) {
  const t = at.texts.stock
  const { product, counts, pieces } = columnsOf(at)
  if (rows.length === 0)
    return (
      <EmptyState icon="stock" title={t.nothingCounted}>
        {t.nothingCountedText}
      </EmptyState>
    )
  return (
    <Table
      caption={t.title}
      rows={rows}
      columns={[
        product,
        ...storeColumn(at),
        { label: t.inStore, kind: 'number', cell: ({ level }) => pieces(level?.quantity) },
        ...counts,
        {
          label: t.pieces,
          kind: 'actions',
          cell: ({ product: { name, ean }, storeId }) => (
            <a
              class="button"
              href={`${at.path}?${new URLSearchParams({ store: storeId, q: ean })}`}
              aria-label={`${at.texts.today.open}: ${name}, ${storeName(at, storeId)}`}
            >
              {at.texts.today.open}
            </a>
          ),
        },
      ]}
    />
  )
}

/**
 * The products whose number was changed. An emptied field stays a text, which the operation rejects. What it rejects
 * comes first, so that a form with a wrong number saves nothing.
 */
function countedIn(form: FormFields): { productId: string; quantity: number | string }[] {
  const counted = form.names().flatMap((name) => {
    if (!name.startsWith(COUNTED)) return []
    const productId = name.slice(COUNTED.length)
    if (form.text(name) === form.text(`${BEFORE}${productId}`)) return []
    return [{ productId, quantity: form.number(name) ?? '' }]
  })
  const isRight = ({ quantity }: { quantity: unknown }) => Number.isInteger(quantity) && Number(quantity) >= 0
  return counted.toSorted((a, b) => Number(isRight(a)) - Number(isRight(b)))
}

/** One table with a field for each product, and one button for all of them. */
function Levels({ at, rows }: { at: ViewContext; rows: readonly Row[] }) {
  const t = at.texts.stock
  const mayCount = at.has(rolesFrom('associate'))
  const { product, counts, pieces } = columnsOf(at)
  const table = (
    <Table
      caption={t.title}
      rows={rows}
      columns={[
        product,
        {
          label: t.inStore,
          kind: 'number',
          cell: ({ level }) => (isCounted(level) ? pieces(level?.quantity) : t.notCounted),
        },
        ...counts,
        ...(mayCount ? [{ label: t.pieces, cell: (row: Row) => <Count at={at} row={row} /> }] : []),
      ]}
    />
  )
  if (!mayCount) return table
  return (
    <ActionForm at={at} action="set">
      {table}
      <div class="form-foot kept-in-view">
        <Submit>{t.save}</Submit>
      </div>
    </ActionForm>
  )
}

const isCounted = (level: Level | undefined) => typeof level?.quantity === 'number'

/** The counted pieces of a product, with the number that the page showed before. */
function Count({ at, row: { product, level } }: { at: ViewContext; row: Row }) {
  const t = at.texts.stock
  const { productId, name } = product
  const field = `${COUNTED}${productId}`
  const before = level?.quantity?.toString() ?? ''
  const typed = at.form.values[field] ?? before
  const isWrong = at.form.id !== undefined && typed !== before && !/^\d{1,9}$/.test(typed)
  return (
    <div class="count">
      <input type="hidden" name={`${BEFORE}${productId}`} value={before} />
      <TextField
        form={{ ...NO_FORM, values: at.form.values, errors: isWrong ? { [field]: t.piecesRule } : {} }}
        name={field}
        label={`${t.pieces}: ${name}`}
        isLabelSpoken
        value={before}
        inputmode="numeric"
        maxlength={10}
      />
    </div>
  )
}
