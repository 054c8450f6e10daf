import type { VendorAnswer, VendorRequest } from './vendor-server.ts'

/**
 * The part of OData 4 that a simulated list needs: `$select`, `$filter` with equalities joined by "and", `$top`, and
 * pages by `$skip`.
 */
export type OdataRow = Readonly<Record<string, unknown>>

/** Answers a list request; `linkTo` makes the address of the next page. */
export function odataList(
  rows: readonly OdataRow[],
  request: VendorRequest,
  pageSize: number,
  linkTo: (query: string) => string,
  refuse: (message: string) => VendorAnswer,
): VendorAnswer {
  const { query } = request
  const select = query.get('$select')?.split(',')
  const [known] = rows
  const unknown = select?.find((field) => known !== undefined && !(field in known))
  if (unknown !== undefined) return refuse(`Could not find a property named '${unknown}'`)
  const terms = (query.get('$filter') ?? '').split(' and ').filter((term) => term !== '')
  const wanted = terms.map((term) => /^(\w+) eq (?:'((?:[^']|'')*)'|(true|false))$/.exec(term))
  if (wanted.some((term) => term === null || (known !== undefined && !((term[1] ?? '') in known))))
    return refuse('The $filter is not understood')
  const found = rows.filter((row) =>
    wanted.every(
      (term) =>
        row[term?.[1] ?? ''] ===
        (term?.[3] === undefined ? (term?.[2] ?? '').replaceAll("''", "'") : term[3] === 'true'),
    ),
  )
  const skip = Number(query.get('$skip') ?? 0)
  const top = Number(query.get('$top') ?? found.length)
  const requestedSize = Number(/odata\.maxpagesize=(\d+)/.exec(request.headers['prefer'] ?? '')?.[1] ?? pageSize)
  const size = Math.min(requestedSize === 0 ? found.length : requestedSize, pageSize, top)
  const page = found.slice(skip, skip + size)
  const next = new URLSearchParams(query)
  next.set('$skip', String(skip + size))
  const hasMore = skip + size < Math.min(found.length, query.has('$top') ? skip + top : found.length)
  const value = page.map((row) => (select ? Object.fromEntries(select.map((field) => [field, row[field]])) : row))
  return {
    status: 200,
    body: { '@odata.context': '$metadata#list', value, ...(hasMore && { '@odata.nextLink': linkTo(next.toString()) }) },
  }
}
