import type { Cloud } from '../cloud/cloud.ts'
import { markAllOffline } from '../cloud/protection/agents/documents/agent-state.ts'
import type { Log } from '../cloud/platform/foundation/log.ts'
import type { CloudConfig, ServerCertificate } from '../cloud/platform/foundation/config.ts'
import type { Siblings } from '../cloud/platform/foundation/ports.ts'
import { ElectedBroker } from '../cloud/service/messaging/elected-broker.ts'
import { startBroker, type AgentBroker, type Broker } from '../cloud/service/messaging/embedded-broker.ts'
import type { Database } from '../cloud/platform/persistence/database.ts'
import type { Platform } from '../policy/platform.ts'
import { connectionLimits, reservePort } from './http-server.ts'
import { explain } from './http-server.ts'
import type { Values } from './options.ts'
import { connectOutsideBroker, outsideBrokerSettings } from './outside-broker.ts'
import { isOfRun } from './data-folder.ts'
import type { CLOUD_OPTIONS } from './settings/cloud.ts'

type BrokerSettings = Pick<
  Values<typeof CLOUD_OPTIONS>,
  'host' | 'mqttPort' | 'mqttUrl' | 'mqttCa' | 'publicMqttUrl' | 'brokerLoginSecret'
>

/** How this process relates to the other processes that use its database. */
export interface Membership {
  /** Id of this process, unique over all starts. */
  processId: string
  /** True if the process with this id has ended. */
  hasEnded(processId: string): boolean
  /** The other workers on this machine, if there are any. */
  siblings?: Siblings
  /**
   * True if other processes may take over the clients of this process. This process then drains before it stops, so
   * that the clients have time to move.
   */
  isReplaceable: boolean
}

/** The broker of a cloud. Its address is known before the cloud exists, because the cloud needs it. */
export interface CloudBroker {
  config: Pick<CloudConfig, 'mqttUrl' | 'outsideBroker'>
  isElsewhere(): boolean
  wakeElection(): void
  attach(cloud: Cloud): Promise<void>
  stop(): Promise<void>
}

interface BrokerContext {
  platform: Platform
  log: Log
  membership: Membership
  /** The embedded broker serves MQTTS with this certificate. */
  certificate?: ServerCertificate | undefined
}

type ManySettings = Pick<Values<typeof CLOUD_OPTIONS>, 'databaseUrl' | 'mqttUrl' | 'drainDelay'>

/** True if clouds on other machines may use the same database: they share an outside broker, too. */
export function mayHaveOthers({ databaseUrl, mqttUrl }: Omit<ManySettings, 'drainDelay'>): boolean {
  return databaseUrl !== undefined && mqttUrl !== undefined
}

/** Time between the signal to stop and the stop, ms. Without clouds on other machines 0. */
export function drainDelayMs(settings: ManySettings): number {
  return mayHaveOthers(settings) ? settings.drainDelay * 1_000 : 0
}

/**
 * Returns the outside broker of the settings, or the embedded broker. On PostgreSQL, the processes elect the one that
 * runs the embedded broker.
 */
export function brokerOf(settings: BrokerSettings, database: Database, context: BrokerContext): Promise<CloudBroker> {
  const outside = outsideBrokerSettings(settings)
  if (outside) return Promise.resolve(outsideBroker(outside, context))
  return database.dialect === 'sqlite' ? ownBroker(settings, context) : electedBroker(settings, database, context)
}

function outsideBroker(
  outside: NonNullable<ReturnType<typeof outsideBrokerSettings>>,
  { platform, log }: BrokerContext,
): CloudBroker {
  const { publicUrl: mqttUrl, ca, logins } = outside
  let broker: AgentBroker | undefined
  return {
    config: { mqttUrl, outsideBroker: { ...(ca !== undefined && { ca }), ...(logins && { logins }) } },
    isElsewhere: () => false,
    wakeElection: () => undefined,
    async attach({ messages }) {
      const onAttached = (attached: AgentBroker) => messages.attach(attached)
      broker = await connectOutsideBroker(outside, messages.hooks, { platform, log, onAttached })
    },
    stop: async () => broker?.close(),
  }
}

/** Starts the embedded broker first, because the cloud needs its port. The broker rejects logins until `attach`. */
async function ownBroker(settings: BrokerSettings, context: BrokerContext): Promise<CloudBroker> {
  let cloud: Cloud | undefined
  const broker = await openBroker(settings, settings.mqttPort, () => cloud, context)
  return {
    config: { mqttUrl: mqttUrlOf(settings, broker.port, context) },
    isElsewhere: () => false,
    wakeElection: () => undefined,
    async attach(made) {
      cloud = made
      made.attachBroker(broker)
    },
    stop: broker.close,
  }
}

async function electedBroker(
  settings: BrokerSettings,
  database: Database,
  context: BrokerContext,
): Promise<CloudBroker> {
  const { host, mqttPort } = settings
  const { platform, log, membership } = context
  const reserved = mqttPort === 0 ? await reservePort({ host, port: 0, flag: 'mqtt-port' }) : undefined
  const port = reserved?.port ?? mqttPort
  let cloud: Cloud | undefined
  const elected = new ElectedBroker({
    database,
    platform,
    log,
    holder: membership.processId,
    hasEnded: membership.hasEnded,
    isSibling: (processId) => isOfRun(processId, membership.processId.split('.')[0]),
    async open() {
      await reserved?.release()
      await database.write(markAllOffline)
      return openBroker(settings, port, () => cloud, context)
    },
    onChange: (broker) => cloud?.attachBroker(broker),
  })
  return {
    config: { mqttUrl: mqttUrlOf(settings, port, context) },
    isElsewhere: () => elected.isListening(),
    wakeElection: () => elected.wake(),
    async attach(made) {
      cloud = made
      await elected.start()
    },
    async stop() {
      await reserved?.release()
      await elected.stop()
    },
  }
}

function openBroker(
  { host }: BrokerSettings,
  port: number,
  cloud: () => Cloud | undefined,
  { log, platform, certificate }: BrokerContext,
): Promise<Broker> {
  return startBroker(
    { host, port, certificate },
    {
      authenticate: (agentId, password) =>
        cloud()?.messages.hooks.authenticate(agentId, password) ?? Promise.resolve(undefined),
      onMessage: (from, topic, payload) => cloud()?.messages.hooks.onMessage(from, topic, payload),
      onConnected: (agent) => cloud()?.messages.hooks.onConnected(agent),
      onDisconnected: (agent) => cloud()?.messages.hooks.onDisconnected(agent),
      onActivity: (agentId) => cloud()?.messages.hooks.onActivity(agentId),
    },
    { log, platform, limits: connectionLimits().broker },
  ).catch((error: unknown) => {
    throw explain(error as NodeJS.ErrnoException, { host, port, flag: 'mqtt-port' })
  })
}

function mqttUrlOf({ host, publicMqttUrl }: BrokerSettings, port: number, { certificate }: BrokerContext): string {
  return publicMqttUrl ?? `${certificate ? 'mqtts' : 'mqtt'}://${shownHost(host)}:${port}`
}

/** The host of addresses that the cloud prints. */
export function shownHost(host: string): string {
  return host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
}
