import { once } from 'node:events'
import { connect as tcpConnect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Aedes } from 'aedes'
import { decodeJwt } from 'jose'
import { connectAsync, type MqttClient } from 'mqtt'
import { generate, parser } from 'mqtt-packet'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { openMqttLine } from '../../../../host/mqtt-line.ts'
import { realPlatform } from '../../../../host/platform.ts'
import { PACKET_LIMITS, BROKER_LIMITS } from '../../../../cloud/service/messaging/packet-guard.ts'
import { startBroker, type Broker } from '../../../../cloud/service/messaging/embedded-broker.ts'
import type { ItemsClaims } from '../../../../policy/documents/item-documents.ts'
import { LINES_PER_MINUTE } from '../../../../policy/rate-limited-log.ts'
import { agentTopic, storeTopic } from '../../../../policy/mqtt-topics.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { EXTENDED } from '../../../support/extended.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'
import { waitFor } from '../../../support/wait-for.ts'

describe('the broker', () => {
  let shop: Shop
  let broker: Broker
  let agent: TestAgent
  let other: TestAgent
  const fromAgents: { topic: string; payload: string }[] = []
  const warnings: string[] = []
  const clients: MqttClient[] = []
  const log = {
    info: () => undefined,
    warn: (fields: object) => void warnings.push(JSON.stringify(fields)),
    error: () => undefined,
  }

  const makeAedes = vi.spyOn(Aedes, 'createBroker')
  beforeAll(async () => {
    shop = await openShop('sqlite')
    const { hooks } = shop.cloud.cloud.messages
    broker = await startBroker(
      { host: '127.0.0.1', port: 0 },
      {
        ...hooks,
        onMessage: (from, topic, payload) => (
          fromAgents.push({ topic, payload }),
          hooks.onMessage(from, topic, payload)
        ),
      },
      { log, platform: realPlatform() },
    )
    shop.cloud.cloud.attachBroker(broker)
    agent = await enrolTestAgent(shop)
    other = await enrolTestAgent(shop)
  })
  afterAll(async () => {
    for (const client of clients) client.end(true)
    await broker.close()
    await shop.stop()
  })

  const connect = async (as: TestAgent, options: object = {}, url = `mqtt://127.0.0.1:${broker.port}`) => {
    await as.login()
    const client = await connectAsync(url, {
      protocolVersion: 4,
      reconnectPeriod: 0,
      clientId: as.agentId,
      username: as.agentId,
      password: as.messages.assertion(as.mqttChallenge, Date.now()),
      ...options,
    })
    clients.push(client)
    return client
  }
  const closed = (client: MqttClient) =>
    new Promise<void>((resolve) => (client.connected ? client.once('close', () => resolve()) : resolve()))

  it('accepts a password that the agent signed, once', async () => {
    const client = await connect(agent)
    await waitFor(() => expect(broker.connected().has(agent.agentId)).toBe(true))
    const password = agent.messages.assertion(agent.mqttChallenge, Date.now())
    await expect(
      connectAsync(`mqtt://127.0.0.1:${broker.port}`, {
        reconnectPeriod: 0,
        clientId: agent.agentId,
        username: agent.agentId,
        password,
      }),
    ).rejects.toThrow(/Bad username|Not authorized/i)
    client.end(true)
  })

  it('stores that an agent without a last will is no longer connected, and refreshes open pages', async () => {
    const { tenant } = await shop.cloud.db.database.reads
      .selectFrom('agent')
      .select('tenant')
      .where('agent_id', '=', agent.agentId)
      .executeTakeFirstOrThrow()
    const isOnline = async () => {
      const { agents } = await shop.ok('fetchAgents', { storeId: shop.storeId })
      return agents.find((each: { agentId: string }) => each.agentId === agent.agentId).online
    }
    const client = await connect(agent)
    client.publish(
      agentTopic(shop.storeId, agent.agentId, 'state'),
      JSON.stringify({ online: true, observedAt: new Date().toISOString() }),
    )
    await waitFor(async () => expect(await isOnline()).toBe(true))
    let refreshed = 0
    const filter = { tenant, topics: new Set(['agents']), storeIds: null }
    const stop = shop.cloud.cloud.services.changes.subscribe(filter, () => refreshed++)
    // As the cut network of the demonstration: a clean end.
    client.end()
    await waitFor(async () => expect(await isOnline()).toBe(false))
    await waitFor(() => expect(refreshed).toBe(1))
    stop?.()
  })

  it('closes the silent connection of an agent within 20 s: it asks for a keepalive that is short enough', async () => {
    const listener = createServer()
    listener.listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    const connecting = once(listener, 'connection') as Promise<[Socket]>
    const opened = openMqttLine(
      { url: `mqtt://127.0.0.1:${port}`, clientId: 'a', username: 'a', password: 'b' } as never,
      5_000,
    )
    const [socket] = await connecting
    const packets = parser()
    const keepalive = new Promise<number>((resolve) =>
      packets.on('packet', (packet) => resolve(packet.cmd === 'connect' ? (packet.keepalive ?? 0) : 0)),
    )
    socket.on('data', (data) => packets.parse(data))
    // MQTT 3.1.1 §3.1.2.10: a broker closes the connection after one and a half times the keepalive.
    const silentSeconds = (await keepalive) * 1.5
    expect(silentSeconds).toBeGreaterThan(0)
    expect(silentSeconds).toBeLessThan(20)
    socket.destroy()
    await expect(opened).rejects.toThrow()
    listener.close()
  })

  it.each([
    ['nobody', {}],
    ['a name without password', { username: 'agt_x', clientId: 'agt_x' }],
    ['nonsense', { username: 'agt_x', clientId: 'agt_x', password: 'x' }],
  ])('rejects %s', async (_name, options) => {
    await expect(connectAsync(`mqtt://127.0.0.1:${broker.port}`, { reconnectPeriod: 0, ...options })).rejects.toThrow()
  })

  it('rejects an agent that uses the client id of another agent', async () => {
    await agent.login()
    const password = agent.messages.assertion(agent.mqttChallenge, Date.now())
    await expect(
      connectAsync(`mqtt://127.0.0.1:${broker.port}`, {
        reconnectPeriod: 0,
        clientId: other.agentId,
        username: agent.agentId,
        password,
      }),
    ).rejects.toThrow()
    await expect(
      connectAsync(`mqtt://127.0.0.1:${broker.port}`, {
        reconnectPeriod: 0,
        clientId: other.agentId,
        username: other.agentId,
        password,
      }),
    ).rejects.toThrow()
  })

  it('disconnects a revoked agent, also when another process revoked it', async () => {
    const [here, elsewhere] = [await enrolTestAgent(shop), await enrolTestAgent(shop)]
    const lines = [await connect(here), await connect(elsewhere)]
    await waitFor(() => expect(broker.connected().has(elsewhere.agentId)).toBe(true))
    await shop.ok('revokeAgent', { agentId: here.agentId })
    await closed(lines[0] as MqttClient)
    await shop.cloud.db.database.write((db) =>
      db.updateTable('agent').set({ revoked_ms: Date.now() }).where('agent_id', '=', elsewhere.agentId).execute(),
    )
    await shop.cloud.cloud.messages.cutRevoked()
    await closed(lines[1] as MqttClient)
    await waitFor(() =>
      expect(broker.connected().has(here.agentId) || broker.connected().has(elsewhere.agentId)).toBe(false),
    )
  })

  const foreignTopics = () => [
    agentTopic(shop.storeId, other.agentId, 'events'),
    agentTopic(shop.storeId, other.agentId, 'command'),
    agentTopic(shop.storeId, agent.agentId, 'ack'),
    agentTopic(shop.otherStoreId, agent.agentId, 'events'),
    storeTopic(shop.storeId, 'policy'),
    storeTopic(shop.storeId, 'fresh'),
    '$SYS/x',
    'x',
  ]

  it('disconnects an agent that publishes to a forbidden topic', async () => {
    for (const topic of foreignTopics()) {
      fromAgents.length = 0
      const client = await connect(agent)
      const gone = closed(client)
      client.publish(topic, 'x', { qos: 1 }, () => undefined)
      await gone
      expect(fromAgents.filter((m) => m.topic === topic)).toEqual([])
    }
  })

  it('grants an agent only subscriptions to its own topics', async () => {
    const client = await connect(agent)
    const wanted = [
      ...foreignTopics().filter((t) => !t.includes('/policy') && !t.includes('/fresh') && !t.endsWith('/ack')),
      '#',
      '+/#',
      `untag/v1/${shop.storeId}/#`,
      `untag/v1/+/${agent.agentId}/ack`,
      storeTopic(shop.otherStoreId, 'policy'),
    ]
    const granted = await client.subscribeAsync(wanted).catch((error: { packet?: { granted?: number[] } }) => error)
    const codes = Array.isArray(granted) ? granted.map((g) => g.qos) : []
    expect(codes.filter((qos) => qos < 128)).toEqual([])
    client.end(true)
  })

  it('keeps nothing of what agents publish, so that their states do not fill its memory', async () => {
    const client = await connect(agent)
    fromAgents.length = 0
    await client.publishAsync(agentTopic(shop.storeId, agent.agentId, 'state'), '{}', { qos: 1, retain: true })
    expect(fromAgents).toHaveLength(1)
    const aedes = (await makeAedes.mock.results[0]?.value) as { persistence: Persistence }
    const retained: string[] = []
    for await (const packet of aedes.persistence.createRetainedStreamCombi(['#'])) retained.push(packet.topic)
    expect(retained.filter((topic) => topic.endsWith('/state'))).toEqual([])
    client.end(true)
  })
  interface Persistence {
    createRetainedStreamCombi(patterns: string[]): AsyncIterable<{ topic: string }>
  }

  it('sends the retained documents of a topic once to a connection', async () => {
    const client = await connect(agent)
    const codes = async () => {
      const granted = await client
        .subscribeAsync(storeTopic(shop.storeId, 'policy'))
        .catch(({ packet }: { packet?: { granted?: number[] } }) => packet?.granted?.map((qos) => ({ qos })) ?? [])
      return granted.map(({ qos }) => qos)
    }
    expect(await codes()).toEqual([0])
    expect(await codes()).not.toEqual([0])
    client.end(true)
  })

  it('publishes a will only to topics that the agent may use', async () => {
    const topic = agentTopic(shop.storeId, other.agentId, 'state')
    const watcher = await connect(other)
    fromAgents.length = 0
    const client = await connect(agent, {
      will: { topic, payload: Buffer.from('{"online":false}'), qos: 1, retain: true },
    })
    client.stream.destroy()
    await closed(client)
    await watcher.publishAsync(agentTopic(shop.storeId, other.agentId, 'state'), '{"online":true}', { qos: 1 })
    expect(fromAgents.filter((m) => m.payload.includes('false'))).toEqual([])
    watcher.end(true)
  })

  it('stores events, acknowledges them and publishes the store’s document versions', async () => {
    const client = await connect(agent)
    const messages: { topic: string; payload: string }[] = []
    const acked = new Promise<string>((resolve) => {
      client.on('message', (topic, payload) => {
        messages.push({ topic, payload: payload.toString() })
        if (topic.endsWith('/ack')) resolve(payload.toString())
      })
    })
    await client.subscribeAsync([
      agentTopic(shop.storeId, agent.agentId, 'ack'),
      storeTopic(shop.storeId, 'fresh'),
      storeTopic(shop.storeId, 'policy'),
    ])
    const row = agent.row({})
    await client.publishAsync(
      agentTopic(shop.storeId, agent.agentId, 'events'),
      agent.messages.batch(agent.hashBefore(row.seq), [row], Date.now()),
      { qos: 1 },
    )
    expect((await acked).split('.')).toHaveLength(3)
    const policyReceived = new Promise<void>((resolve) =>
      client.on('message', (topic) => topic.endsWith('/policy') && resolve()),
    )
    await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'handheld_reader' })
    await policyReceived
    client.end(true)
  })

  it('publishes a payment to the gates first, and the newest change to later clients', async () => {
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-1' })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: product.ean, quantity: 1, epcs: [epc] }],
    })
    const published: string[] = []
    const publish = vi
      .spyOn(broker, 'publish')
      .mockImplementation(
        ({ topic, payload }) =>
          void published.push(`${topic.split('/').at(-1)} ${topic.endsWith('/items') ? statusIn(payload, epc) : ''}`),
      )
    await shop.ok('completeTestCheckout', { transactionId })
    const publishedForPayment = [...published]
    publish.mockRestore()
    expect(publishedForPayment).toEqual(['items paid', 'fresh '])
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'returned' })
    const late = await connect(other)
    const retained = new Promise<string>((resolve) =>
      late.on('message', (_topic, payload) => resolve(payload.toString())),
    )
    await late.subscribeAsync(storeTopic(shop.storeId, 'items'))
    expect(statusIn(await retained, epc)).toBe('returned')
    late.end(true)
  })

  const statusIn = (jws: string, epc: string) =>
    decodeJwt<ItemsClaims>(jws).entries.find((entry) => entry.epc === epc)?.status

  it('disconnects a client that announces an oversized packet, before the packet arrives', async () => {
    const before = process.memoryUsage().rss
    for (const header of ['10ffffff7f', '10ffffffff7f', '10818001']) {
      const socket = tcpConnect(broker.port, '127.0.0.1')
      const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()))
      socket.on('error', () => undefined)
      socket.write(Buffer.concat([Buffer.from(header, 'hex'), Buffer.alloc(64 * 1024)]))
      await gone
    }
    expect(warnings.some((w) => w.includes('a packet over 8192 bytes'))).toBe(true)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
  })

  it('stores no sessions and rejects QoS 2', async () => {
    await expect(connect(agent, { clean: false })).rejects.toThrow(/unavailable/i)
    const client = await connect(agent)
    const gone = closed(client)
    client.publish(agentTopic(shop.storeId, agent.agentId, 'state'), '{"online":true}', { qos: 2 }, () => undefined)
    await gone
  })

  it('takes packets of an agent only as fast as its budget allows', async () => {
    const flooding = await connect(agent)
    const topic = agentTopic(shop.storeId, agent.agentId, 'state')
    const before = fromAgents.length
    const packet = generate({ cmd: 'publish', topic, payload: '{}', qos: 0, dup: false, retain: false })
    const flood = (client: MqttClient) =>
      void client.stream.write(Buffer.concat(Array.from({ length: 5_000 }, () => packet)))
    const quiet = await connect(other)
    flood(flooding)
    await waitFor(() => expect(fromAgents.length - before).toBeGreaterThanOrEqual(PACKET_LIMITS.agent.most / 2))
    // Others are served meanwhile.
    const own = agentTopic(shop.storeId, other.agentId, 'state')
    await quiet.publishAsync(own, '{"online":true}', { qos: 1 })
    expect(fromAgents.some((message) => message.topic === own)).toBe(true)
    expect(fromAgents.length - before).toBeLessThan(2_500)
    flooding.end(true)
    quiet.end(true)
  })

  it('does not delay other agents if one does not read', async () => {
    const [frozen, awake] = [await connect(agent), await connect(other)]
    const topic = storeTopic(shop.storeId, 'items')
    let received = 0
    awake.on('message', (from) => void (received += from === topic ? 1 : 0))
    await awake.subscribeAsync(topic)
    await frozen.subscribeAsync(topic)
    frozen.stream.pause()
    // Sends more bytes than the kernel and the broker can buffer for one socket.
    for (let round = 1; round <= 12; round++) {
      for (let i = 0; i < 10; i++) broker.publish({ topic, payload: 'x'.repeat(200_000), retain: false })
      await waitFor(() => expect(received).toBeGreaterThanOrEqual(round * 10))
    }
    await waitFor(() => expect(broker.connected().has(agent.agentId)).toBe(false))
    expect(warnings.some((w) => w.includes('does not read'))).toBe(true)
    frozen.end(true)
    awake.end(true)
  })

  /** Opens `count` idle sockets from 40 addresses; `again` replaces each socket that the broker closes. */
  const idleSockets = async (count: number, again: boolean) => {
    const sockets = new Set<Socket>()
    const state = { opened: 0, isOver: false }
    const open = (n: number, again: boolean) => {
      const socket = tcpConnect({ port: broker.port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (n % 40)}` })
      sockets.add(socket)
      socket.on('error', () => undefined).on('connect', () => state.opened++)
      socket.on('close', () => {
        sockets.delete(socket)
        if (again && !state.isOver) open(n, false)
      })
    }
    // The kernel would drop the first packets of many sockets opened at once.
    while (state.opened < count) {
      const before = state.opened
      for (let n = before; n < before + 200; n++) open(n, again)
      await waitFor(() => expect(state.opened).toBeGreaterThanOrEqual(before + 200))
    }
    return () => {
      state.isOver = true
      for (const socket of sockets) socket.destroy()
    }
  }

  async function checkBesideIdleSockets(again: boolean): Promise<void> {
    const before = await connect(other)
    const linesBefore = warnings.length
    const end = await idleSockets(2_400, again)
    const client = await connect(agent)
    await client.publishAsync(agentTopic(shop.storeId, agent.agentId, 'state'), '{"online":true}', { qos: 1 })
    end()
    expect(before.connected).toBe(true)
    // The log is rate-limited, so it has fewer lines than closed sockets.
    expect(warnings.length - linesBefore).toBeLessThanOrEqual(2 * LINES_PER_MINUTE)
    client.end(true)
    before.end(true)
  }
  it('accepts an agent and keeps a connected one while 2,400 idle sockets are opened, and opened again when they are cut', () =>
    checkBesideIdleSockets(true))
  it('accepts an agent and keeps a connected one while 2,400 idle sockets are open', EXTENDED, () =>
    checkBesideIdleSockets(false),
  )

  it('accepts an agent from an address that opens 200 idle sockets', async () => {
    const silent = Array.from({ length: 200 }, () => tcpConnect(broker.port, '127.0.0.1'))
    let cut = 0
    for (const socket of silent) socket.on('error', () => undefined).on('close', () => cut++)
    await waitFor(() => expect(cut).toBe(200 - BROKER_LIMITS.unauthenticatedPerNetwork))
    const client = await connect(agent)
    client.end(true)
    for (const socket of silent) socket.destroy()
  })

  it('disconnects a client that does not finish its login in time', async () => {
    const world = virtualPlatform()
    const slow = await startBroker(
      { host: '127.0.0.1', port: 0 },
      {
        authenticate: () => new Promise(() => undefined),
        onMessage: () => undefined,
        onConnected: () => undefined,
        onDisconnected: () => undefined,
        onActivity: () => undefined,
      },
      { log, platform: world },
    )
    const [silent, unfinished] = [tcpConnect(slow.port, '127.0.0.1'), tcpConnect(slow.port, '127.0.0.1')]
    let cut = 0
    for (const socket of [silent, unfinished]) socket.on('error', () => undefined).on('close', () => cut++)
    unfinished.write(
      generate({ cmd: 'connect', clientId: 'agt_x', username: 'agt_x', password: Buffer.from('x'), keepalive: 30 }),
    )
    await waitFor(() => expect(world.pending).toBe(2))
    await world.advance(4_999)
    expect(cut).toBe(0)
    await world.advance(1)
    await waitFor(() => expect(cut).toBe(2))
    await slow.close()
  })

  it('reserves a disconnected agent’s slot, and answers "server unavailable" to a new agent', async () => {
    const small = await startBroker({ host: '127.0.0.1', port: 0 }, shop.cloud.cloud.messages.hooks, {
      log,
      platform: realPlatform(),
      limits: { ...BROKER_LIMITS, agents: 1 },
    })
    const at = `mqtt://127.0.0.1:${small.port}`
    const first = await connect(agent, {}, at)
    first.end(true)
    await waitFor(() => expect(small.connected().size).toBe(0))
    await expect(connect(other, {}, at)).rejects.toThrow(/unavailable/i)
    ;(await connect(agent, {}, at)).end(true)
    small.disconnect(agent.agentId)
    await waitFor(() => expect(small.connected().size).toBe(0))
    ;(await connect(other, {}, at)).end(true)
    await small.close()
  })

  it('survives data that is not MQTT', async () => {
    for (let seed = 0; seed < 200; seed++) {
      const socket = tcpConnect(broker.port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.end(Buffer.from(Array.from({ length: 64 }, (_, i) => (seed * 31 + i * i * 7) % 256)))
      await new Promise<void>((resolve) => socket.once('close', () => resolve()))
    }
    const client = await connect(agent)
    expect(client.connected).toBe(true)
    client.end(true)
  })
})
