import { assert } from '../../../policy/assert.ts'
import type { Client } from './client.ts'
import type { Cluster } from './cluster.ts'
import { enrolAt } from './agent.ts'
import type { Fields, Step } from './history.ts'
import { eanNumber, must, newOffer, type Scene } from './scene.ts'

/** What all contests share. */
export interface ContestParts {
  readonly client: Client
  readonly cluster: Cluster
  readonly scene: Scene
  /** A number that no round and no other contest has. */
  readonly round: number
  /** Number of callers that claim the object at once. */
  readonly claimants: number
}

/** Sends the request of claimant number `n`. Returns true if this claimant gets the object. */
type Claim = (n: number) => Promise<boolean>

/** Prepares an object that only one claimant may get. */
type Contest = (parts: ContestParts) => Promise<Claim>

const isDone = ({ outcome }: Step) => outcome === 'done'

/** Creates a product with this number of pieces in stock. */
async function newProduct({ client, scene: { storeId }, round }: ContestParts, pieces: number) {
  const ean = eanNumber(round)
  const product = { storeId, ean, name: `Ware ${round}`, price: 10, vat: 19 }
  const { productId } = await must(client, 'insertProduct', product)
  await must(client, 'setStock', { storeId, productId, quantity: pieces })
  return { ean, productId }
}

async function newSession({ client, scene: { storeId } }: ContestParts): Promise<unknown> {
  return (await must(client, 'checkIn', { storeId }))['sessionId']
}

/** Sells these items. Returns the transaction id. */
async function buy(parts: ContestParts, item: Fields): Promise<unknown> {
  const { client } = parts
  const items = [{ name: 'Jacke', priceUnit: 1_000, vat: 19, quantity: 1, ...item }]
  const { transactionId } = await must(client, 'startCheckout', { sessionId: await newSession(parts), items })
  await must(client, 'completeTestCheckout', { transactionId })
  return transactionId
}

/** A key of the account, for another purpose than the load. */
async function newKey({ client, round }: ContestParts): Promise<{ keyId: string; key: string }> {
  const { keyId, key } = await must(client, 'createApiKey', { kind: 'secret', name: `Kasse ${round}` })
  return { keyId: String(keyId), key: String(key) }
}

const CONTESTS: Readonly<Record<string, Contest>> = {
  async 'nonce of a lease'(parts) {
    const { client, scene, round } = parts
    const tagId = `tag-${round}`
    const items = [{ tagId, price: 10, protectionTechnology: 'rf' }]
    await must(client, 'registerProtectedItems', { storeId: scene.storeId, items })
    await buy(parts, { tagIds: [tagId] })
    const [deviceId] = scene.devices
    const request = { deviceId, protectionAction: 'deactivate_label', tagId }
    const { replayProtectedNonce } = await must(client, 'verifyProtectedItem', request)
    return async (n) =>
      isDone(
        await client.call('redeemProtectionAuthorization', { deviceId, replayProtectedNonce, redemptionId: `c-${n}` }),
      )
  },

  async 'last piece in stock'(parts) {
    const { ean } = await newProduct(parts, 1)
    // A second checkout of one session would replace the first.
    return async () => {
      const sessionId = await newSession(parts)
      return isDone(await parts.client.call('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] }))
    }
  },

  async 'rest of a refund'(parts) {
    const transactionId = await buy(parts, {})
    await must(parts.client, 'refundPayment', { transactionId, amount: 7 })
    return async () => isDone(await parts.client.callOnce('refundPayment', { transactionId, amount: 3 }))
  },

  async 'last loyalty point'({ client, scene: { programId }, round }) {
    const userId = `sammler-${round}`
    await must(client, 'addLoyaltyPoints', { programId, userId, amount: 1, transactionId: `bon-${round}` })
    return async () => isDone(await client.call('redeemLoyaltyPoints', { programId, userId, amount: 1 }))
  },

  async 'end of an order'(parts) {
    const { client, scene, round } = parts
    const { productId } = await newProduct(parts, 1)
    const order = { storeId: scene.storeId, userId: `abholer-${round}`, items: [{ productId, quantity: 1 }] }
    const { orderId } = await must(client, 'submitClickCollectOrder', order)
    for (const status of ['confirmed', 'ready']) await must(client, 'updateClickCollectStatus', { orderId, status })
    return async (n) => {
      const status = n % 2 === 0 ? 'picked_up' : 'cancelled'
      return isDone(await client.call('updateClickCollectStatus', { orderId, status }))
    }
  },

  async 'removal of an offer'({ client, cluster, scene, round }) {
    const bearer = cluster.keys.live
    const { offerId } = await must(client, 'createOffer', newOffer(scene, round, 0), bearer)
    return async () => isDone(await client.call('deleteOffer', { offerId }, { bearer }))
  },

  async 'successor of a key that ends at once'(parts) {
    const { client, cluster } = parts
    const { keyId, key } = await newKey(parts)
    return async (n) => {
      const step = await client.call('rollApiKey', { keyId, overlapHours: 0 }, { process: n % cluster.size })
      const old = await client.call('fetchApiKeys', {}, { bearer: key, process: n % cluster.size })
      assert(!isDone(old), 'a key works at the process that has answered that it ended')
      return isDone(step)
    }
  },

  async 'Idempotency-Key of a new key'(parts) {
    const { client } = parts
    const { keyId, key } = await newKey(parts)
    const rolled = await client.callOnce('rollApiKey', { keyId, overlapHours: 1 }, parts.claimants)
    const { keys } = await must(client, 'fetchApiKeys', {})
    const named = (keys as Fields[]).filter(({ name }) => name === `Kasse ${parts.round}`)
    assert(named.length === 2, `${parts.claimants} equal requests created ${named.length - 1} successors`)
    // Until the overlap ends, both keys work at all processes.
    return async (n) => {
      const bearer = n % 2 === 0 ? key : String(rolled.answer['key'])
      const used = await client.call('fetchApiKeys', {}, { bearer })
      assert(isDone(used), `key ${n % 2} is ${used.reason} before the end of the overlap`)
      return n === 0
    }
  },

  async 'enrolment code'({ client, cluster, scene: { otherStoreId: storeId } }) {
    const { code } = await must(client, 'createEnrolmentCode', { storeId })
    return async (n) => (await enrolAt(cluster.address(n % cluster.size) ?? '', String(code))).ok
  },
}

/** Number of contests. Each contest uses one round number. */
export const CONTEST_COUNT = Object.keys(CONTESTS).length

/**
 * Runs all contests, each with 64 claimants at the same time. Returns the contests that have not exactly one winner.
 */
export async function runContests(parts: Omit<ContestParts, 'round'>, firstRound: number): Promise<string[]> {
  const wrong: string[] = []
  for (const [n, [name, contest]] of Object.entries(CONTESTS).entries()) {
    const claim = await contest({ ...parts, round: firstRound + n })
    const claims = await Promise.all(Array.from({ length: parts.claimants }, (_, claimant) => claim(claimant)))
    const winners = claims.filter((isWinner) => isWinner).length
    if (winners !== 1) wrong.push(`${winners} of ${parts.claimants} claimants won the ${name}`)
  }
  return wrong
}
