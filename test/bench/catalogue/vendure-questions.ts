/**
 * Queries for the shop API of Vendure that match the measured operations of untag as far as possible, each in its
 * fastest form.
 */
const SEARCH = `query ($take: Int!) {
  search(input: { take: $take, groupByProduct: false }) {
    totalItems
    items { productId productVariantId slug sku productName productVariantName description currencyCode priceWithTax { ... on SinglePrice { value } } }
  }
}`

const PRODUCT =
  'query ($id: ID!) { product(id: $id) { id name slug description enabled createdAt updatedAt variants { id sku priceWithTax currencyCode } } }'

/** Query for a page of products from the search index. */
export function searchBody(take: number): string {
  return JSON.stringify({ query: SEARCH, variables: { take } })
}

/** Query for one product by its id. Ids start at 1. */
export function productBody(id: number): string {
  return JSON.stringify({ query: PRODUCT, variables: { id: String(id) } })
}
