import { agentTopics, publishTopics, storeTopics } from '../../policy/mqtt-topics.ts'
import type { BrokerAgent, BrokerUsers } from './broker-user.ts'

/**
 * The account of untag for nats-server, to be included by its configuration. NATS writes dots where MQTT has slashes.
 * The MQTT gateway of NATS needs the rights on `$MQTT` for subscriptions with QoS 1.
 */
export function natsAccount({ agents, cloud }: BrokerUsers): string {
  const users = [
    ...(cloud ? [user(cloud.username, cloud.password, ['untag.v1.>'], ['untag.v1.>'])] : []),
    ...agents.flatMap((agent) => userOf(agent)),
  ]
  return `# Written by untag broker sync. Include it in nats-server.conf.
accounts {
  untag {
    jetstream: enabled
    users: [
${users.join('\n')}
    ]
  }
}
`
}

function userOf(agent: BrokerAgent): string[] {
  const { agentId, storeId, password } = agent
  if (password === undefined) return []
  const subjects = (topics: readonly string[]) => topics.map((topic) => topic.replaceAll('/', '.'))
  const read = subjects([...agentTopics(agent), ...storeTopics(storeId)])
  return [user(agentId, password, subjects(publishTopics(agent)), read)]
}

function user(name: string, password: string, publish: readonly string[], subscribe: readonly string[]): string {
  const list = (subjects: readonly string[]) => JSON.stringify(subjects)
  return `      { user: ${JSON.stringify(name)}, password: ${JSON.stringify(password)}, allowed_connection_types: ["MQTT"],
        permissions: { publish: ${list(publish)}, subscribe: ${list([...subscribe, '$MQTT.sub.>'])} } }`
}
