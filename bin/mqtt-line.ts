import { connect as connectMqtt } from 'mqtt'
import type { MqttLine, OpenMqttLine } from '../edge-agent/link/wire/mqtt-line.ts'
import { MAX_PACKET_BYTES, mqttFraming } from '../policy/mqtt-framing.ts'

/** Seconds between signs of life; a line that is silent for one and a half of them is gone. */
const KEEPALIVE_SECONDS = 15
/** Messages that the broker may leave without its word. Nothing rests on that word, but each is kept in memory until it comes. */
const UNANSWERED_LIMIT = 16
const CLOSE_MS = 1_000

/**
 * A line over mqtt.js, used once: reconnecting is the agent's own, with jitter and a new password each time. The broker is
 * not trusted: it may fill neither our memory with a packet without end nor with messages that it never takes.
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
        if (++unanswered > UNANSWERED_LIMIT) return end('the broker takes no messages')
        client.publish(topic, payload, { qos: 1, retain }, () => void unanswered--)
      },
      subscribe: (topics) => void client.subscribe([...topics], { qos: 1 }),
      close() {
        isClosing = true
        client.end(false)
        // A broker that does not take the last word is not waited for.
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
    // After a packet that makes no sense nothing that follows can be read.
    client.on('error', (error) => end(error.message))
    client.on('close', () => end(isOpen ? 'closed' : 'the broker closed the line'))
  })
