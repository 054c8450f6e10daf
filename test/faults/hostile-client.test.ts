// @module-tag extended
import { readFileSync } from 'node:fs'
import { connect as tcpConnect, type Socket } from 'node:net'
import { connect as connectMqtt, connectAsync, type MqttClient } from 'mqtt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realPlatform } from '../../host/platform.ts'
import { enrol } from '../../edge-agent/enrolment/enrol.ts'
import { messageSigner, type MessageSigner } from '../../edge-agent/link/login/sign-messages.ts'
import type { Identity } from '../../edge-agent/identity/identity.ts'
import { agentTopic, storeTopic } from '../../policy/mqtt-topics.ts'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'

/** Attackers use other IP addresses of this machine than the agents. */
const STRANGERS = '127.0.1'

/** A compromised agent and strangers attack the cloud's broker while an honest agent works. */
describe('a cloud whose broker is attacked', () => {
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  let journey: Journey
  let identity: Identity
  let messages: MessageSigner
  let port: number
  let isOver = false
  const sockets = new Set<Socket>()
  const attacks: Promise<void>[] = []
  const spied: string[] = []
  let refusedLogins = 0
  let linesLost = 0

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
    })
    await eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
    const { code } = await journey.api.call('createEnrolmentCode', { storeId: journey.storeId })
    const enrolled = await enrol({
      cloud: String(journey.cloud.ready['baseUrl']),
      code: String(code),
      platform: realPlatform(),
      fetch,
    })
    if (!enrolled.ok) throw new Error(enrolled.why)
    identity = enrolled.identity
    messages = messageSigner(identity)
    port = journey.brokerPort
  })
  afterAll(async () => {
    isOver = true
    for (const socket of sockets) socket.destroy()
    await Promise.all(attacks)
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
  })

  const post = async (operation: string, body: object): Promise<Json> =>
    (
      await fetch(`${journey.baseUrl}/${operation}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    ).json()
  const megabytes = () =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${journey.cloud.child.pid}/status`, 'utf8'))?.[1]) / 1_024

  /** Connects as the compromised agent, with its key. */
  async function line(): Promise<MqttClient> {
    const { agentId } = identity
    const { challenge } = await post('agentLogin', { agentId })
    const { mqttChallenge } = await post('agentLogin', {
      agentId,
      assertion: messages.assertion(challenge, Date.now()),
    })
    const client = await connectAsync(`mqtt://127.0.0.1:${port}`, {
      protocolVersion: 4,
      reconnectPeriod: 0,
      clientId: agentId,
      username: agentId,
      password: messages.assertion(mqttChallenge, Date.now()),
    })
    client.on('error', () => undefined)
    return client
  }
  const closed = (client: MqttClient) =>
    new Promise<void>((resolve) => (client.connected ? client.once('close', () => resolve()) : resolve()))

  /** Repeats the attack until the test ends. */
  function keepUp(attack: () => Promise<void>): void {
    attacks.push(
      (async () => {
        while (!isOver) await attack().catch(() => undefined)
      })(),
    )
  }

  it('disconnects agents that publish to forbidden topics, and sends them nothing', async () => {
    const victim = String(journey.agent.ready['agentId'])
    const spy = await line()
    spy.on('message', (topic) => void spied.push(topic))
    const wanted = [
      '#',
      '+/#',
      '$SYS/#',
      `untag/v1/+/${victim}/#`,
      agentTopic(journey.storeId, victim, 'events'),
      agentTopic(journey.storeId, victim, 'ack'),
      storeTopic(journey.otherStoreId, 'policy'),
    ]
    await spy.subscribeAsync(wanted).catch(() => undefined)
    // Waits with other connections of this agent, because they would replace this one.
    await journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
    for (const topic of [
      agentTopic(journey.storeId, victim, 'events'),
      agentTopic(journey.storeId, victim, 'state'),
      agentTopic(journey.storeId, identity.agentId, 'ack'),
      storeTopic(journey.storeId, 'fresh'),
    ]) {
      const client = await line()
      client.publish(topic, 'x', { qos: 1 }, () => undefined)
      await closed(client)
    }
    const huge = await line()
    huge.stream.write(Buffer.concat([Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(1024 * 1024)]))
    await closed(huge)
    expect(spied).toEqual([])
  })

  it('serves the honest agent during all attacks', async () => {
    // Opens 2,400 idle connections from 40 addresses, and again after the broker closes them.
    keepUp(async () => {
      const cut = Array.from({ length: 2_400 }, (_, n) => {
        const socket = tcpConnect({ port, host: '127.0.0.1', localAddress: `${STRANGERS}.${1 + (n % 40)}` })
        sockets.add(socket)
        socket.on('error', () => undefined)
        return new Promise<void>((resolve) =>
          socket.on('close', () => (sockets.delete(socket), linesLost++, resolve())),
        )
      })
      await Promise.all(cut)
    })
    // Guesses passwords one after the other.
    keepUp(async () => {
      const client = connectMqtt(`mqtt://127.0.0.1:${port}`, {
        protocolVersion: 4,
        reconnectPeriod: 0,
        clientId: identity.agentId,
        username: identity.agentId,
        password: 'eyJhbGciOiJFZERTQSJ9.e30.x',
      })
      await new Promise<void>((resolve) =>
        client.on('error', () => (refusedLogins++, resolve())).on('close', () => resolve()),
      )
      client.end(true)
    })
    // The compromised agent sends thousands of states and invalid batches.
    keepUp(async () => {
      const client = await line()
      const state = JSON.stringify({ online: true, observedAt: new Date().toISOString() })
      for (let n = 0; n < 4_000 && !isOver && client.connected; n++) {
        client.publish(agentTopic(identity.storeId, identity.agentId, 'state'), state, { qos: 0, retain: true })
        if (n % 20 === 0)
          await client.publishAsync(agentTopic(identity.storeId, identity.agentId, 'events'), 'A'.repeat(100_000), {
            qos: 1,
          })
      }
      client.end(true)
    })

    const decided: string[] = []
    for (let n = 0; n < 6; n++) {
      const { transactionId, receipt } = await journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
      const body = { deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt }
      expect(await journey.authorize(body)).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
      expect(await journey.authorize(body)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      expect(await journey.status()).toMatchObject({ online: true, broker: true })
      decided.push(transactionId)
    }
    await eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)
    for (const transactionId of decided)
      expect((await journey.api.call('fetchPurchase', { transactionId })) as Json).toMatchObject({
        securityTagStatus: 'deactivated',
      })
    // The honest agent can connect during the attack.
    await journey.agent.kill()
    await journey.startAgent()
    await eventually('a broker connection', async () => (await journey.status()).broker === true)
    await eventually('the attacks', async () => refusedLogins > 50 && linesLost > 50)
    isOver = true
    expect(journey.cloud.child.exitCode).toBeNull()
    expect(megabytes()).toBeLessThan(500)
    expect(journey.cloud.stderr()).not.toMatch(/"level":(50|60)/)
  })
})
