import { connectAsync, type MqttClient } from 'mqtt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'
import { hasProgram, mosquitto, type BrokerProcess } from '../support/outside-brokers.ts'

describe.skipIf(!hasProgram('mosquitto'))('a store with Mosquitto as its broker', () => {
  let journey: Journey
  let brokers: BrokerProcess[]
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  const env: NodeJS.ProcessEnv = {}
  let spy: MqttClient
  let seen: string[]

  /** Notes the topics of all messages from now on. */
  async function watch({ port }: BrokerProcess): Promise<void> {
    await spy?.endAsync(true)
    seen = []
    spy = await connectAsync(`mqtt://127.0.0.1:${port}`)
    spy.on('message', (topic, _payload, { retain }) => void (retain || seen.push(topic.split('/').at(-1) ?? '')))
    await spy.subscribeAsync('untag/#', { qos: 1 })
  }

  beforeAll(async () => {
    brokers = [await mosquitto(() => ['allow_anonymous true']), await mosquitto(() => ['allow_anonymous true'])]
    for (const broker of brokers) await broker.start()
    env['UNTAG_MQTT_URL'] = `mqtt://127.0.0.1:${brokers[0]!.port}`
    await watch(brokers[0]!)
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({
      brokerPort: brokers[0]!.port,
      cloudIn: { env },
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
    })
    await eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
  }, 60_000)
  afterAll(async () => {
    await spy.endAsync(true)
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
    for (const broker of brokers) await broker.kill()
  })

  const release = (receipt: string) =>
    journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
  const buyOne = () => journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
  const completions = async (purchaseId: string) =>
    (await journey.events({ purchaseId })).filter((e) => e.type === 'protection.action.completed').length
  const synced = () => eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)
  const status = (fields: Json) =>
    eventually(
      JSON.stringify(fields),
      async () => {
        const now = await journey.status()
        return Object.keys(fields).every((name) => now[name] === fields[name])
      },
      30_000,
    )
  const releaseOnce = async (offline: boolean) => {
    const { transactionId, receipt } = await buyOne()
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed', offline })
    return transactionId
  }

  it('carries events, acknowledgements and documents', async () => {
    await status({ online: true, broker: true })
    const purchaseId = await releaseOnce(false)
    await synced()
    expect(await completions(purchaseId)).toBe(1)
    expect(seen).toEqual(expect.arrayContaining(['events', 'ack', 'items', 'fresh']))
  })

  it('works over HTTP while the broker is dead, and returns to the broker', async () => {
    await brokers[0]!.kill()
    await status({ online: true, broker: false })
    const purchaseId = await releaseOnce(false)
    await synced()
    expect(await completions(purchaseId)).toBe(1)
    await brokers[0]!.start()
    await watch(brokers[0]!)
    await status({ online: true, broker: true })
    await eventually('the cloud at the broker', () => Promise.resolve(seen.includes('alive')), 30_000)
    await releaseOnce(false)
    await synced()
    expect(seen).toEqual(expect.arrayContaining(['events', 'ack']))
  })

  it('releases offline during a partition, and reports once', async () => {
    const { transactionId, receipt } = await buyOne()
    journey.wire.cut()
    await status({ online: false })
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    journey.wire.restore()
    await status({ online: true, broker: true })
    await synced()
    expect(await completions(transactionId)).toBe(1)
  })

  it('releases while the cloud is dead, and follows the restarted cloud to another broker', async () => {
    const { transactionId, receipt } = await buyOne()
    await journey.cloud.kill()
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    await watch(brokers[1]!)
    env['UNTAG_MQTT_URL'] = `mqtt://127.0.0.1:${brokers[1]!.port}`
    env['UNTAG_PUBLIC_MQTT_URL'] = env['UNTAG_MQTT_URL']
    await journey.startCloud()
    await eventually('the agent at the new broker', () => Promise.resolve(seen.includes('state')), 30_000)
    await status({ online: true, broker: true })
    await releaseOnce(false)
    await synced()
    expect(await completions(transactionId)).toBe(1)
    expect(seen).toEqual(expect.arrayContaining(['events', 'ack']))
  })
})
