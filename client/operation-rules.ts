/** How the client sends each operation. A test compares this with the table of operations. */

/** Names of operations that only read. The client sends an Idempotency-Key with all other operations. */
const READ_NAME = /^(?:fetch|search|get|export|simulate)[A-Z]/
/** Operations that change data although their names match `READ_NAME`. */
const WRITES_DESPITE_NAME: ReadonlySet<string> = new Set(['fetchSignedDocuments', 'getLoyaltyWebhookEvents'])
const READS_DESPITE_NAME: ReadonlySet<string> = new Set([
  'verifyPickupCode',
  'generateReceiptQR',
  'generateReceiptWithQR',
  'generateCodes',
])
const GET_ONLY: ReadonlySet<string> = new Set(['getReceiptFromToken'])

/** True if the call needs an Idempotency-Key. An unnecessary key is harmless. */
export function mayChange(operation: string): boolean {
  return WRITES_DESPITE_NAME.has(operation) || !(READ_NAME.test(operation) || READS_DESPITE_NAME.has(operation))
}

/** True if the operation uses GET. */
export function isGet(operation: string): boolean {
  return GET_ONLY.has(operation)
}

/** True if the text has the form of an operation name. */
export function isOperationName(name: unknown): name is string {
  return typeof name === 'string' && /^[a-z][A-Za-z0-9]{2,63}$/.test(name)
}
