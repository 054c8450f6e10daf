/** Headers of every JSON answer: it is about one caller and one moment, so no cache keeps it, and no browser guesses its type. */
export const JSON_HEADERS = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const
