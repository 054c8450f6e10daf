// @module-tag extended
import { join } from 'node:path'
import { connectAsync, type MqttClient } from 'mqtt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realPlatform } from '../../host/platform.ts'
import { brokerPassword } from '../../cloud/platform/authority/authority.ts'
import { keysOf, loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { agentTopic, storeTopic } from '../../policy/mqtt-topics.ts'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'
import { IS_FULL_SIZE, itInFullSize } from '../support/full-size.ts'
import { CLOUD_LOGIN, MANAGED_BROKERS, hasProgram, type ManagedBroker } from '../support/outside-brokers.ts'
import { runProcess } from '../support/processes.ts'
import { newEpc } from '../support/shop.ts'
import { readIdentity } from '../../edge-agent/identity/identity.ts'
import { secretFiles } from '../../host/secret-files.ts'

/** Why the journey is skipped. RabbitMQ takes too long for each run of CI: `.ci/full` runs it. */
function whyNot(program: string): string | undefined {
  if (!hasProgram(program)) return `(install ${program})`
  return program === 'rabbitmq-server' && !IS_FULL_SIZE ? '(set UNTAG_TEST_FULL=true)' : undefined
}

describe.each(MANAGED_BROKERS)('a store with $name as its broker', ({ name, program, make }) => {
  describe.skipIf(whyNot(program))(whyNot(program) ?? 'that takes its users from `untag broker sync`', () => {
    // Outages do not depend on the configuration of the broker, so CI has them with one broker.
    const itOnce = name === 'Mosquitto' ? it : itInFullSize
    let journey: Journey
    let broker: ManagedBroker
    let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
    const env: NodeJS.ProcessEnv = {}
    let spy: MqttClient | undefined
    let seen: string[]

    const open = (username: string, password: string, clientId = username) =>
      connectAsync(`mqtt://127.0.0.1:${broker.port}`, { username, password, clientId, reconnectPeriod: 0 }, false)

    /** Notes the topics of all messages from now on, with the rights of the cloud. */
    async function watch(): Promise<void> {
      await spy?.endAsync(true)
      seen = []
      spy = await open(CLOUD_LOGIN.username, CLOUD_LOGIN.password, 'untag-cloud-5b')
      spy.on('message', (topic, _payload, { retain }) => void (retain || seen.push(topic.split('/').at(-1) ?? '')))
      await spy.subscribeAsync(['untag/v1/+/+', 'untag/v1/+/+/+'], { qos: 1 })
    }

    const sync = () =>
      runProcess(['broker', 'sync', '--format', broker.format, '--out', broker.file, '--json'], {
        UNTAG_DATA_DIR: join(journey.folder, 'cloud'),
        ...env,
      })

    beforeAll(async () => {
      broker = await make()
      const { username, password } = CLOUD_LOGIN
      env['UNTAG_MQTT_URL'] = `mqtt://${username}:${encodeURIComponent(password)}@127.0.0.1:${broker.port}`
      boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
      journey = await openJourney({
        brokerPort: broker.port,
        cloudIn: { env },
        boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
      })
      await eventually('boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
    })
    afterAll(async () => {
      await spy?.endAsync(true)
      await journey.stop()
      for (const board of Object.values(boards)) await board.close()
      await broker.kill()
    })

    const release = (receipt: string) =>
      journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
    const buyOne = () => journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
    const completions = async (purchaseId: string) =>
      (await journey.events({ purchaseId })).filter((e) => e.type === 'protection.action.completed').length
    const synced = () => eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)
    const status = (fields: Json) =>
      eventually(JSON.stringify(fields), async () => {
        const now = await journey.status()
        return Object.keys(fields).every((field) => now[field] === fields[field])
      })
    const releaseOnce = async () => {
      const { transactionId, receipt } = await buyOne()
      expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
      await synced()
      expect(await completions(transactionId)).toBe(1)
    }

    it('works over HTTP until the broker runs, and then over the broker', async () => {
      await releaseOnce()
      const { stdout, stderr } = await sync()
      expect([JSON.parse(stdout), stderr]).toEqual([{ out: broker.file, agents: 1, changed: true }, ''])
      expect(JSON.parse((await sync()).stdout)).toMatchObject({ changed: false })
      await broker.start()
      await watch()
      await status({ online: true, broker: true })
      await eventually('the cloud', () => Promise.resolve(seen.includes('alive')))
      await releaseOnce()
      // The cloud may have announced all items before the spy listened.
      const [{ ean }] = journey.products
      const item = { epc: newEpc(), ean, protectionTechnology: 'uhf_rfid' }
      await journey.api.call('registerProtectedItems', { storeId: journey.storeId, items: [item] })
      for (const topic of ['events', 'ack', 'items', 'fresh'])
        await eventually(topic, () => Promise.resolve(seen.includes(topic)))
    })

    itOnce('releases offline in a partition and while the cloud is dead, and reports once', async () => {
      const [first, second] = [await buyOne(), await buyOne()]
      journey.wire.cut()
      await status({ online: false })
      expect(await release(first.receipt)).toMatchObject({ authorized: true, offline: true })
      await journey.cloud.kill()
      journey.wire.restore()
      expect(await release(second.receipt)).toMatchObject({ authorized: true, offline: true })
      await journey.startCloud()
      await status({ online: true, broker: true })
      await synced()
      expect([await completions(first.transactionId), await completions(second.transactionId)]).toEqual([1, 1])
    })

    it('limits the holder of a stolen agent password to the topics of that agent', async () => {
      const { agentId, storeId } = readIdentity(join(journey.folder, 'edge'), secretFiles)!
      const other = 'agt_06H0JCJ0000000000000000000'
      const password = await passwordOf(agentId)
      const forged: string[] = []
      spy!.on('message', (topic, payload) => void (payload.toString() === 'forged' && forged.push(topic)))
      await expect(open(agentId, 'wrong')).rejects.toThrow()
      const heard: string[] = []
      /** Does something as the thief. Ends when the broker answers or closes the connection, or after 300 ms. */
      async function steal(act: (thief: MqttClient, done: () => void) => void): Promise<void> {
        // The agent has the same name and comes back: a broker may refuse both for a second (NATS does).
        const thief = await eventually('a line of the thief', () => open(agentId, password).catch(() => undefined))
        thief.on('error', () => undefined)
        thief.on('message', (topic) => void heard.push(topic))
        await new Promise<void>((resolve) => {
          thief.once('close', resolve)
          setTimeout(resolve, 300)
          act(thief, resolve)
        })
        thief.end(true)
      }
      const publish = (topic: string) =>
        steal((thief, done) => thief.publish(topic, 'forged', { qos: 1 }, () => done()))
      for (const topic of [agentTopic(storeId, other, 'events'), storeTopic(storeId, 'fresh'), 'untag/v1/cloud/x/end'])
        await publish(topic)
      for (const filter of ['untag/#', agentTopic('+', '+', 'events'), storeTopic('st_other', 'policy')])
        await steal((thief) => thief.subscribe(filter, { qos: 1 }))
      // It may publish as this agent, but the cloud accepts only what the agent's key signed.
      const own = agentTopic(storeId, agentId, 'events')
      await eventually('the forged batch', async () => {
        await publish(own)
        return forged.includes(own)
      })
      expect([[...new Set(forged)], heard]).toEqual([[own], []])
      await status({ online: true, broker: true })
      await releaseOnce()
    })

    it(`leaves no password in logs of ${name}`, () => {
      const logs = journey.cloud.stderr() + journey.agent.stderr()
      expect(logs).not.toContain(CLOUD_LOGIN.password)
      expect(logs).not.toContain(encodeURIComponent(CLOUD_LOGIN.password))
    })

    itOnce('works over HTTP while the broker is dead, and over the broker after its restart', async () => {
      await broker.kill()
      await status({ online: true, broker: false })
      await releaseOnce()
      await broker.start()
      await status({ online: true, broker: true })
      await releaseOnce()
    })

    itOnce('follows the cloud to the embedded broker without a restart', async () => {
      await spy?.endAsync(true)
      await broker.kill()
      await journey.cloud.stop()
      delete env['UNTAG_MQTT_URL']
      await journey.startCloud()
      await status({ online: true, broker: true })
      await releaseOnce()
    })

    /** The password of the agent, as a thief reads it in its memory. */
    async function passwordOf(agentId: string): Promise<string> {
      const keys = await loadKeyFiles(keysOf(join(journey.folder, 'cloud')), secretFiles, realPlatform().random)
      return brokerPassword(keys, agentId)
    }
  })
})
