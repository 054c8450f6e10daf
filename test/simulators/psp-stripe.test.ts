import { Stripe } from 'stripe'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { simulatedPsp, type SimulatedPsp } from '../../simulators/services/psp.ts'

/** Tests the simulator with Stripe's own client. */

const KEY = 'sk_test_of_this_test'
let psp: SimulatedPsp
let stripe: Stripe

beforeAll(async () => {
  psp = await simulatedPsp({
    dialect: 'stripe',
    secret: 'whsec_x',
    apiKey: KEY,
    notifyUrl: () => 'http://127.0.0.1:9/',
    nowMs: () => 1_700_000_000_000,
  })
  const { hostname, port } = new URL(psp.baseUrl)
  stripe = new Stripe(KEY, {
    host: hostname,
    port: Number(port),
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
  })
})
afterAll(() => psp.close())

const wish = (cent: number): Stripe.Checkout.SessionCreateParams => ({
  mode: 'payment',
  client_reference_id: 'pay_1',
  success_url: 'https://shop.example/',
  line_items: [
    { quantity: 1, price_data: { currency: 'eur', unit_amount: cent, product_data: { name: 'Filiale 1' } } },
  ],
})

it('opens, finds and refunds a session, once for one key', async () => {
  const made = await stripe.checkout.sessions.create(wish(4_990), { idempotencyKey: 'k1' })
  expect((await stripe.checkout.sessions.create(wish(4_990), { idempotencyKey: 'k1' })).id).toBe(made.id)
  expect(made).toMatchObject({
    client_reference_id: 'pay_1',
    status: 'open',
    payment_status: 'unpaid',
    amount_total: 4_990,
    currency: 'eur',
  })
  psp.switches.keep = true
  await psp.end(made.id, 'paid')
  const paid = await stripe.checkout.sessions.retrieve(made.id)
  expect(paid).toMatchObject({ status: 'complete', payment_status: 'paid' })
  const refund = { payment_intent: String(paid.payment_intent), amount: 1_000 }
  const first = await stripe.refunds.create(refund, { idempotencyKey: 'k2' })
  expect(first).toMatchObject({ object: 'refund', amount: 1_000, status: 'succeeded' })
  expect((await stripe.refunds.create(refund, { idempotencyKey: 'k2' })).id).toBe(first.id)
  await expect(stripe.refunds.create({ ...refund, amount: 4_000 })).rejects.toMatchObject({
    type: 'StripeInvalidRequestError',
    code: 'charge_already_refunded',
    statusCode: 400,
  })
  expect(psp.refunds).toHaveLength(1)
})

it('refuses what Stripe refuses', async () => {
  await expect(stripe.checkout.sessions.retrieve('cs_nobody')).rejects.toMatchObject({
    statusCode: 404,
    code: 'resource_missing',
  })
  const { hostname, port } = new URL(psp.baseUrl)
  const stranger = new Stripe('sk_test_another', {
    host: hostname,
    port: Number(port),
    protocol: 'http',
    maxNetworkRetries: 0,
    telemetry: false,
  })
  await expect(stranger.checkout.sessions.create(wish(1))).rejects.toMatchObject({ statusCode: 401 })
})
