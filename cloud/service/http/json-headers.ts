/** Headers of JSON responses: no caching and no sniffing of the type. */
export const JSON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const
