/** The sentence of an error. Where several addresses were tried Node's has none of its own, and that of `fetch` says nothing. */
export function whatWentWrong(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(whatWentWrong).join(', ')
  if (!(error instanceof Error)) return String(error)
  if (error instanceof TypeError && error.cause !== undefined) return whatWentWrong(error.cause)
  return error.message === '' ? error.name : error.message
}
