// @module-tag extended
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { decodeJwt } from 'jose'
import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openMqttLine } from '../../host/mqtt-line.ts'
import { realPlatform } from '../../host/platform.ts'
import { enrol } from '../../edge-agent/enrolment/enrol.ts'
import { agentTopic, AGENT_TOPICS, storeTopic, STORE_TOPICS } from '../../policy/mqtt-topics.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../support/cloud.ts'
import { CONNACK, hostileBroker, type HostileBroker } from '../support/hostile-broker.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'

/** Encodes a PUBLISH packet with QoS 0 to 2. */
function publish(topic: string, payload: Buffer, qos = 0): Buffer {
  const name = Buffer.from(topic)
  const body = Buffer.concat([
    Buffer.from([name.length >> 8, name.length & 0xff]),
    name,
    ...(qos > 0 ? [Buffer.from([0, 1])] : []),
    payload,
  ])
  return Buffer.concat([Buffer.from([0x30 | (qos << 1)]), lengthOf(body.length), body])
}
function lengthOf(bytes: number): Buffer {
  const digits: number[] = []
  for (let left = bytes; digits.length === 0 || left > 0; left = Math.floor(left / 128))
    digits.push((left % 128) | (left >= 128 ? 0x80 : 0))
  return Buffer.from(digits)
}
const MEGABYTE = 1024 * 1024
const once = (socket: Socket) => new Promise<void>((resolve) => socket.once('data', () => resolve()))

/** Attacks on the MQTT protocol. */
describe('an MQTT connection to a broker that breaks the protocol', () => {
  const open = async (trick: (socket: Socket) => void) => {
    const broker = await hostileBroker()
    broker.trick = trick
    const received: string[] = []
    let reportClose: (why: string) => void = () => undefined
    const closed = new Promise<string>((resolve) => (reportClose = resolve))
    const will = { topic: 't', payload: 'gone' }
    const line = openMqttLine(
      {
        url: broker.url,
        clientId: 'a',
        username: 'a',
        password: 'p',
        will,
        onMessage: (topic) => void received.push(topic),
        onClosed: reportClose,
      },
      2_000,
    )
    return { broker, line, received, closed }
  }
  const afterConnack = (bytes: () => Buffer | undefined) => (socket: Socket) => {
    void once(socket).then(() => {
      socket.write(CONNACK)
      const pour = () => {
        for (let next = bytes(); next; next = bytes()) if (!socket.write(next)) return void socket.once('drain', pour)
      }
      pour()
    })
  }
  const times = (count: number, bytes: Buffer) => {
    let left = count
    return () => (left-- > 0 ? bytes : undefined)
  }

  it.each([
    [
      'a packet of 250 MB',
      [Buffer.concat([Buffer.from([0x30]), lengthOf(250 * MEGABYTE)]), Buffer.alloc(MEGABYTE)],
      200,
      /a packet over/,
    ],
    ['an endless length', [Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])], 1, /packet over|Invalid/],
    ['QoS 2 messages', [publish('t', Buffer.alloc(1_000), 2)], 50_000, /QoS 2/],
    ['bytes that are not a packet', [Buffer.from([0xf0, 0, 0, 0, 1, 2, 3])], 1, /./],
    ['a second CONNACK', [CONNACK], 1, /CONNACK/],
    ['a flood of PINGRESP', [Buffer.alloc(65_536, Buffer.from([0xd0, 0]))], 100, /too many packets/],
    ['a flood of SUBACK', [Buffer.alloc(65_535, Buffer.from([0x90, 3, 0, 1, 0]))], 100, /too many packets/],
    ['a flood of messages', [Buffer.alloc(62_000, publish('t', Buffer.from('x')))], 100, /too many packets/],
  ] as const)('ends at %s', async (_what, parts, count, why) => {
    const [first, rest = first] = parts
    let isFirst = true
    const more = times(count, rest)
    const { broker, line, closed } = await open(afterConnack(() => (isFirst ? ((isFirst = false), first) : more())))
    const before = process.memoryUsage().rss
    // The close is reported once, before or after the connection is returned.
    expect(
      await Promise.race([
        closed,
        line.then(
          () => closed,
          (error: Error) => error.message,
        ),
      ]),
    ).toMatch(why)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MEGABYTE)
    await broker.close()
  })

  it('ends when the broker reads no message', async () => {
    const { broker, line, closed } = await open((socket) => void once(socket).then(() => socket.write(CONNACK)))
    const opened = await line
    for (let i = 0; i < 20; i++) opened.publish('t', 'x'.repeat(100_000), { retain: false })
    expect(await closed).toBe('the broker acknowledges no messages')
    await broker.close()
  })
})

describe('an agent whose broker is hostile', () => {
  const random = seededRandom(6)
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  let broker: HostileBroker
  let journey: Journey
  let agentId: string
  const bought: string[] = []

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    broker = await hostileBroker()
    journey = await openJourney({
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
      agentOptions: ['--mqtt-url', broker.url],
    })
    agentId = String(journey.agent.ready['agentId'])
    await isUp()
  })
  afterAll(async () => {
    await journey.stop()
    await broker.close()
    for (const board of Object.values(boards)) await board.close()
  })

  const isUp = () =>
    eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
  const release = (body: Json) =>
    journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', ...body })
  const megabytes = () =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${journey.agent.child.pid}/status`, 'utf8'))?.[1]) / 1_024
  const synced = () => eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)

  /**
   * Checks that a paid unit is released once and an invalid receipt never. During the flood the board may respond too
   * late.
   */
  async function decidesRight({ isFlooding = false } = {}): Promise<void> {
    const { transactionId, receipt } = await journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
    const before = boards.station.pulses()
    const released = await release({ receipt })
    expect(released).toMatchObject({
      authorized: true,
      outcome: isFlooding ? expect.stringMatching(/^(confirmed|unknown)$/) : 'confirmed',
    })
    expect(await release({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await release({ receipt: `${receipt.slice(0, -8)}AAAAAAAA` })).toMatchObject({ authorized: false })
    expect(boards.station.pulses()).toBe(before + 1)
    if (released.outcome === 'confirmed') bought.push(transactionId)
  }

  it('reports by HTTP the events that the broker discards', async () => {
    await decidesRight()
    await synced()
    expect(broker.received.some(({ topic }) => topic.endsWith('/events'))).toBe(true)
    expect((await journey.api.call('fetchPurchase', { transactionId: bought[0] ?? '' })) as Json).toMatchObject({
      securityTagStatus: 'deactivated',
    })
  })

  it('gives the broker a password that the API of the cloud rejects', async () => {
    const { password: assertion } = broker.logins.at(-1) as { password: string }
    const login = await fetch(`${journey.baseUrl}/agentLogin`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId, assertion }),
    })
    expect(login.status).toBe(401)
  })

  it('decides correctly during a flood of true, old, foreign and forged messages on every topic', async () => {
    // A broker between agent and cloud can log in to the cloud's broker, so it has valid messages.
    const { password } = broker.logins.at(-1) as { password: string }
    const cloud = await connectAsync(String(journey.cloud.ready['mqttUrl']), {
      protocolVersion: 4,
      reconnectPeriod: 0,
      clientId: agentId,
      username: agentId,
      password,
    })
    const received: { topic: string; payload: string }[] = []
    cloud.on('message', (topic, payload) => void received.push({ topic, payload: payload.toString() }))
    await cloud.subscribeAsync([
      ...STORE_TOPICS.map((name) => storeTopic(journey.storeId, name)),
      agentTopic(journey.storeId, agentId, 'ack'),
    ])
    const batch = broker.received.find(({ topic }) => topic.endsWith('/events'))
    await cloud.publishAsync(agentTopic(journey.storeId, agentId, 'events'), batch?.payload ?? '', { qos: 1 })
    await eventually(
      'valid messages on every topic',
      async () => new Set(received.map(({ topic }) => topic)).size === 6,
    )
    const old = received.splice(0)

    const { policy } = (await journey.api.call('fetchProtectionPolicy', { storeId: journey.storeId })) as Json
    await journey.api.call('updateProtectionPolicy', {
      storeId: journey.storeId,
      policy: { ...policy, offline: { ...policy.offline, hardCount: 4 } },
    })
    const { code } = await journey.api.call('createEnrolmentCode', { storeId: journey.otherStoreId })
    const foreign = await enrol({
      cloud: String(journey.cloud.ready['baseUrl']),
      code: String(code),
      platform: realPlatform(),
      fetch,
    })
    if (!foreign.ok) throw new Error(foreign.why)
    await eventually('a newer policy', async () => received.some(({ topic }) => topic.endsWith('/policy')))
    cloud.end(true)

    const signed = [
      ...old.map(({ payload }) => payload),
      ...received.map(({ payload }) => payload),
      ...foreign.documents,
      batch?.payload ?? '',
      password,
    ]
    const number = (below: number) => Math.floor((Buffer.from(random.bytes(4)).readUInt32BE() / 2 ** 32) * below)
    const forge = [
      (text: string) => Buffer.from(text),
      (text: string) => Buffer.from(text.slice(0, number(text.length))),
      (text: string) =>
        Buffer.from(
          text.replace(/^[^.]+/, (header) =>
            Buffer.from(Buffer.from(header, 'base64url').toString().replace('EdDSA', 'none')).toString('base64url'),
          ),
        ),
      (text: string) => Buffer.from(text.slice(0, text.lastIndexOf('.') + 1)),
      (text: string) => {
        const bytes = Buffer.from(text)
        bytes[number(bytes.length)] = 65 + number(26)
        return bytes
      },
      (text: string) => Buffer.from(`${text} `),
      () => Buffer.from(random.bytes(1 + number(2_000))),
      () => Buffer.alloc(200_000, 'A'),
      () => Buffer.from('{"command":"revoke"}'),
    ]
    const topics = [
      ...STORE_TOPICS.map((name) => storeTopic(journey.storeId, name)),
      ...AGENT_TOPICS.filter((name) => name === 'ack' || name === 'command').map((name) =>
        agentTopic(journey.storeId, agentId, name),
      ),
    ]
    // The agent gets retained messages after each reconnect.
    for (const { topic, payload } of old) await broker.publish(topic, payload, { retain: true })

    let isFlooding = true
    let sentCount = 0
    const flood = (async () => {
      while (isFlooding) {
        const [topic = '', text = '', change] = [
          topics[number(topics.length)],
          signed[number(signed.length)],
          forge[number(forge.length)],
        ]
        await broker.publish(topic, change?.(text) ?? text)
        // This process also simulates the board, which must respond in time.
        sentCount++
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    try {
      const before = broker.connections
      for (let n = 0; n < 5; n++) await decidesRight({ isFlooding })
      await eventually('a new connection after the flood', async () => broker.connections > before && sentCount > 5_000)
      await decidesRight({ isFlooding })
    } finally {
      // Stops the flood before other tests run in this process.
      isFlooding = false
      await flood
    }

    await synced()
    const versions = (messages: typeof received) =>
      messages.filter(({ topic }) => topic.endsWith('/policy')).map(({ payload }) => Number(decodeJwt(payload)['ver']))
    const newest = Math.max(...versions(received))
    expect(newest).toBeGreaterThan(Math.max(...versions(old)))
    await eventually('the newest policy', async () => (await journey.status()).policyVersion === newest)
    expect(megabytes()).toBeLessThan(400)
    expect(journey.agent.child.exitCode).toBeNull()
    expect(journey.agent.stderr().length).toBeLessThan(30_000)
  })

  it('reports the rejected documents in a few events', async () => {
    const refused = (await journey.events({ type: 'protection.exception.raised' })).filter(
      (e) => e.reason === 'refused_document',
    )
    const details = refused.map((e) => String(e.detail))
    expect(details.some((d) => d.includes('wrong_audience'))).toBe(true)
    expect(details.some((d) => d.includes('bad_signature'))).toBe(true)
    expect(details.some((d) => d.includes('more messages than a store can cause'))).toBe(true)
    expect(refused.length).toBeLessThan(60)
  })

  it.each(['closes at once', 'stays silent'] as const)(
    'is online with the cloud although the broker %s',
    async (trick) => {
      broker.trick = trick
      const before = broker.connections
      await journey.agent.kill()
      await journey.startAgent()
      await isUp()
      await eventually('a connection attempt', async () => broker.connections > before)
      await eventually('online', async () => (await journey.status()).online === true)
      await decidesRight()
      await synced()
    },
  )

  it('reports every event once', async () => {
    const events = await journey.events()
    expect(new Set(events.map((e) => e.eventId)).size).toBe(events.length)
    for (const transactionId of bought) {
      expect(
        events.filter((e) => e.purchaseId === transactionId && e.type === 'protection.action.completed'),
      ).toHaveLength(1)
      expect((await journey.api.call('fetchPurchase', { transactionId })) as Json).toMatchObject({
        securityTagStatus: 'deactivated',
      })
    }
    expect(events.filter((e) => e.reason === 'double_redeem')).toEqual([])
  })
})
