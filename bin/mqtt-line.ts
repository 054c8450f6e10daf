import { connect as connectMqtt } from 'mqtt'
import type { MqttLine, OpenMqttLine } from '../edge-agent/link/wire/mqtt-line.ts'
import { MAX_PACKET_BYTES, mqttFraming } from '../policy/mqtt-framing.ts'

/** MQTT keepalive, s. The broker closes a connection that is silent for 1.5 times as long. */
const KEEPALIVE_SECONDS = 15
/** Maximum number of messages without a PUBACK. A message stays in memory until the broker acknowledges it. */
const UNANSWERED_LIMIT = 16
const CLOSE_MS = 1_000

/**
 * One MQTT connection over mqtt.js, which does not reconnect: the agent does, with jitter and a new password each time.
 * Limits protect the agent's memory from an endless packet, and from a broker that never acknowledges.
 */
export const openMqttLine: OpenMqttLine = (options, timeoutMs) =>
  new Promise((resolve, reject) => {
    const client = connectMqtt(options.url, {
      protocolVersion: 4,
      clientId: options.clientId,
      username: options.username,
      password: options.password,
      clean: true,
      keepalive: KEEPALIVE_SECONDS,
      reconnectPeriod: 0,
      connectTimeout: timeoutMs,
      queueQoSZero: false,
      will: { topic: options.will.topic, payload: Buffer.from(options.will.payload), qos: 1, retain: true },
    })
    let isOpen = false
    let isOver = false
    let isClosing = false
    let unanswered = 0

    function end(why: string): void {
      if (isOver) return
      isOver = true
      client.end(true)
      if (isOpen) options.onClosed(why)
      else reject(new Error(why))
    }

    const line: MqttLine = {
      publish(topic, payload, { retain }) {
        if (isOver) return
        if (++unanswered > UNANSWERED_LIMIT) return end('the broker acknowledges no messages')
        client.publish(topic, payload, { qos: 1, retain }, () => void unanswered--)
      },
      subscribe: (topics) => void client.subscribe([...topics], { qos: 1 }),
      close() {
        isClosing = true
        client.end(false)
        // Ends the connection if mqtt.js does not close it in time.
        setTimeout(() => end('closed'), CLOSE_MS).unref()
      },
    }
    const lengths = mqttFraming(MAX_PACKET_BYTES)
    client.stream.on('data', (chunk: Uint8Array) => {
      const fault = lengths.checkChunk(chunk)
      if (fault !== undefined) end(`the broker sends ${fault}`)
    })
    client.once('connect', () => {
      if (isOver) return
      isOpen = true
      resolve(line)
    })
    client.on('message', (topic, payload) => {
      if (isOpen && !isOver && !isClosing) options.onMessage(topic, payload.toString())
    })
    // An invalid packet ends the connection, because the rest of the stream is unreadable.
    client.on('error', (error) => end(error.message))
    client.on('close', () => end(isOpen ? 'closed' : 'the broker closed the line'))
  })
