import { createHash, pbkdf2Sync } from 'node:crypto'
import { z } from 'zod'
import { agentTopics, CLOUD_FILTER, publishTopics, SHARED_FILTER, storeTopics } from '../../policy/mqtt-topics.ts'
import type { BrokerAgent, BrokerUsers } from './broker-user.ts'

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
