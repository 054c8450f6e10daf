import type { z } from 'zod'
import { fetchProducts, searchProducts } from '../../shop/catalogue/operations.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchStock, setStock } from '../../shop/stock/operations.ts'
import { Card, EmptyState } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { FilterBar, Results, Pagination, List } from '../components/table.tsx'
import { ActionForm, formId } from '../components/form.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Level = z.output<typeof fetchStock.response>['stock'][number]
type Product = z.output<typeof fetchProducts.response>['products'][number]

/** A product and its counted stock; undefined if it is not counted. */
interface Row {
  readonly product: Pick<Product, 'productId' | 'name' | 'ean'>
  readonly level: Level | undefined
}

/** What the page shows: found products, or all of the store. */
interface StockView {
  readonly rows: readonly Row[]
  readonly total: number | undefined
  readonly nextCursor: string | undefined
}

/** Products on a page. The page reads the stock of each. */
const PAGE = 20

/** Stock of a store: search, count, correct. */
export const stockPage = page<StockView>({
  path: '/console/stock',
  roles: rolesFrom('viewer'),
  scope: 'store',
  navigation: { group: 'operations', icon: 'stock' },
  title: (texts) => texts.stock.title,
  lead: (at) => at.texts.stock.lead,
  actions: {
    set: {
      operation: setStock,
      roles: rolesFrom('associate'),
      input: (form, at) => ({
        storeId: at.store?.storeId,
        productId: form.text('productId'),
        quantity: form.number('quantity'),
      }),
      done: (texts) => texts.stock.saved,
    },
  },
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const { products, total, nextCursor } = await productsOf(at, storeId)
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
    const { rows, total, nextCursor } = at.data
    const isSearch = at.query.has('q')
    return (
      <>
        <FilterBar at={at} apply={t.find}>
          <TextField
            form={NO_FORM}
            name="q"
            type="search"
            label={t.search}
            hint={t.searchHint}
            value={at.query.get('q') ?? ''}
            maxlength={120}
          />
        </FilterBar>
        <Results>
          <Card flush>
            {rows.length === 0 ? (
              <EmptyState icon="stock" title={isSearch ? t.nothingFound : t.nothing}>
                {isSearch ? t.nothingFoundText : t.nothingText}
              </EmptyState>
            ) : (
              <List>
                {rows.map((row) => (
                  <StockRow at={at} row={row} />
                ))}
              </List>
            )}
          </Card>
          <Pagination at={at} shown={rows.length} total={total} nextCursor={nextCursor} />
        </Results>
      </>
    )
  },
})

async function productsOf(at: PageContext, storeId: string) {
  const q = at.query.get('q')?.trim() ?? ''
  if (q !== '') {
    const { products } = await at.run(searchProducts, { storeId, q: q.slice(0, 120), limit: PAGE })
    return { products, total: undefined, nextCursor: undefined }
  }
  const cursor = at.query.get('cursor') ?? undefined
  const found = await at.run(fetchProducts, { storeId, limit: PAGE, ...(cursor !== undefined && { cursor }) })
  return { products: found.products, total: found.total, nextCursor: found.nextCursor }
}

function StockRow({ at, row: { product, level } }: { at: ViewContext; row: Row }) {
  const t = at.texts.stock
  const about = { productId: product.productId }
  const own = at.form.id === formId('set', about) ? at.form : NO_FORM
  const form = own.errors['quantity'] === undefined ? own : { ...own, errors: { quantity: t.piecesRule } }
  const { number } = at.formats
  return (
    <li>
      <div>
        <strong>{product.name}</strong>
        <span class="sub">{product.ean}</span>
        <span class="sub">
          {level?.quantity === undefined || level.quantity === null
            ? t.notCounted
            : t.levels(number(level.quantity), number(level.reserved), number(level.available ?? 0))}
        </span>
      </div>
      {at.has(rolesFrom('associate')) ? (
        <ActionForm at={at} action="set" about={about}>
          <div class="row bottom-aligned count">
            <TextField
              form={form}
              name="quantity"
              id={`quantity-${product.productId}`}
              label={t.pieces}
              value={level?.quantity?.toString()}
              inputmode="numeric"
              maxlength={10}
              required
            />
            <button type="submit" class="button" aria-label={`${t.save}: ${product.name}`}>
              {t.save}
            </button>
          </div>
        </ActionForm>
      ) : null}
    </li>
  )
}
