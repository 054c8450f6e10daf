import type { Model, Step } from '../history.ts'

/** Stock of one product, with its checkouts by transaction id. */
export interface StockState {
  readonly onHand: number
  readonly reserved: number
  readonly checkouts: Readonly<Record<string, 'open' | 'paid' | 'cancelled'>>
}

/** Stock of a product that starts with `counted` pieces. `quantities`: pieces of each checkout, by transaction id. */
export function stockModel(counted: number, quantities: ReadonlyMap<string, number>): Model<StockState> {
  const start = (state: StockState, quantity: number, id: string | undefined): StockState | undefined =>
    state.onHand - state.reserved < quantity
      ? undefined
      : {
          ...state,
          reserved: state.reserved + quantity,
          checkouts: id === undefined ? state.checkouts : { ...state.checkouts, [id]: 'open' },
        }
  const end = (state: StockState, id: string, to: 'paid' | 'cancelled'): StockState | undefined => {
    const now = state.checkouts[id]
    if (now === to) return state
    if (now !== 'open') return undefined
    const quantity = quantities.get(id) ?? 0
    const onHand = to === 'paid' ? state.onHand - quantity : state.onHand
    return { onHand, reserved: state.reserved - quantity, checkouts: { ...state.checkouts, [id]: to } }
  }
  return {
    initial: { onHand: counted, reserved: 0, checkouts: {} },
    after(state, step) {
      const { operation, body, answer, outcome, reason } = step
      if (operation === 'fetchStock') return isStockRead(state, step) ? state : undefined
      if (operation === 'startCheckout') {
        if (outcome === 'done') return start(state, quantityOf(step), String(answer['transactionId']))
        return reason === 'out_of_stock' && state.onHand - state.reserved >= quantityOf(step) ? undefined : state
      }
      const id = String(body['transactionId'])
      const to = body['result'] === 'paid' ? 'paid' : 'cancelled'
      if (outcome === 'done') return end(state, id, to)
      const isEnded = state.checkouts[id] !== undefined && state.checkouts[id] !== 'open'
      return reason === 'checkout_ended' && !isEnded ? undefined : state
    },
    unknown(state, step) {
      const next =
        step.operation === 'startCheckout'
          ? start(state, quantityOf(step), undefined)
          : end(state, String(step.body['transactionId']), step.body['result'] === 'paid' ? 'paid' : 'cancelled')
      return next === undefined ? [] : [next]
    },
  }
}

function quantityOf({ body }: Step): number {
  return (body['items'] as { quantity: number }[])[0]?.quantity ?? 0
}

function isStockRead(state: StockState, { answer }: Step): boolean {
  const [level] = (answer['stock'] ?? []) as { quantity: number; reserved: number }[]
  return level === undefined || (level.quantity === state.onHand && level.reserved === state.reserved)
}

/** A purchase without items. Amounts are cents. */
export interface PurchaseState {
  readonly status: 'PENDING_PAYMENT' | 'SUCCESS' | 'CANCELLED'
  readonly refunded: number
}

/** Payment and refunds of a purchase of `total` cents. */
export function purchaseModel(total: number): Model<PurchaseState> {
  const apply = (state: PurchaseState, { operation, body }: Step): PurchaseState | undefined => {
    if (operation === 'completeTestCheckout') {
      const to = body['result'] === 'paid' ? 'SUCCESS' : 'CANCELLED'
      if (state.status === to) return state
      return state.status === 'PENDING_PAYMENT' ? { ...state, status: to } : undefined
    }
    if (operation === 'markPurchaseCancelled') {
      if (state.status === 'CANCELLED') return undefined
      return { status: 'CANCELLED', refunded: state.status === 'SUCCESS' ? total : 0 }
    }
    const cents = Math.round(Number(body['amount']) * 100)
    if (state.status !== 'SUCCESS' || state.refunded + cents > total) return undefined
    return { ...state, refunded: state.refunded + cents }
  }
  return {
    initial: { status: 'PENDING_PAYMENT', refunded: 0 },
    after(state, step) {
      const next = apply(state, step)
      // `refundPayment` may succeed for a cancelled purchase: it refunds the missing amount.
      if (step.outcome === 'done')
        return next ?? (step.operation === 'refundPayment' && isPaidBack(state) ? state : undefined)
      const isJudged = ['checkout_ended', 'purchase_not_cancellable', 'refund_too_high', 'already_refunded']
      return next !== undefined && isJudged.includes(step.reason ?? '') ? undefined : state
    },
    unknown(state, step) {
      const next = apply(state, step)
      return next === undefined ? [] : [next]
    },
  }
}

function isPaidBack({ status }: PurchaseState): boolean {
  return status === 'CANCELLED'
}

const MOVES: Readonly<Record<string, readonly string[]>> = {
  pending: ['confirmed', 'cancelled'],
  confirmed: ['preparing', 'ready', 'cancelled'],
  preparing: ['ready', 'cancelled'],
  ready: ['picked_up', 'cancelled'],
}

/** Status of a click and collect order. */
export const ORDER: Model<string> = {
  initial: 'pending',
  after(state, { body, outcome, reason }) {
    const to = String(body['status'])
    const isAllowed = MOVES[state]?.includes(to) === true
    if (outcome === 'done') return isAllowed ? to : undefined
    return reason === 'illegal_order_move' && isAllowed ? undefined : state
  },
  unknown(state, { body }) {
    const to = String(body['status'])
    return MOVES[state]?.includes(to) === true ? [to] : []
  },
}

/** Product with one EAN, and the stores that sell it. */
export interface EanState {
  readonly productId: string | null
  readonly stores: readonly string[]
}

/** One product for each EAN, and one listing for each store. */
export const EAN: Model<EanState> = {
  initial: { productId: null, stores: [] },
  after(state, { operation, body, answer, outcome, reason }) {
    const store = String(body['storeId'])
    const isSold = state.stores.includes(store)
    const others = state.stores.filter((id) => id !== store)
    if (operation === 'removeProductFromStore') {
      if (outcome === 'done') return isSold ? { ...state, stores: others } : undefined
      return reason === 'not-found' && isSold ? undefined : state
    }
    if (outcome !== 'done') return reason === 'product_exists' && !isSold ? undefined : state
    const id = String(answer['productId'])
    const isOther = state.productId !== null && state.productId !== id && state.productId !== '?'
    return isSold || isOther ? undefined : { productId: id, stores: [...others, store].sort() }
  },
  unknown(state, { operation, body }) {
    const store = String(body['storeId'])
    const others = state.stores.filter((id) => id !== store)
    if (operation === 'removeProductFromStore') return [{ ...state, stores: others }]
    return [{ productId: state.productId ?? '?', stores: [...others, store].sort() }]
  },
}

/** Balance of a customer, and the transactions that have earned points. */
export interface BalanceState {
  readonly balance: number
  readonly earned: readonly string[]
}

/** Points of one customer in one program. */
export const BALANCE: Model<BalanceState> = {
  initial: { balance: 0, earned: [] },
  after(state, step) {
    const { operation, body, answer, outcome, reason } = step
    if (operation === 'getLoyaltyProgram') {
      const { balance = 0 } = (answer['membership'] ?? {}) as { balance?: number }
      return outcome !== 'done' || balance === state.balance ? state : undefined
    }
    const next = moved(state, step)
    if (outcome === 'done') return next?.balance === answer['newBalance'] ? next : undefined
    return reason === 'balance_too_low' && state.balance >= Number(body['amount']) ? undefined : state
  },
  unknown(state, step) {
    const next = moved(state, step)
    return next === undefined ? [] : [next]
  },
}

function moved(state: BalanceState, { operation, body }: Step): BalanceState | undefined {
  const amount = Number(body['amount'])
  if (operation === 'redeemLoyaltyPoints')
    return state.balance < amount ? undefined : { ...state, balance: state.balance - amount }
  const transaction = String(body['transactionId'])
  if (state.earned.includes(transaction)) return state
  return { balance: state.balance + amount, earned: [...state.earned, transaction].sort() }
}
