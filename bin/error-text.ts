/**
 * Text of an error. For an error of `fetch` it is the text of the cause. If several addresses failed, it is the list of
 * their errors.
 */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(errorText).join(', ')
  if (!(error instanceof Error)) return String(error)
  if (error instanceof TypeError && error.cause !== undefined) return errorText(error.cause)
  return error.message === '' ? error.name : error.message
}
