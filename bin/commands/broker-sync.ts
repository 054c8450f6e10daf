import { brokerPassword } from '../../cloud/platform/authority/authority.ts'
import { loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { listBrokerAgents } from '../../cloud/protection/agent-identity/agent-queries.ts'
import { mosquittoSecurity, type BrokerUsers, natsAccount, rabbitmqDefinitions } from '../../host/broker-rights.ts'
import { counted } from '../../host/output.ts'
import { keyPlaceOf, secretFiles } from '../../host/secret-files.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { withoutCredentials } from '../../host/outside-broker.ts'
import { realPlatform } from '../../host/platform.ts'
import type { BROKER_SYNC_OPTIONS } from '../../host/settings/cloud-data.ts'
import { assertOwnKeyFiles, withKnownDatabase } from '../../host/known-database.ts'

type Settings = Values<typeof BROKER_SYNC_OPTIONS>

/** What the administrator does with the file. */
const NEXT = {
  mosquitto: 'restart Mosquitto: its dynamic security plugin reads the file at its start',
  nats: 'run: nats-server --signal reload',
  rabbitmq: 'run: rabbitmqctl import_definitions FILE',
}

/** Writes the credentials and rights of all agents for an outside broker. */
export async function runBrokerSync(settings: Settings): Promise<void> {
  const { format, out, json } = settings
  if (format === 'none') throw new WrongUsage(['--format mosquitto, nats or rabbitmq is needed: which broker'])
  if (out === undefined) throw new WrongUsage(['--out FILE is needed: the file to write'])
  const users = await usersOf(settings)
  const present = secretFiles.read(out)
  const text = textOf(format, users, present)
  const changed = text !== present
  if (changed) secretFiles.write(out, text)
  const agents = users.agents.filter(({ password }) => password !== undefined).length
  if (json) return void process.stdout.write(`${JSON.stringify({ out, agents, changed })}\n`)
  const next = changed ? NEXT[format].replace('FILE', out) : 'unchanged'
  process.stdout.write(`${out}: ${counted(agents, 'agent')}; ${next}\n`)
}

function textOf(format: keyof typeof NEXT, users: BrokerUsers, present: string | undefined): string {
  if (format === 'mosquitto') return mosquittoSecurity(users, present)
  return format === 'nats' ? natsAccount(users) : rabbitmqDefinitions(users)
}

async function usersOf(settings: Settings): Promise<BrokerUsers> {
  const rows = await withKnownDatabase(settings, (database) => listBrokerAgents(database.reads))
  const place = keyPlaceOf(settings)
  assertOwnKeyFiles(place, settings.data)
  const keys = await loadKeyFiles(place, secretFiles, realPlatform().random)
  return {
    agents: rows.map(({ agentId, storeId, isRevoked }) => ({
      agentId,
      storeId,
      password: isRevoked ? undefined : brokerPassword(keys, agentId),
    })),
    cloud: cloudOf(settings),
  }
}

/** Login of the cloud, from the same URL as for `untag cloud`. */
function cloudOf({ mqttUrl }: Settings): BrokerUsers['cloud'] {
  if (mqttUrl === undefined) return undefined
  const { username, password } = withoutCredentials(mqttUrl)
  if (username === undefined || password === undefined)
    throw new WrongUsage([
      '--mqtt-url must contain the user name and password of the cloud: mqtts://USER:PASSWORD@HOST',
    ])
  return { username, password }
}
