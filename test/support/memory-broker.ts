import type { Cloud } from '../../cloud/cloud.ts'
import type { Broker } from '../../cloud/service/messaging/embedded-broker.ts'
import type { AgentAddress } from '../../policy/mqtt-topics.ts'
import type { MqttLineOptions, OpenMqttLine } from '../../edge-agent/link/wire/broker-line.ts'

interface Line {
  agent: AgentAddress
  options: MqttLineOptions
  topics: Set<string>
}

interface MemoryBroker extends Broker {
  readonly lines: Map<string, Line>
  readonly retained: Map<string, string>
}

const brokers = new WeakMap<Cloud, MemoryBroker>()

/**
 * An in-memory broker for one cloud and all its agents. It stores retained messages and forwards all others at once.
 */
function brokerOf(cloud: Cloud): MemoryBroker {
  const known = brokers.get(cloud)
  if (known) return known
  const lines = new Map<string, Line>()
  const retained = new Map<string, string>()
  const broker: MemoryBroker = {
    port: 0,
    isListening: () => true,
    lines,
    retained,
    publish({ topic, payload, retain }) {
      if (retain) retained.set(topic, payload)
      for (const line of lines.values()) if (line.topics.has(topic)) line.options.onMessage(topic, payload)
    },
    connected: () => new Map([...lines].map(([agentId, { agent }]) => [agentId, agent])),
    disconnect: (agentId) => lines.get(agentId)?.options.onClosed('cut'),
    close: () => Promise.resolve(),
  }
  brokers.set(cloud, broker)
  cloud.attachBroker(broker)
  return broker
}

/** Opens connections of this agent to the in-memory broker of its cloud. */
export function memoryBroker(
  cloud: Cloud,
  { storeId, agentId }: AgentAddress,
  isUp: () => boolean = () => true,
): OpenMqttLine {
  const agent = { storeId, agentId }
  const { lines, retained } = brokerOf(cloud)
  return (options) => {
    if (!isUp()) return Promise.reject(new Error('the network is cut'))
    const line: Line = { agent, options, topics: new Set() }
    lines.set(agentId, line)
    cloud.messages.hooks.onConnected(agent)
    return Promise.resolve({
      publish(topic, payload) {
        if (!isUp()) return
        cloud.messages.hooks.onActivity(agentId)
        cloud.messages.hooks.onMessage(agent, topic, payload)
      },
      subscribe(topics) {
        for (const topic of topics) {
          line.topics.add(topic)
          const kept = retained.get(topic)
          if (kept !== undefined) options.onMessage(topic, kept)
        }
      },
      close: () => void (lines.get(agentId) === line && lines.delete(agentId)),
    })
  }
}

/** Cuts the connection of an agent. The agent and the cloud notice it. */
export function cutLine(cloud: Cloud, agentId: string): void {
  const broker = brokerOf(cloud)
  const line = broker.lines.get(agentId)
  broker.lines.delete(agentId)
  line?.options.onClosed('cut')
}
