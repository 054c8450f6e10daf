import type { AgentBroker, BrokerHooks } from '../cloud/service/messaging/embedded-broker.ts'
import { OutsideBroker, type OutsideBrokerOptions } from '../cloud/service/messaging/outside-broker.ts'
import type { Log } from '../cloud/platform/foundation/log.ts'
import type { BrokerLogins } from '../cloud/platform/foundation/config.ts'
import type { Platform } from '../policy/platform.ts'
import { openBrokerConnection } from './mqtt-line.ts'
import { WrongUsage, type Values } from './options.ts'
import { readCa } from './tls/private-ca.ts'
import type { CLOUD_OPTIONS } from './settings/cloud.ts'

type BrokerSettings = Pick<Values<typeof CLOUD_OPTIONS>, 'mqttUrl' | 'mqttCa' | 'publicMqttUrl' | 'brokerLoginSecret'>

/** Minimum length of the secret with which the broker asks about logins. */
const SECRET_LENGTH = 24

/** Settings of the outside broker. */
interface OutsideBrokerSettings extends OutsideBrokerOptions {
  /** Address for agents, without credentials. */
  publicUrl: string
  /** Set if the broker asks the cloud about logins. */
  logins?: BrokerLogins
}

/** Reads the settings of the outside broker. Undefined without --mqtt-url: then the cloud runs the embedded broker. */
export function outsideBrokerSettings({
  mqttUrl,
  mqttCa,
  publicMqttUrl,
  brokerLoginSecret,
}: BrokerSettings): OutsideBrokerSettings | undefined {
  if (mqttUrl === undefined) {
    if (mqttCa !== undefined)
      throw new WrongUsage(['--mqtt-ca needs --mqtt-url: the certificate of the embedded broker is --tls-cert'])
    if (brokerLoginSecret !== undefined)
      throw new WrongUsage(['--broker-login-secret needs --mqtt-url: the embedded broker checks logins itself'])
    return undefined
  }
  const { url, username, password } = withoutCredentials(mqttUrl)
  if (mqttCa !== undefined && !url.startsWith('mqtts:'))
    throw new WrongUsage(['--mqtt-ca needs an address with mqtts:// in --mqtt-url'])
  if (publicMqttUrl !== undefined && withoutCredentials(publicMqttUrl).username !== undefined)
    throw new WrongUsage(['--public-mqtt-url must not contain a user name: each agent has its own'])
  return {
    url,
    publicUrl: publicMqttUrl ?? url,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(mqttCa !== undefined && { ca: readCa('--mqtt-ca', mqttCa) }),
    ...(brokerLoginSecret !== undefined && { logins: loginsOf(brokerLoginSecret, username, password) }),
  }
}

function loginsOf(secret: string, username: string | undefined, password: string | undefined): BrokerLogins {
  if (secret.length < SECRET_LENGTH)
    throw new WrongUsage([`--broker-login-secret must have ${SECRET_LENGTH} characters or more`])
  return { secret, ...(username !== undefined && password !== undefined && { cloud: { username, password } }) }
}

/** Splits an address into credentials and the rest. */
export function withoutCredentials(text: string): { url: string; username?: string; password?: string } {
  const { protocol, host, pathname, search, username, password } = new URL(text)
  return {
    url: `${protocol}//${host}${pathname}${search}`.replace(/\/+$/, ''),
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
  }
}

/** Connects to the outside broker. Resolves after the first attempt, also if it failed. */
export async function connectOutsideBroker(
  settings: OutsideBrokerSettings,
  hooks: BrokerHooks,
  parts: { log: Log; platform: Platform; onAttached(broker: AgentBroker): void },
): Promise<AgentBroker> {
  const broker = new OutsideBroker(settings, { ...parts, hooks, open: openBrokerConnection })
  await broker.tried
  return broker
}
