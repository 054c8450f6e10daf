/**
 * Text of an error. For an error of `fetch`, the text of its cause. If several addresses failed, the list of their
 * errors.
 */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(errorText).join(', ')
  if (!(error instanceof Error)) return String(error)
  if (error instanceof TypeError && error.cause !== undefined) return errorText(error.cause)
  return error.message === '' ? error.name : error.message
}
