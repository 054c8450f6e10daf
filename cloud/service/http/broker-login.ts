import type { Context, Hono } from 'hono'
import { z } from 'zod'
import { isIdShaped } from '../../../policy/ids.ts'
import { agentTopics, CLOUD_FILTER, publishTopics, storeTopics } from '../../../policy/mqtt-topics.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { findAgent } from '../../protection/agent-identity/sessions.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { readJsonBody } from './body.ts'
import { JSON_HEADERS, type PublicAccess } from './public-access.ts'

/** Maximum size of a request, bytes. A login has about 200 bytes. */
const BODY_LIMIT = 4_096
/** Time after which the broker ends the connection, s. A revoked agent stays connected for at most this time. */
const LOGIN_SECONDS = 86_400
/** Client ids of the cloud (cloud/service/messaging/outside-broker.ts). */
const CLOUD_CLIENT = /^untag-cloud-[0-9a-f]{16}$/

/** The fields that docs/guides/brokers.md configures in EMQX. */
const Login = z.object({ username: z.string(), password: z.string(), clientid: z.string() })
type Login = z.infer<typeof Login>

/** A rule in the answer, as EMQX reads it since 5.8. */
interface Rule {
  permission: 'allow' | 'deny'
  action: 'publish' | 'subscribe' | 'all'
  topic: string
}

const DENY = { result: 'deny' }

/**
 * Route for a broker such as EMQX, which asks about each login over HTTP. The answer lists the topics that the client
 * may use. EMQX ignores answers with status 4xx and continues with its next login method, so a wrong login gets 200
 * with `deny`.
 */
export function brokerLoginRoute(app: Hono, database: Database, services: Services, access: PublicAccess): void {
  const { config, authority, platform } = services
  const logins = config.outsideBroker?.logins
  if (!logins) return

  async function rulesFor({ username, password, clientid }: Login): Promise<Rule[] | undefined> {
    const { cloud } = logins ?? {}
    if (cloud && username === cloud.username)
      return secretsEqual(cloud.password, password) && CLOUD_CLIENT.test(clientid)
        ? [allow('all', CLOUD_FILTER)]
        : undefined
    // The client id must equal the user name, so that no agent can connect with the client id of another agent.
    if (!isIdShaped(username) || clientid !== username) return undefined
    if (!secretsEqual(authority.brokerPassword(username), password)) return undefined
    const agent = await findAgent(database.reads, username)
    if (!agent || agent.revoked_ms !== null) return undefined
    const address = { agentId: agent.agent_id, storeId: agent.store_id }
    return [
      ...publishTopics(address).map((topic) => allow('publish', topic)),
      ...[...agentTopics(address), ...storeTopics(address.storeId)].map((topic) => allow('subscribe', topic)),
    ]
  }

  app.post('/broker/login', async (c: Context) => {
    const [, secret] = /^Bearer (.+)$/.exec(c.req.header('authorization') ?? '') ?? []
    if (!secretsEqual(logins.secret, secret)) {
      if (access.isTooFast(c, 'broker ')) return access.refuseTooFast(c)
      return access.refuse(c, new Failure('unauthenticated', 'the secret of the broker is missing or wrong'))
    }
    try {
      const login = Login.safeParse(await readJsonBody(c, BODY_LIMIT))
      const rules = login.success ? await rulesFor(login.data) : undefined
      if (!rules) return c.json(DENY, 200, JSON_HEADERS)
      const expires = Math.floor(platform.clock.wall() / 1_000) + LOGIN_SECONDS
      const acl = [...rules, { permission: 'deny', action: 'all', topic: '#' }]
      return c.json({ result: 'allow', is_superuser: false, expire_at: expires, acl }, 200, JSON_HEADERS)
    } catch (error) {
      if (error instanceof Failure) return access.refuse(c, error)
      throw error
    }
  })
}

function allow(action: Rule['action'], topic: string): Rule {
  return { permission: 'allow', action, topic }
}
