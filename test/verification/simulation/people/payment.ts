import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import type { Json, Merchant } from '../nodes/merchant.ts'
import type { Provider } from '../nodes/provider.ts'

/** Payment by a shopper. In a live shop, staff may check the basket before the shopper pays on the provider's page. */
export interface Payment {
  /** Resolves to true if the cloud reported the purchase as paid. */
  pay(begun: Json, chance: Chance, how?: { isProbe: boolean }): Promise<boolean>
  decline(begun: Json, chance: Chance): Promise<void>
}

/** Number of status requests from the shopper's phone, and the longest pause between two of them, ms. */
const STATUS_POLLS = 12
const STATUS_POLL_MS = 2_500

/** Creates the payment of a sandbox, which needs no provider. */
export function testPayment(merchant: Merchant): Payment {
  const complete = (begun: Json, result: 'paid' | 'declined') =>
    merchant.call('completeTestCheckout', { transactionId: begun['transactionId'], result })
  return {
    pay: async (begun) => (await complete(begun, 'paid'))?.ok === true,
    async decline(begun) {
      await complete(begun, 'declined')
    },
  }
}

/** Creates the payment on the provider's page. */
export function livePayment(
  { scheduler }: Pick<Core, 'scheduler'>,
  { operatorId }: Pick<Shop, 'operatorId'>,
  merchant: Merchant,
  provider: Provider,
): Payment {
  const statusOf = async (transactionId: unknown) => {
    const answer = await merchant.call('fetchPurchase', { transactionId }, { tries: 2 })
    return answer?.ok ? String(answer.body['status']) : undefined
  }

  /** Returns the URL of the provider's page. Staff check the basket first if the purchase needs it. */
  async function pageOf(begun: Json, odd: (probability: number) => boolean): Promise<string | undefined> {
    const { transactionId } = begun
    if (begun['awaitingApproval'] === true) {
      const approved = !odd(0.1)
      const decided = await merchant.call('approveCheckout', { transactionId, operatorId, approved }, { tries: 4 })
      if (!decided?.ok || !approved) return undefined
    } else if (typeof begun['checkoutUrl'] === 'string' && !odd(0.2)) return begun['checkoutUrl']
    // Some shoppers lose the page and request it again.
    const payment = await merchant.call('processPayment', { transactionId }, { tries: 4 })
    return payment?.ok ? String(payment.body['checkoutUrl']) : undefined
  }

  return {
    async pay(begun, chance, { isProbe } = { isProbe: false }) {
      const { transactionId } = begun
      const odd = (probability: number) => !isProbe && chance.happens(probability)
      const page = await pageOf(begun, odd)
      if (page === undefined) return false
      // Some shoppers cancel the purchase and still pay. Some pages charge a wrong amount.
      if (odd(0.08)) await merchant.call('markPurchaseCancelled', { purchaseId: transactionId }, { tries: 3 })
      const total = Math.round(Number(begun['total']) * 100)
      provider.act(page, 'paid', odd(0.03) ? total - 1 : undefined)
      for (let n = 0; n < STATUS_POLLS; n++) {
        await scheduler.pause(chance.between(STATUS_POLL_MS / 5, STATUS_POLL_MS))
        const status = await statusOf(transactionId)
        if (status === 'SUCCESS') return true
        if (status === 'CANCELLED') return false
      }
      return false
    },
    async decline(begun, chance) {
      const page = await pageOf(begun, (probability) => chance.happens(probability))
      if (page !== undefined) provider.act(page, 'cancelled')
    },
  }
}
