/** What the client must know of an operation before it calls it. A test holds it against the table of operations. */

/** Operations that only look, by how their name begins. All others may change something and get an Idempotency-Key. */
const READ_NAME = /^(?:fetch|search|get|export|simulate)[A-Z]/
/** What looks like a question and writes, or the other way round. */
const WRITES_DESPITE_NAME: ReadonlySet<string> = new Set(['fetchSignedDocuments', 'getLoyaltyWebhookEvents'])
const READS_DESPITE_NAME: ReadonlySet<string> = new Set([
  'verifyPickupCode',
  'generateReceiptQR',
  'generateReceiptWithQR',
  'generateCodes',
])
const GET_ONLY: ReadonlySet<string> = new Set(['getReceiptFromToken'])

/** Whether to send an Idempotency-Key; one that is not needed does no harm. */
export function mayChange(operation: string): boolean {
  return WRITES_DESPITE_NAME.has(operation) || !(READ_NAME.test(operation) || READS_DESPITE_NAME.has(operation))
}

/** Whether the operation is called with GET. */
export function isGet(operation: string): boolean {
  return GET_ONLY.has(operation)
}

/** Whether this can be the name of an operation at all. */
export function isOperationName(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z][A-Za-z0-9]{2,63}$/.test(name)
}
