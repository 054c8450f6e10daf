/**
 * Simulates shoppers who check in, check out and pay, one after another on each connection. Each request needs the
 * response to the previous one.
 */
export interface JourneyQuestion {
  port: number
  base: string
  authorization: string
  storeId: string
  /** EANs to buy, one per purchase. */
  eans: readonly string[]
  connections: number
}

/** Makes all purchases. Returns the total time, µs. */
export async function buyAll({
  port,
  base,
  authorization,
  storeId,
  eans,
  connections,
}: JourneyQuestion): Promise<number> {
  const headers = { authorization, 'content-type': 'application/json' }
  async function call(operation: string, body: object): Promise<Record<string, string>> {
    const response = await fetch(`http://127.0.0.1:${port}${base}/${operation}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as Record<string, string>
    if (response.status !== 200) throw new Error(`${operation} answered ${response.status}: ${answer['error']}`)
    return answer
  }
  let next = 0
  const from = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let ean = eans[next++]; ean !== undefined; ean = eans[next++]) {
        const { sessionId } = await call('checkIn', { storeId })
        const { transactionId } = await call('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })
        const { status } = await call('completeTestCheckout', { transactionId })
        if (status !== 'SUCCESS') throw new Error(`the purchase is ${status}`)
      }
    }),
  )
  return (performance.now() - from) * 1_000
}
