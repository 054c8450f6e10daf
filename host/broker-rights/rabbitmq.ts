import { createHash } from 'node:crypto'
import { agentTopics, publishTopics, storeTopics } from '../../policy/mqtt-topics.ts'
import type { BrokerAgent, BrokerUsers } from './broker-user.ts'

const VHOST = '/'
const EXCHANGE = 'amq.topic'
const SALT_BYTES = 4

/**
 * Definitions for RabbitMQ with its MQTT plugin. An import removes no user. A revoked agent therefore gets no rights,
 * and an empty password hash, with which no login is possible.
 */
export function rabbitmqDefinitions({ agents, cloud }: BrokerUsers): string {
  const users = [
    ...(cloud ? [{ name: cloud.username, rights: cloudRights(), password: cloud.password }] : []),
    ...agents.map((agent) => ({ name: agent.agentId, rights: rightsOf(agent), password: agent.password })),
  ]
  return `${JSON.stringify(
    {
      vhosts: [{ name: VHOST }],
      users: users.map(({ name, password }) => ({
        name,
        password_hash: password === undefined ? '' : hashOf(password),
        hashing_algorithm: 'rabbit_password_hashing_sha256',
        tags: [],
      })),
      permissions: users.map(({ name, rights }) => ({ user: name, vhost: VHOST, ...rights.queues })),
      topic_permissions: users.map(({ name, rights }) => ({
        user: name,
        vhost: VHOST,
        exchange: EXCHANGE,
        ...rights.topics,
      })),
    },
    null,
    2,
  )}\n`
}

interface Rights {
  queues: { configure: string; write: string; read: string }
  topics: { write: string; read: string }
}

/** The queue name contains the client id, so that an agent can only subscribe with its own client id. */
function rightsOf(agent: BrokerAgent): Rights {
  if (agent.password === undefined)
    return { queues: { configure: '^$', write: '^$', read: '^$' }, topics: { write: '^$', read: '^$' } }
  return {
    queues: queues(escape(agent.agentId)),
    topics: {
      write: anyOf(publishTopics(agent)),
      read: anyOf([...agentTopics(agent), ...storeTopics(agent.storeId)]),
    },
  }
}

function cloudRights(): Rights {
  const all = '^untag\\.v1\\.'
  return { queues: queues('untag-cloud-[0-9a-f]+'), topics: { write: all, read: `${all}|^\\$share\\.` } }
}

function queues(clientId: string): Rights['queues'] {
  const queue = `^mqtt-(subscription|will)-${clientId}(qos[01])?$`
  const both = `${queue}|^amq\\.topic$`
  return { configure: queue, write: both, read: both }
}

/** RabbitMQ writes dots where MQTT has slashes. */
function anyOf(topics: readonly string[]): string {
  return `^(${topics.map((topic) => escape(topic.replaceAll('/', '.'))).join('|')})$`
}

function escape(text: string): string {
  return text.replaceAll(/[.\\+*?()[\]{}|^$]/g, String.raw`\$&`)
}

/** Derives the salt from the password, so that the file changes only if a password does. */
function hashOf(password: string): string {
  const salt = createHash('sha256').update(`untag/rabbitmq-salt/1\0${password}`).digest().subarray(0, SALT_BYTES)
  const hash = createHash('sha256').update(salt).update(password).digest()
  return Buffer.concat([salt, hash]).toString('base64')
}
