import { fetchProducts, searchProducts } from '../../shop/catalogue/operations.ts'
import type { Product } from '../../shop/catalogue/schema.ts'
import { NO_FORM } from '../frame/form.ts'
import type { PageContext } from '../frame/page.ts'
import { TextField } from './fields.tsx'
import { FilterBar } from './table.tsx'

/** Maximum length of a search, characters. */
const SEARCH_LIMIT = 120
/** Maximum number of stores whose products a search in all stores reads. */
const STORES_SEARCHED = 20

export interface FoundProducts {
  readonly products: readonly Product[]
  readonly total?: number | undefined
  readonly nextCursor?: string | undefined
}

/** The products of the chosen store that the address asks for: by a search (`q`), else a page of all of a category. */
export async function productsFound(at: PageContext, limit: number): Promise<FoundProducts> {
  const storeId = at.store?.storeId ?? ''
  const q = at.query.get('q')?.trim() ?? ''
  if (q !== '') return at.run(searchProducts, { storeId, q: q.slice(0, SEARCH_LIMIT), limit })
  const category = at.query.get('category')?.slice(0, SEARCH_LIMIT)
  const cursor = at.query.get('cursor') ?? undefined
  const filter = { ...(category !== undefined && { category }), ...(cursor !== undefined && { cursor }) }
  return at.run(fetchProducts, { storeId, limit, ...filter })
}

/** The products that the search of the address (`q`) finds in the first stores; empty without a search. */
export async function productsOfStores(
  at: PageContext,
  storeIds: readonly string[],
  limit: number,
): Promise<readonly Product[]> {
  const q = at.query.get('q')?.trim().slice(0, SEARCH_LIMIT) ?? ''
  const products = new Map<string, Product>()
  for (const storeId of storeIds.slice(0, STORES_SEARCHED)) {
    if (q === '' || products.size >= limit) break
    const found = await at.run(searchProducts, { storeId, q, limit })
    for (const product of found.products) products.set(product.productId, product)
  }
  return [...products.values()].slice(0, limit)
}

/** The field of the search. */
export function ProductSearch({
  at,
  texts,
}: {
  at: PageContext
  texts: { find: string; search: string; searchHint: string }
}) {
  return (
    <FilterBar at={at} apply={texts.find}>
      <TextField
        form={NO_FORM}
        name="q"
        type="search"
        label={texts.search}
        hint={texts.searchHint}
        value={at.query.get('q') ?? ''}
        maxlength={SEARCH_LIMIT}
      />
    </FilterBar>
  )
}
