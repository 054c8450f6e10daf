// @module-tag extended
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { eventually } from '../support/journey.ts'
import { openManyClouds, type ManyClouds } from '../support/many-clouds.ts'
import { hasProgram, MANAGED_BROKERS, mosquittoWithTls, type ManagedBroker } from '../support/outside-brokers.ts'
import { PROXIES } from '../support/proxies.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'

const missing = [
  inject('postgresUrl') === '' ? 'postgresql' : '',
  ...['mosquitto', 'nats-server'].filter((program) => !hasProgram(program)),
].filter((name) => name !== '')
const isFull = process.env['UNTAG_TEST_FULL'] === 'true'

describe.skipIf(missing.length > 0)(`a store whose cloud has several processes ${missing.join(', ')}`, () => {
  let many: ManyClouds
  let mosquitto: Awaited<ReturnType<typeof mosquittoWithTls>>
  let nats: ManagedBroker
  /** Receives the webhooks of paid purchases. */
  let receiver: Receiver

  beforeAll(async () => {
    mosquitto = await mosquittoWithTls()
    nats = await MANAGED_BROKERS[1]!.make()
    many = await openManyClouds(mosquitto.port, isFull ? 2 : 0)
    await eventually('boards', async () =>
      (await many.journey.status()).devices.every((d: Json) => d.state === 'ready'),
    )
    await many.status({ online: true, broker: true })
    receiver = await startReceiver()
    await many.call('registerWebhook', { url: receiver.url, events: ['checkout.completed'] })
  })
  afterAll(async () => {
    await many?.stop()
    await mosquitto.kill()
    await nats.kill()
    await receiver?.close()
  })

  /** Buys one product and releases its tag. Resolves to the purchase. Repeats a purchase that met a killed process. */
  async function releaseOne(): Promise<string> {
    const { journey } = many
    const bought = await eventually('a purchase', () =>
      journey.buy([{ ean: journey.products[0].ean, quantity: 1 }]).catch(() => undefined),
    )
    const { receipt, transactionId } = bought
    const device = { deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label' }
    expect(await journey.authorize({ ...device, receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    return transactionId
  }

  /** Releases without pause until `work` ends. Then each purchase must have one completed release. */
  async function underLoad(work: (released: () => number) => Promise<void>): Promise<void> {
    const purchases: string[] = []
    let isOver = false
    const load = async () => {
      while (!isOver) purchases.push(await releaseOne())
    }
    const loads = [load(), load()]
    await work(() => purchases.length).finally(() => (isOver = true))
    await Promise.all(loads)
    await many.status({ queueDepth: 0 })
    const completed = (await many.journey.events()).filter(({ type }) => type === 'protection.action.completed')
    const counts = purchases.map((id) => completed.filter(({ purchaseId }) => purchaseId === id).length)
    expect(counts).toEqual(purchases.map(() => 1))
    if (isFull) await eventually('webhooks', () => Promise.resolve(purchases.every(isDelivered)))
  }

  const isDelivered = (purchase: string) => receiver.requests.some(({ body }) => body.includes(purchase))
  /** Number of webhook requests that repeat an earlier one. */
  const repeats = () =>
    receiver.requests.length - new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size

  /** Resolves after this many further releases. */
  const further = (released: () => number, count: number) => {
    const target = released() + count
    return eventually(`${count} releases`, () => Promise.resolve(released() >= target))
  }

  /** Kills a worker and the second cloud, and starts the second cloud again. */
  const kills = async (released: () => number) => {
    await further(released, 2)
    process.kill(many.workers()[0]!, 'SIGKILL')
    await further(released, 3)
    await many.second.kill()
    await further(released, 3)
    await many.startSecond()
    await further(released, 2)
  }

  it('sends a changed policy to the agent at once, whichever worker gets the call', async () => {
    const { storeId } = many.journey
    const { policy } = await many.call('fetchProtectionPolicy', { storeId })
    for (let n = 1; n <= (isFull ? 4 : 2); n++) {
      const { policyVersion } = await many.journey.status()
      await many.call('updateProtectionPolicy', {
        storeId,
        policy: { ...policy, requiresManualOverrideAboveValue: 200 + n },
      })
      // The agent polls every 15 s.
      await eventually('policy', async () => (await many.journey.status()).policyVersion !== policyVersion, 5_000)
      const { agents } = await many.call('fetchAgents', { storeId })
      expect(agents).toMatchObject([{ online: true }])
    }
    await releaseOne()
    await many.status({ queueDepth: 0 })
  })

  it('moves the agent to an outside broker with a private CA', async () => {
    await many.moveTo(mosquitto)
    await many.startSecond()
    await many.status({ online: true, broker: true })
    await releaseOne()
    await many.status({ queueDepth: 0 })
  })

  it('loses and repeats no event while processes are killed', async () => {
    await underLoad(kills)
    // A killed process has sent some webhooks without storing that they arrived.
    expect(repeats()).toBeLessThanOrEqual(10)
  })

  it.runIf(isFull)(
    'restarts one cloud after the other behind proxies without a failed request or a lost event',
    async () => {
      const proxies = await Promise.all(PROXIES.map(({ start }) => start(...many.hosts)))
      const before = repeats()
      const bad: string[] = []
      let good = 0
      let isOver = false
      const caller = async (origin: string) => {
        while (!isOver)
          await many.call('fetchStores', {}, origin).then(
            () => good++,
            (error: Error) => bad.push(error.message),
          )
      }
      const callers = proxies.flatMap(({ origin }) => [caller(origin), caller(origin)])
      // Proxies notice a started cloud after a second.
      const noticed = () => {
        const target = good + 1_500
        return eventually('more calls', () => Promise.resolve(good >= target))
      }
      await underLoad(async (released) => {
        await noticed()
        expect(await many.second.stop()).toBe(0)
        await many.startSecond()
        await noticed()
        expect(await many.journey.cloud.stop()).toBe(0)
        await many.journey.startCloud()
        await noticed()
        many.journey.cloud.child.kill('SIGHUP')
        const log = () => many.journey.cloud.stderr()
        await eventually('new workers', () => Promise.resolve(log().includes('the workers were restarted')))
        await further(released, 3)
      })
      isOver = true
      await Promise.all(callers)
      for (const proxy of proxies) await proxy.stop()
      expect(bad).toEqual([])
      expect(repeats()).toBe(before)
    },
  )

  it.runIf(isFull)('works over HTTP while the agent does not reach the broker', async () => {
    many.journey.wire.cutBroker()
    await many.status({ online: true, broker: false })
    await underLoad(async (released) => void (await further(released, 5)))
    many.journey.wire.restore()
    await many.status({ online: true, broker: true })
  })

  it.runIf(isFull)('works over HTTP while the clouds do not reach the broker', async () => {
    many.brokerWire.cut()
    const log = () => many.second.stderr()
    await eventually('the cut', () => Promise.resolve(log().includes('agents use HTTP')))
    await many.status({ online: true, broker: true })
    await underLoad(async (released) => void (await further(released, 5)))
    many.brokerWire.restore()
    await releaseOne()
    await many.status({ queueDepth: 0 })
  })

  it.runIf(isFull)('divides the stores at a broker without shared subscriptions, and loses no event', async () => {
    await many.second.stop()
    await many.moveTo(nats)
    await many.startSecond()
    await many.status({ online: true, broker: true })
    await underLoad(kills)
  })
})
