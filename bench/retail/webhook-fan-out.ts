import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { canPin, CORES, startProgram } from '../child.ts'
import type { PreparedAccounts } from '../cloud-program.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result } from '../figure.ts'
import { withPrograms } from '../http-contender.ts'
import { takeTurns, type Contender } from '../measure.ts'
import { benchProduct } from '../catalogue/products.ts'
import type { Heard, ReceiverQuestion } from './webhook-receiver.ts'

const NAMES = { healthy: 'all answer', troubled: 'one hangs, one is slow' }
/** Webhooks of one account, its most, and accounts. */
const PER_ACCOUNT = 100
/** Most that the others' p99 may rise by. */
const LIMIT = 1.2

/** Whether a receiver that hangs and one that is slow hold up the others: an event at every account at once. */
export const webhookFanOut: Figure = { name: 'webhook-fan-out', run }

async function run({ quick, folder, random, note }: Bench): Promise<Result> {
  const accounts = quick ? 2 : 10
  const [events, rounds] = quick ? [2, 3] : [3, 7]
  return withPrograms(async (keep) => {
    const receiver = await keep(startProgram('retail/webhook-receiver.js', CORES.load))
    const { port: receiverPort } = await receiver.ask<{ port: number }>({ kind: 'open' } satisfies ReceiverQuestion)
    const lastOf = new Map<string, { p50Ms: number; deliveries: number }>()
    let next = 0

    async function contender(name: string, run: string, trouble: boolean): Promise<Contender> {
      const data = join(folder, run)
      mkdirSync(data)
      const cloud = await keep(startProgram('cloud-program.js', CORES.server, [data]))
      const { port, base, shops } = await cloud.ask<PreparedAccounts>({ kind: 'accounts', accounts })
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
        for (let w = 0; w < PER_ACCOUNT; w++) {
          const kind = trouble && w === 0 && a === 0 ? 'hang' : trouble && w === 0 && a === 1 ? 'slow' : 'ok'
          await call(authorization, 'registerWebhook', {
            url: `http://127.0.0.1:${receiverPort}/${run}/${kind}/${a}/${w}`,
            events: ['product.created'],
          })
        }
      }
      note(`${accounts * PER_ACCOUNT} webhooks are registered (${name})`)
      const troubled = trouble ? 2 : 0
      return {
        name,
        async slice() {
          const expected = events * (accounts * PER_ACCOUNT - troubled)
          const heard = receiver.ask<Heard>({ kind: 'hear', run, expected } satisfies ReceiverQuestion)
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
    const samples = await takeTurns(contenders, rounds, random, 2)
    const also = Object.fromEntries(
      [...lastOf].map(([name, { p50Ms, deliveries }]) => [name, { 'p50 ms': p50Ms, deliveries }]),
    )
    return {
      title: `11 ${(accounts * PER_ACCOUNT).toLocaleString('en')} webhooks, ${events} events each at once (SQLite)`,
      counts: `p99 of the time from the event to its arrival, at receivers that answer; ${canPin ? 'the cloud on core 0, the receivers on core 1' : 'cloud and receivers share the cores as the system likes'}`,
      rows: rowsOf(samples, NAMES.healthy, also),
      targets: [costsAtMost(samples, NAMES.troubled, NAMES.healthy, LIMIT)],
      notes: ['µs/op is the p99 itself'],
    }
  })
}
