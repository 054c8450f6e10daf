import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { canPin, CORES, startProgram } from '../child.ts'
import type { PreparedAccounts } from '../cloud-program.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { withPrograms } from '../http-contender.ts'
import { takeTurns, type Contender } from '../measure.ts'
import { benchProduct } from '../catalogue/products.ts'
import type { DeliveryTimes, ReceiverQuestion } from './webhook-receiver.ts'

const NAMES = { healthy: 'all answer', troubled: 'one hangs, one is slow' }
/** Maximum factor by which a hung and a slow receiver may raise the p99 of the healthy receivers. */
const LIMIT = 1.2

/** An account has at most 100 webhooks. */
const SIZES = {
  full: { accounts: 10, perAccount: 100, events: 3, rounds: 7, warmUps: 2 },
  quick: { accounts: 2, perAccount: 100, events: 2, rounds: 3, warmUps: 2 },
  smoke: { accounts: 2, perAccount: 3, events: 1, rounds: 1, warmUps: 0 },
} satisfies Sizes

/**
 * Measures whether a hung and a slow receiver delay healthy receivers, when each account has an event at the same time.
 */
export const webhookFanOut: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { accounts, perAccount, events, rounds, warmUps } = SIZES[mode]
  return withPrograms(async (keep) => {
    const receiver = await keep(startProgram('retail/webhook-receiver.js', CORES.load))
    const { port: receiverPort } = await receiver.request<{ port: number }>({ kind: 'open' } satisfies ReceiverQuestion)
    const lastOf = new Map<string, { p50Ms: number; deliveries: number }>()
    let next = 0

    async function contender(name: string, run: string, trouble: boolean): Promise<Contender> {
      const data = join(folder, run)
      mkdirSync(data)
      const cloud = await keep(startProgram('cloud-program.js', CORES.server, [data]))
      const { port, base, shops } = await cloud.request<PreparedAccounts>({ kind: 'accounts', accounts })
      const call = async (authorization: string, operation: string, body: object) => {
        const response = await fetch(`http://127.0.0.1:${port}${base}/${operation}`, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        if (response.status !== 200)
          throw new Error(`${operation} answered ${response.status}: ${await response.text()}`)
      }
      for (const [a, { authorization }] of shops.entries()) {
        for (let w = 0; w < perAccount; w++) {
          const kind = trouble && w === 0 && a === 0 ? 'hang' : trouble && w === 0 && a === 1 ? 'slow' : 'ok'
          await call(authorization, 'registerWebhook', {
            url: `http://127.0.0.1:${receiverPort}/${run}/${kind}/${a}/${w}`,
            events: ['product.created'],
          })
        }
      }
      note(`${accounts * perAccount} webhooks are registered (${name})`)
      const troubled = trouble ? 2 : 0
      return {
        name,
        async slice() {
          const expected = events * (accounts * perAccount - troubled)
          const heard = receiver.request<DeliveryTimes>({ kind: 'hear', run, expected } satisfies ReceiverQuestion)
          const { ean: _ean, ...product } = benchProduct(0)
          for (let e = 0; e < events; e++) {
            await Promise.all(
              shops.map(({ authorization, storeId }) =>
                call(authorization, 'insertProduct', { storeId, ...product, ean: benchProduct(next++).ean }),
              ),
            )
          }
          const { p50Ms, p99Ms, deliveries } = await heard
          lastOf.set(name, { p50Ms, deliveries })
          return p99Ms * 1_000
        },
      }
    }

    const contenders = [
      await contender(NAMES.healthy, 'healthy', false),
      await contender(NAMES.troubled, 'troubled', true),
    ]
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    const also = Object.fromEntries(
      [...lastOf].map(([name, { p50Ms, deliveries }]) => [name, { 'p50 ms': p50Ms, deliveries }]),
    )
    return {
      title: `11 ${(accounts * perAccount).toLocaleString('en')} webhooks, ${events} events each at once (SQLite)`,
      counts: `p99 of the time from the event to its arrival, at receivers that answer; ${canPin ? 'the cloud on core 0, the receivers on core 1' : 'cloud and receivers share the cores as the system likes'}`,
      rows: rowsOf(samples, NAMES.healthy, also),
      targets: [costsAtMost(samples, NAMES.troubled, NAMES.healthy, LIMIT)],
      notes: ['µs/op is the p99 itself'],
    }
  })
}
