import type { Cloud } from '../../cloud/cloud.ts'
import type { Broker } from '../../cloud/messaging/embedded-broker.ts'
import type { MqttLineOptions, OpenMqttLine } from '../../edge-agent/link/mqtt-line.ts'

/** A broker in memory between one cloud and one agent: it keeps what is retained and hands everything on at once. */
export function memoryBroker(cloud: Cloud, agent: { storeId: string; agentId: string }): OpenMqttLine {
  const retained = new Map<string, string>()
  let line: { options: MqttLineOptions; topics: Set<string> } | undefined
  const deliver = (topic: string, payload: string) => {
    if (line?.topics.has(topic)) line.options.onMessage(topic, payload)
  }
  const broker: Broker = {
    port: 0,
    publish({ topic, payload, retain }) {
      if (retain) retained.set(topic, payload)
      deliver(topic, payload)
    },
    connected: () => new Map(line ? [[agent.agentId, agent]] : []),
    disconnect: () => line?.options.onClosed('cut'),
    close: () => Promise.resolve(),
  }
  cloud.attachBroker(broker)
  return (options) => {
    line = { options, topics: new Set() }
    cloud.messages.hooks.onConnected(agent)
    return Promise.resolve({
      publish: (topic, payload) => cloud.messages.hooks.onMessage(agent, topic, payload),
      subscribe(topics) {
        for (const topic of topics) {
          line?.topics.add(topic)
          const kept = retained.get(topic)
          if (kept !== undefined) deliver(topic, kept)
        }
      },
      close: () => void (line = undefined),
    })
  }
}
