/** Text of an error. Uses the cause for errors of `fetch`, and the single errors when several addresses failed. */
export function whatWentWrong(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(whatWentWrong).join(', ')
  if (!(error instanceof Error)) return String(error)
  if (error instanceof TypeError && error.cause !== undefined) return whatWentWrong(error.cause)
  return error.message === '' ? error.name : error.message
}
