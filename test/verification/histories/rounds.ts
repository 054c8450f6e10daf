import type { Client } from './client.ts'
import { historyOf, type Fields, type ObjectHistory, type Step } from './history.ts'
import { KEY, OFFER } from './models/accounts.ts'
import { RIGHT } from './models/rights.ts'
import { BALANCE, EAN, ORDER, purchaseModel, stockModel } from './models/shop.ts'
import { eanNumber, newOffer, type Scene } from './scene.ts'

/** A round of clients that want the same object at the same time. */
export interface RoundParts {
  readonly client: Client
  readonly scene: Scene
  /** A number that no other round has. */
  readonly round: number
}

/** Undefined if the objects of the round could not be created, because an answer was lost. */
export type Round = (parts: RoundParts) => Promise<ObjectHistory | undefined>

type Work = () => Promise<unknown>

/** Runs the tasks of several clients, `lanes` at the same time. */
async function together(lanes: number, works: readonly Work[]): Promise<void> {
  const waiting = [...works]
  const lane = async () => {
    for (let work = waiting.shift(); work; work = waiting.shift()) await work()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

const READS: ReadonlySet<string> = new Set(['fetchStock', 'getLoyaltyProgram'])

/**
 * Collects the steps of a round. Half of the writes, or all with `mustHaveKey`, have an Idempotency-Key. Half of these
 * are sent twice at the same time.
 */
function recorder(client: Client) {
  const steps: Step[] = []
  const call = async (operation: string, body: Fields, mustHaveKey = false): Promise<Step> => {
    const isRead = READS.has(operation)
    const isOnce = !isRead && (mustHaveKey || client.chance(2) === 0)
    const step = await (isOnce ? client.callOnce(operation, body, 1 + client.chance(2)) : client.call(operation, body))
    steps.push(step)
    return step
  }
  return { steps, call }
}

/** Creates a product; undefined if the answer was lost. */
async function newProduct(
  { client, scene: { storeId }, round }: RoundParts,
  price: number,
): Promise<Product | undefined> {
  const ean = eanNumber(round)
  const { answer, outcome } = await client.callOnce('insertProduct', {
    storeId,
    ean,
    name: `Ware ${round}`,
    price,
    vat: 19,
    category: `sorte-${round % 3}`,
  })
  return outcome === 'done' ? { ean, productId: String(answer['productId']) } : undefined
}

interface Product {
  readonly ean: string
  readonly productId: string
}

async function newSession({ client, scene: { storeId }, round }: RoundParts): Promise<string | undefined> {
  const { answer, outcome } = await client.callOnce('checkIn', { storeId, userId: `kunde-${round}-${client.now()}` }, 2)
  return outcome === 'done' ? String(answer['sessionId']) : undefined
}

/**
 * `claimants` clients verify one paid item at several devices, and redeem the tokens that they receive. Another client
 * may cancel the purchase.
 */
export function claim(claimants: number, mayCancel = false): Round {
  return async (parts) => {
    const { client, scene, round } = parts
    const tagId = `tag-${round}`
    const product = await newProduct(parts, 10)
    const transactionId = product && (await sellItem(parts, product, tagId))
    if (transactionId === undefined) return undefined
    const { steps, call } = recorder(client)
    const works: Work[] = Array.from({ length: claimants }, (_, n) => async () => {
      const deviceId = scene.devices[client.chance(scene.devices.length)] ?? ''
      const verified = await call('verifyProtectedItem', { deviceId, protectionAction: 'deactivate_label', tagId })
      const nonce = verified.answer['replayProtectedNonce']
      if (typeof nonce !== 'string' || client.chance(4) === 0) return
      // Two redemptions of one token: only one may succeed.
      const redeem = (redemptionId: string) =>
        call('redeemProtectionAuthorization', {
          deviceId,
          replayProtectedNonce: nonce,
          ...(client.chance(2) === 0 && { authorizationToken: verified.answer['authorizationToken'] }),
          redemptionId,
          outcome: 'confirmed',
        })
      await Promise.all([redeem(`${round}-${n}-a`), client.chance(2) === 0 && redeem(`${round}-${n}-b`)])
    })
    if (mayCancel) works.splice(client.chance(3), 0, () => call('markPurchaseCancelled', { transactionId }))
    await together(works.length, works)
    return historyOf(`right of the item ${tagId}`, steps, RIGHT)
  }
}

/** Sells an item. Returns the id of its purchase; undefined if an answer was lost. */
async function sellItem(parts: RoundParts, { ean }: Product, tagId: string): Promise<string | undefined> {
  const { client, scene } = parts
  const items = [{ tagId, ean, price: 10, protectionTechnology: 'rf' }]
  const registered = await client.callOnce('registerProtectedItems', { storeId: scene.storeId, items })
  const sessionId = await newSession(parts)
  if (registered.outcome !== 'done' || sessionId === undefined) return undefined
  const basket = { sessionId, items: [{ ean, quantity: 1, tagIds: [tagId] }] }
  const { answer } = await client.callOnce('startCheckout', basket)
  const paid = await client.callOnce('completeTestCheckout', { transactionId: answer['transactionId'] ?? '-' })
  return paid.outcome === 'done' ? String(answer['transactionId']) : undefined
}

const CLAIMANTS = 7

/** Clients reserve, pay and give up pieces of one product. */
export const sellStock: Round = async (parts) => {
  const { client, scene, round } = parts
  const { storeId } = scene
  const product = await newProduct(parts, 2)
  if (!product) return undefined
  const { productId, ean } = product
  const counted = 3 + client.chance(5)
  if ((await client.callOnce('setStock', { storeId, productId, quantity: counted })).outcome !== 'done')
    return undefined
  const { steps, call } = recorder(client)
  const quantities = new Map<string, number>()
  const works = Array.from({ length: CLAIMANTS }, () => async () => {
    const quantity = 1 + client.chance(3)
    const sessionId = await newSession(parts)
    if (sessionId === undefined) return
    const { outcome, answer } = await call('startCheckout', { sessionId, items: [{ ean, quantity }] })
    if (client.chance(3) === 0) await call('fetchStock', { storeId, productId })
    if (outcome !== 'done') return
    const transactionId = String(answer['transactionId'])
    quantities.set(transactionId, quantity)
    const end = (result: string) => call('completeTestCheckout', { transactionId, result })
    const choice = client.chance(4)
    if (choice > 0) await Promise.all([end(choice < 3 ? 'paid' : 'cancelled'), choice === 1 && end('declined')])
  })
  await together(CLAIMANTS, works)
  steps.push(await client.call('fetchStock', { storeId, productId }))
  return historyOf(`stock of product ${round}, ${counted} pieces`, steps, stockModel(counted, quantities))
}

/** Clients pay, cancel and refund one purchase of 10 EUR. */
export const payAndRefund: Round = async (parts) => {
  const { client, round } = parts
  const sessionId = await newSession(parts)
  const items = [{ name: `Kaffee ${round}`, priceUnit: 1_000, vat: 19, quantity: 1 }]
  const started = await client.callOnce('startCheckout', { sessionId: sessionId ?? '-', items }, 2)
  if (started.outcome !== 'done') return undefined
  const transactionId = String(started.answer['transactionId'])
  const { steps, call } = recorder(client)
  const end = (result: string) => () => call('completeTestCheckout', { transactionId, result })
  await together(4, [end('paid'), end('paid'), client.chance(4) === 0 ? end('declined') : end('paid')])
  const refund = (amount: number) => () => call('refundPayment', { transactionId, amount }, true)
  const cancel = () => call('markPurchaseCancelled', { transactionId })
  const works = [refund(4), refund(5), refund(3), refund(6), ...(client.chance(2) === 0 ? [cancel, cancel] : [])]
  await together(4, works)
  return historyOf(`purchase ${transactionId}`, steps, purchaseModel(1_000))
}

/** Clients add and spend points of one customer. */
export const movePoints: Round = async ({ client, scene: { programId }, round }) => {
  const { steps, call } = recorder(client)
  const userId = `sammler-${round}`
  const add = (n: number) => () =>
    call('addLoyaltyPoints', { programId, userId, amount: 2 + n, transactionId: `bon-${round}-${n % 4}` })
  const spend = () => call('redeemLoyaltyPoints', { programId, userId, amount: 1 + client.chance(5) })
  const read = () => call('getLoyaltyProgram', { programId, userId })
  // Calls with the same transaction id add the same amount.
  const works = [add(0), add(1), spend, add(2), add(0), read, spend, add(3), add(1), spend, read]
  await together(4, works)
  return historyOf(`points of ${userId}`, steps, BALANCE)
}

/** Clients insert and remove products with one EAN in two stores. */
export const listEan: Round = async ({ client, scene: { storeId, otherStoreId }, round }) => {
  const { steps, call } = recorder(client)
  const ean = eanNumber(round)
  const insert = (store: string) => () =>
    call('insertProduct', {
      storeId: store,
      ean,
      name: `Neu ${round}`,
      price: 3,
      vat: 7,
      category: `sorte-${round % 3}`,
    })
  const remove = () => call('removeProductFromStore', { storeId, ean })
  const works = [insert(storeId), insert(storeId), insert(otherStoreId), insert(storeId), remove, insert(storeId)]
  await together(4, works)
  return historyOf(`product with EAN ${ean}`, steps, EAN)
}

/** Clients move one order of two stock pieces. */
export const moveOrder: Round = async (parts) => {
  const { client, scene, round } = parts
  const product = await newProduct(parts, 5)
  if (!product) return undefined
  const { storeId } = scene
  const items = [{ productId: product.productId, quantity: 2 }]
  await client.callOnce('setStock', { storeId, productId: product.productId, quantity: 2 })
  const submitted = await client.callOnce('submitClickCollectOrder', { storeId, userId: `abholer-${round}`, items })
  if (submitted.outcome !== 'done') return undefined
  const orderId = String(submitted.answer['orderId'])
  const { steps, call } = recorder(client)
  const move = (status: string) => () => call('updateClickCollectStatus', { orderId, status })
  await together(3, [move('confirmed'), move('confirmed'), move('ready'), move('preparing')])
  await together(4, [move('ready'), move('cancelled'), move('ready'), move('picked_up'), move('picked_up')])
  return historyOf(`order ${orderId}`, steps, ORDER)
}

/** Clients use, roll and revoke one API key. */
export const rollKeys: Round = async ({ client, round }) => {
  const made = await client.callOnce('createApiKey', { kind: 'secret', name: `Kasse ${round}` })
  if (made.outcome !== 'done') return undefined
  const { keyId, key } = made.answer
  const { steps, call } = recorder(client)
  const use = async () => void steps.push(await client.call('fetchApiKeys', {}, { bearer: String(key) }))
  const roll = (overlapHours: number) => () => call('rollApiKey', { keyId, overlapHours })
  const end = client.chance(2) === 0 ? roll(0) : () => call('revokeApiKey', { keyId })
  await together(4, [use, roll(1), use, use, end, use, roll(0), use, roll(1), use])
  // The account has a limit of keys.
  for (const { operation, answer } of steps)
    if (operation === 'rollApiKey' && answer['keyId'] !== undefined)
      await client.call('revokeApiKey', { keyId: answer['keyId'] })
  return historyOf(`API key of round ${round}`, steps, KEY)
}

/** Clients change and delete an offer that begins soon. Other offers begin undisturbed. */
export const publishOffer: Round = async ({ client, scene, round }) => {
  const { liveKey } = scene
  const live = { bearer: liveKey }
  const made = await client.callOnce('createOffer', newOffer(scene, round, client.chance(2_000)), 2, live)
  if (made.outcome !== 'done') return undefined
  const { offerId } = made.answer
  const steps: Step[] = []
  const call = (operation: string, body: Fields) => async () =>
    void steps.push(await client.call(operation, { offerId, ...body }, live))
  const change = call('updateOffer', { title: `Aktion ${round}` })
  const remove = call('deleteOffer', {})
  await together(3, client.chance(2) === 0 ? [change, change] : [change, remove, change, remove])
  return historyOf(`offer ${round}`, steps, OFFER)
}

/** The load draws its rounds from this list. A round that is listed twice is drawn twice as often. */
export const ROUNDS: readonly Round[] = [
  claim(6),
  claim(3, true),
  claim(1, true),
  sellStock,
  sellStock,
  payAndRefund,
  movePoints,
  listEan,
  moveOrder,
  rollKeys,
  publishOffer,
]
