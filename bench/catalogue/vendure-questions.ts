/** Queries for Vendure's shop API that match our operations as far as possible, each in the fastest form. */
const SEARCH = `query ($take: Int!) {
  search(input: { take: $take, groupByProduct: false }) {
    totalItems
    items { productId productVariantId slug sku productName productVariantName description currencyCode priceWithTax { ... on SinglePrice { value } } }
  }
}`

const PRODUCT =
  'query ($id: ID!) { product(id: $id) { id name slug description enabled createdAt updatedAt variants { id sku priceWithTax currencyCode } } }'

/** A page from its search index. */
export function searchBody(take: number): string {
  return JSON.stringify({ query: SEARCH, variables: { take } })
}

/** One product by its id, from 1. */
export function productBody(id: number): string {
  return JSON.stringify({ query: PRODUCT, variables: { id: String(id) } })
}
