/**
 * A simulated shopper who buys over the public API like an app:
 *
 *     const phone = shopper({ baseUrl, key, fetch })
 *     const bought = await phone.buy({ storeId, items: [{ ean: '4017265103243', quantity: 1 }] })
 */
interface ShopperOptions {
  /** The API root, such as http://127.0.0.1:8080/api/v1 */
  baseUrl: string
  /** A sandbox key. */
  key: string
  fetch(
    url: string,
    init: { method: string; headers: Record<string, string>; body: string },
  ): Promise<{ status: number; json(): Promise<unknown> }>
}

export interface BasketLine {
  ean?: string
  name?: string
  priceUnit?: number
  vat?: 7 | 19
  quantity: number
  epcs?: string[]
  tagIds?: string[]
  tagUids?: string[]
}

export interface Bought {
  transactionId: string
  /** Content of the receipt's QR code. */
  receipt: string
  items: { itemLineId: string; name: string; quantity: number }[]
}

export interface Shopper {
  /** Calls any operation of the API; throws its error. */
  call(operation: string, body: object): Promise<Record<string, unknown>>
  /** Checks in, checks out, pays, and returns the receipt. */
  buy(basket: { storeId: string; items: BasketLine[] }): Promise<Bought>
}

/** Makes a shopper with this key at this API. */
export function shopper({ baseUrl, key, fetch }: ShopperOptions): Shopper {
  async function call(operation: string, body: object): Promise<Record<string, unknown>> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const answer = await fetch(`${baseUrl}/${operation}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const result = (await answer.json()) as Record<string, unknown>
    if (answer.status !== 200) throw new Error(`${operation} answered ${answer.status}: ${String(result['error'])}`)
    return result
  }

  return {
    call,
    async buy({ storeId, items }) {
      const { sessionId } = await call('checkIn', { storeId, userId: 'sandbox-shopper' })
      const { transactionId } = await call('startCheckout', { sessionId, items })
      const paid = await call('completeTestCheckout', { transactionId })
      const { url } = await call('generateReceiptQR', { purchaseId: transactionId })
      return { transactionId: String(transactionId), receipt: String(url), items: paid['items'] as Bought['items'] }
    },
  }
}
