import { connect as connectMqtt, type ErrorWithReasonCode, type MqttClient } from 'mqtt'
import type { BrokerConnection, OpenBrokerConnection } from '../cloud/service/messaging/broker-connection.ts'
import type { MqttLineOptions, OpenMqttLine } from '../edge-agent/link/wire/broker-line.ts'
import { withPublicCas } from './tls/private-ca.ts'
import { assert } from '../policy/assert.ts'
import { budget } from '../policy/budget.ts'
import { MAX_PACKET_BYTES, mqttFraming } from '../policy/mqtt-framing.ts'
import { realPlatform } from './platform.ts'

/**
 * MQTT keepalive, s. The broker closes a connection that is silent for 1.5 times this time. So people see within 20 s
 * that an agent is cut off, and a ping may still be some seconds late.
 */
const KEEPALIVE_SECONDS = 12
/** Maximum number of messages without a PUBACK. A message stays in memory until the broker acknowledges it. */
const AGENT_UNANSWERED_LIMIT = 16
/** The same limit for the cloud, which publishes documents of all stores. */
const CLOUD_UNANSWERED_LIMIT = 20_000
/** Packets at once, and each second, that an agent accepts: messages, and what acknowledges its own. */
const AGENT_PACKETS = { most: 2_500, perSecond: 500 }
const AGENT_LIMITS = { unansweredLimit: AGENT_UNANSWERED_LIMIT, packets: AGENT_PACKETS }
const CLOSE_MS = 1_000
/** SUBACK code of a refused filter, MQTT 3.1.1 §3.9.3. */
const REFUSED = 128
/** CONNACK codes for an unknown version of the protocol: MQTT 3.1.1 §3.2.2.3 and MQTT 5 §3.2.2.2. */
const WRONG_VERSION: ReadonlySet<unknown> = new Set([1, 132])

/** Versions of MQTT as in the CONNECT packet: 3.1.1 and 5. */
type MqttVersion = 4 | 5

interface ConnectionOptions extends Omit<MqttLineOptions, 'will' | 'username' | 'password' | 'ca'> {
  ca?: string | string[]
  username?: string
  password?: string
  will?: MqttLineOptions['will']
  unansweredLimit: number
  /** Packets that the broker may send. Without it, any number: the cloud trusts the broker of its operator. */
  packets?: typeof AGENT_PACKETS
}

/** Opens the connection of an agent. Prefers MQTT 3.1.1. */
export const openMqttLine: OpenMqttLine = (options, timeoutMs) =>
  openWithVersions({ ...options, ...AGENT_LIMITS }, timeoutMs, [4, 5])

/** `openMqttLine` for an agent with a private CA. A CA in the cloud's document replaces all other CAs. */
export function mqttLineTrusting(ca: string): OpenMqttLine {
  const trusted = withPublicCas(ca)
  return (options, timeoutMs) => openWithVersions({ ca: trusted, ...options, ...AGENT_LIMITS }, timeoutMs, [4, 5])
}

/** Opens the connection of the cloud. Prefers MQTT 5, in which the broker drops messages that are too long. */
export const openBrokerConnection: OpenBrokerConnection = (options, timeoutMs) =>
  openWithVersions({ ...options, unansweredLimit: CLOUD_UNANSWERED_LIMIT }, timeoutMs, [5, 4])

async function openWithVersions(
  options: ConnectionOptions,
  timeoutMs: number,
  [version, other]: readonly [MqttVersion, MqttVersion],
): Promise<BrokerConnection> {
  try {
    return await openConnection(options, timeoutMs, version)
  } catch (error) {
    const { code } = error as Partial<ErrorWithReasonCode>
    // RabbitMQ 3.10 does not answer a CONNECT of MQTT 5, but closes the connection.
    const isClosed = version === 5 && code === undefined
    if (!WRONG_VERSION.has(code) && !isClosed) throw error
    return openConnection(options, timeoutMs, other)
  }
}

/**
 * One MQTT connection over mqtt.js, which does not reconnect: the caller does, with jitter. Limits protect the memory
 * from an endless packet, and from a broker that never acknowledges.
 */
function openConnection(
  options: ConnectionOptions,
  timeoutMs: number,
  version: MqttVersion,
): Promise<BrokerConnection> {
  return new Promise((resolve, reject) => {
    const client = connectClient(options, timeoutMs, version)
    let isOpen = false
    let isOver = false
    let isClosing = false
    let unanswered = 0

    function end(why: Error): void {
      if (isOver) return
      isOver = true
      client.end(true)
      if (isOpen) options.onClosed(why.message)
      else reject(why)
    }

    const connection: BrokerConnection = {
      publish(topic, payload, { retain }) {
        if (isOver) return
        if (++unanswered > options.unansweredLimit) return end(new Error('the broker acknowledges no messages'))
        client.publish(topic, payload, { qos: 1, retain }, () => void unanswered--)
      },
      subscribe: (topics) => subscribe(client, topics),
      close() {
        isClosing = true
        client.end(false)
        // Ends the connection if mqtt.js does not close it in time.
        setTimeout(() => end(new Error('closed')), CLOSE_MS).unref()
      },
    }
    const framing = mqttFraming(MAX_PACKET_BYTES)
    const packets = options.packets && budget(realPlatform().clock, options.packets.most, options.packets.perSecond)
    sliceChunks(client.stream, (slice) => {
      const before = framing.packets
      const fault = framing.checkChunk(slice)
      if (fault !== undefined) end(new Error(`the broker sends ${fault}`))
      if (packets?.spend(framing.packets - before) === false) end(new Error('the broker sends too many packets'))
      return !isOver
    })
    client.once('connect', () => {
      if (isOver) return
      isOpen = true
      resolve(connection)
    })
    client.on('message', (topic, payload) => {
      if (isOpen && !isOver && !isClosing) options.onMessage(topic, payload.toString())
    })
    // An invalid packet ends the connection, because the rest of the stream is unreadable.
    client.on('error', (error) => end(error))
    client.on('close', () => end(new Error(isOpen ? 'closed' : 'the broker closed the line')))
  })
}

/** Bytes that mqtt.js gets at once. It handles all packets that it got, up to 32,000 of a received chunk, in one turn. */
const SLICE = 1_024

/** Gives mqtt.js a chunk in slices, as long as `mayPass` returns true. */
function sliceChunks(stream: MqttClient['stream'], mayPass: (slice: Buffer) => boolean): void {
  const [parse] = stream.listeners('data')
  assert(parse !== undefined, 'mqtt.js reads its stream')
  stream.removeListener('data', parse as () => void)
  stream.on('data', (chunk: Buffer) => {
    for (let start = 0; start < chunk.length; start += SLICE) {
      const slice = chunk.subarray(start, start + SLICE)
      if (!mayPass(slice)) return
      parse.call(stream, slice)
    }
  })
}

function connectClient(options: ConnectionOptions, timeoutMs: number, version: MqttVersion): MqttClient {
  const { url, clientId, username, password, ca, will } = options
  return connectMqtt(url, {
    protocolVersion: version,
    ...(version === 5 && { properties: { maximumPacketSize: MAX_PACKET_BYTES } }),
    clientId,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(ca !== undefined && { ca }),
    clean: true,
    keepalive: KEEPALIVE_SECONDS,
    reconnectPeriod: 0,
    connectTimeout: timeoutMs,
    queueQoSZero: false,
    ...(will && { will: { topic: will.topic, payload: Buffer.from(will.payload), qos: 1, retain: true } }),
  })
}

/** Resolves to the granted QoS of each filter. Sends single requests, so that a refused filter affects no other. */
function subscribe(client: MqttClient, filters: readonly string[]): Promise<readonly number[]> {
  const granted = (filter: string) =>
    new Promise<number>((resolve) => {
      client.subscribe(filter, { qos: 1 }, (error, [only] = []) => resolve(error ? REFUSED : (only?.qos ?? REFUSED)))
    })
  return Promise.all(filters.map(granted))
}
