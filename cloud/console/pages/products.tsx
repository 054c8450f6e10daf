import { rolesFrom } from '../../platform/foundation/caller.ts'
import { insertProduct } from '../../shop/catalogue/product-operations.ts'
import type { Product } from '../../shop/catalogue/schema.ts'
import { Picture } from '../components/alarm-card.tsx'
import { Badge, Card, EmptyState } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { productInput, ProductFields } from '../components/product-fields.tsx'
import { ProductSearch, productsFound, type FoundProducts } from '../components/product-search.tsx'
import { Pagination, Results, Table } from '../components/table.tsx'
import { page, type PageContext } from '../frame/page.ts'

/** Products on a page. */
const PAGE_SIZE = 25
/** Page of a product. */
export const productHref = (productId: string) => `/console/products/${productId}`

/** The range of a store: find a product, see its price, open it. */
export const productsPage = page<FoundProducts>({
  path: '/console/products',
  roles: rolesFrom('viewer'),
  scope: 'store',
  navigation: { group: 'goods', icon: 'product' },
  title: (texts) => texts.products.title,
  lead: (at) => at.texts.products.lead(at.store?.tradingName ?? ''),
  load: (at) => productsFound(at, PAGE_SIZE),
  view(at) {
    const t = at.texts.products
    const { products, total, nextCursor } = at.data
    const category = at.query.has('q') ? undefined : (at.query.get('category') ?? undefined)
    const isFiltered = at.query.has('q') || category !== undefined
    return (
      <>
        {at.opens('/console/products/new') ? (
          <div class="row page-actions">
            <a class="button main" href="/console/products/new">
              {t.add}
            </a>
            <a class="button" href="/console/products/import">
              {t.importFile}
            </a>
          </div>
        ) : null}
        <ProductSearch at={at} texts={t} />
        <Results>
          {category === undefined ? null : (
            <p class="row">
              <Badge tone="info">{t.inCategory(category)}</Badge>
              <a class="button" href={at.path}>
                {t.allCategories}
              </a>
            </p>
          )}
          <Card flush>
            {products.length === 0 ? (
              <EmptyState icon="product" title={isFiltered ? t.nothingFound : t.nothing}>
                {isFiltered ? t.nothingFoundText : t.nothingText}
              </EmptyState>
            ) : (
              <Range at={at} products={products} />
            )}
          </Card>
          <Pagination at={at} shown={products.length} total={total} nextCursor={nextCursor} />
        </Results>
      </>
    )
  },
})

function Range({ at, products }: { at: PageContext; products: readonly Product[] }) {
  const t = at.texts.products
  return (
    <Table
      caption={t.title}
      rows={products}
      columns={[
        {
          label: t.product,
          kind: 'head',
          cell: ({ productId, name, ean, brand, imageUrl }) => (
            <a class="goods" href={productHref(productId)}>
              <Picture url={imageUrl} />
              <span>
                {name}
                <span class="sub">{[brand, ean].filter(Boolean).join(' · ')}</span>
              </span>
            </a>
          ),
        },
        {
          label: t.category,
          cell: ({ category }) =>
            category === undefined ? null : (
              <a class="button quiet" href={`${at.path}?${new URLSearchParams({ category })}`}>
                {category}
              </a>
            ),
        },
        {
          label: t.priceIn,
          kind: 'number',
          cell: ({ price, oldPrice }) => (
            <span>
              {at.formats.money(price)}
              {oldPrice === undefined ? null : <s class="sub">{at.formats.money(oldPrice)}</s>}
            </span>
          ),
        },
        { label: t.tag, cell: ({ tagged }) => (tagged ? <Badge tone="ok">{t.yes}</Badge> : <Badge>{t.no}</Badge>) },
      ]}
    />
  )
}

/** The form of a new product of the chosen store. */
export const newProductPage = page<undefined>({
  path: '/console/products/new',
  roles: rolesFrom('manager'),
  scope: 'store',
  title: (texts) => texts.products.addTitle,
  lead: (at) => at.texts.products.addLead(at.store?.tradingName ?? ''),
  actions: {
    add: {
      operation: insertProduct,
      input: (form, at) => ({
        storeId: at.store?.storeId,
        ean: form.text('ean') ?? '',
        ...productInput(form, undefined),
      }),
      done: (texts) => texts.products.added,
      next: ({ productId }) => productHref(String(productId)),
    },
  },
  load: () => Promise.resolve(undefined),
  view(at) {
    const t = at.texts.products
    return (
      <Card>
        <ActionForm at={at} action="add">
          <TextField
            form={at.form}
            name="ean"
            label={t.ean}
            hint={t.eanHint}
            value={at.query.get('ean') ?? ''}
            maxlength={200}
            required
          />
          <ProductFields at={at} form={at.form} />
          <div class="form-foot">
            <Submit>{t.addButton}</Submit>
            <a class="button" href="/console/products">
              {t.back}
            </a>
          </div>
        </ActionForm>
      </Card>
    )
  },
})
