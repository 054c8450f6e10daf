import { createHash, pbkdf2Sync } from 'node:crypto'
import { z } from 'zod'
import { agentTopics, CLOUD_FILTER, publishTopics, SHARED_FILTER, storeTopics } from '../policy/mqtt-topics.ts'

/** An agent, as a broker sees it. */
interface BrokerAgent {
  agentId: string
  storeId: string
  /** Undefined for a revoked agent. */
  password: string | undefined
}

/** Login of the cloud at the broker. */
interface BrokerCloud {
  username: string
  password: string
}

/** Who may use the broker. */
export interface BrokerUsers {
  agents: readonly BrokerAgent[]
  /** Undefined if the administrator gives the cloud its rights. */
  cloud: BrokerCloud | undefined
}

/** Iterations of PBKDF2, as Mosquitto's own default. The passwords are random, so more iterations would not help. */
const ITERATIONS = 101
const HASH_BYTES = 64
const SALT_BYTES = 12
/** Roles with this prefix belong to untag. untag preserves all other roles. */
const OWN = 'untag-'

const Named = z.looseObject({ roles: z.array(z.looseObject({ rolename: z.string() })).optional() })
const Configuration = z.looseObject({
  clients: z.array(Named).optional(),
  roles: z.array(z.looseObject({ rolename: z.string() })).optional(),
})

/**
 * Configuration of Mosquitto's dynamic security plugin. Keeps clients, groups and roles of `present` that do not belong
 * to untag.
 */
export function mosquittoSecurity({ agents, cloud }: BrokerUsers, present: string | undefined): string {
  const known = Configuration.parse(present === undefined ? {} : JSON.parse(present))
  const { defaultACLAccess: _replaced, clients: knownClients, roles: knownRoles, ...others } = known
  const active = agents.filter(({ password }) => password !== undefined)
  const stores = [...new Set(active.map(({ storeId }) => storeId))]
  const isOwn = (rolename: string) => rolename.startsWith(OWN)
  const clients = knownClients?.filter(({ roles }) => !roles?.some(({ rolename }) => isOwn(rolename))) ?? []
  const roles = knownRoles?.filter(({ rolename }) => !isOwn(rolename)) ?? []
  return `${JSON.stringify(
    {
      defaultACLAccess: {
        publishClientSend: false,
        publishClientReceive: true,
        subscribe: false,
        unsubscribe: true,
      },
      clients: [
        ...clients,
        ...(cloud
          ? [{ username: cloud.username, ...passwordOf(cloud.password), roles: [{ rolename: `${OWN}cloud` }] }]
          : []),
        ...active.map(clientOf),
      ],
      roles: [
        ...roles,
        ...(cloud ? [cloudRole()] : []),
        ...stores.map((storeId) => roleOf(`${OWN}store-${storeId}`, acls('subscribeLiteral', storeTopics(storeId)))),
        ...active.map((agent) =>
          roleOf(`${OWN}agent-${agent.agentId}`, [
            ...acls('publishClientSend', publishTopics(agent)),
            ...acls('subscribeLiteral', agentTopics(agent)),
          ]),
        ),
      ],
      ...others,
    },
    null,
    2,
  )}\n`
}

function clientOf({ agentId, storeId, password = '' }: BrokerAgent): object {
  return {
    username: agentId,
    // Another agent's password does not open a connection with this client id.
    clientid: agentId,
    ...passwordOf(password),
    roles: [{ rolename: `${OWN}agent-${agentId}` }, { rolename: `${OWN}store-${storeId}` }],
  }
}

/** Derives the salt from the password, so that the file changes only if a password does. */
function passwordOf(password: string): object {
  const salt = createHash('sha256').update(`untag/mosquitto-salt/1\0${password}`).digest().subarray(0, SALT_BYTES)
  const hash = pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, 'sha512')
  return { password: hash.toString('base64'), salt: salt.toString('base64'), iterations: ITERATIONS }
}

function cloudRole(): object {
  return roleOf(`${OWN}cloud`, [
    ...acls('publishClientSend', [CLOUD_FILTER]),
    ...acls('subscribePattern', [CLOUD_FILTER, SHARED_FILTER]),
  ])
}

function roleOf(rolename: string, all: readonly object[]): { rolename: string; acls: readonly object[] } {
  return { rolename, acls: all }
}

function acls(acltype: string, topics: readonly string[]): object[] {
  return topics.map((topic) => ({ acltype, topic, priority: 0, allow: true }))
}

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

const VHOST = '/'
const EXCHANGE = 'amq.topic'
const RABBITMQ_SALT_BYTES = 4

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
  const salt = createHash('sha256')
    .update(`untag/rabbitmq-salt/1\0${password}`)
    .digest()
    .subarray(0, RABBITMQ_SALT_BYTES)
  const hash = createHash('sha256').update(salt).update(password).digest()
  return Buffer.concat([salt, hash]).toString('base64')
}
