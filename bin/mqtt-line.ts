import { connect as connectMqtt } from 'mqtt'
import type { MqttLine, OpenMqttLine } from '../edge-agent/link/mqtt-line.ts'

/** Seconds between signs of life; a line that is silent for one and a half of them is gone. */
const KEEPALIVE_SECONDS = 15

/** A line over mqtt.js, used once: reconnecting is the agent's own, with jitter and a new password each time. */
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
    const line: MqttLine = {
      publish: (topic, payload, { retain }) => void client.publish(topic, payload, { qos: 1, retain }),
      subscribe: (topics) => void client.subscribe([...topics], { qos: 1 }),
      close: () => void client.end(false),
    }
    client.once('connect', () => {
      isOpen = true
      resolve(line)
    })
    client.on('message', (topic, payload) => options.onMessage(topic, payload.toString()))
    client.on('error', (error) => {
      if (isOpen) return
      client.end(true)
      reject(error)
    })
    client.on('close', () => {
      if (isOpen) options.onClosed('closed')
      else reject(new Error('the broker closed the line'))
      isOpen = false
      client.end(true)
    })
  })
