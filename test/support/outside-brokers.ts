import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { findTool } from '../verification/tools.ts'
import { unusedPort } from '../verification/kills/tcp-wire.ts'
import { newTestCa } from './certificates.ts'
import { temporaryFolder } from './databases.ts'

/** A broker of another project that runs as its own process. */
export interface BrokerProcess {
  readonly port: number
  readonly folder: string
  /** Starts the broker with its files as they are now. */
  start(): Promise<void>
  /** Kills the broker at once. */
  kill(): Promise<void>
}

/** True if the program is installed. */
export const hasProgram = (program: string): boolean => findTool(program) !== undefined

/** Debian installs servers where users' paths may not look. */
function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` }
}

/** Resolves when the port accepts connections. */
async function accepts(port: number, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the broker ended with ${child.exitCode}`)
    const socket = connect(port, '127.0.0.1')
    const isOpen = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    socket.destroy()
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** A broker process with these arguments. `files`: names and texts of files in its folder. */
export async function brokerProcess(
  program: string,
  parts: (folder: string, port: number) => { args: string[]; files: Record<string, string>; env?: NodeJS.ProcessEnv },
): Promise<BrokerProcess> {
  const folder = temporaryFolder('broker')
  const port = await unusedPort()
  const { args, files, env } = parts(folder, port)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  let child: ChildProcess | undefined
  return {
    port,
    folder,
    async start() {
      // Its own group, because RabbitMQ starts further processes.
      child = spawn(program, args, { cwd: folder, stdio: 'ignore', detached: true, env: { ...environment(), ...env } })
      await accepts(port, child)
    },
    async kill() {
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      process.kill(-(child.pid ?? 0), 'SIGKILL')
      await ended
    },
  }
}

/** Mosquitto with these further lines of its configuration. */
export function mosquitto(lines: (folder: string) => readonly string[]): Promise<BrokerProcess> {
  return brokerProcess('mosquitto', (folder, port) => ({
    args: ['-c', join(folder, 'mosquitto.conf')],
    files: {
      'mosquitto.conf': ['user root', `listener ${port} 127.0.0.1`, ...lines(folder), ''].join('\n'),
    },
  }))
}

/** Login of the cloud at the brokers of tests. */
export const CLOUD_LOGIN = { username: 'untag-cloud', password: 'p@ss/word' }

/** A broker of tests that takes its users from `untag broker sync`. */
export interface ManagedBroker extends BrokerProcess {
  /** The name for `untag broker sync --format`. */
  readonly format: 'mosquitto' | 'nats' | 'rabbitmq'
  /** The file that `untag broker sync` writes. */
  readonly file: string
}

/** The brokers of the journeys: each with the program that must be installed. */
export const MANAGED_BROKERS: readonly {
  name: string
  program: string
  make(): Promise<ManagedBroker>
}[] = [
  { name: 'Mosquitto', program: 'mosquitto', make: () => managedMosquitto() },
  { name: 'NATS', program: 'nats-server', make: nats },
  { name: 'RabbitMQ', program: 'rabbitmq-server', make: rabbitmq },
]

/** Mosquitto that takes its users from `untag broker sync`. `lines`: further lines of its configuration. */
export async function managedMosquitto(
  lines: (folder: string) => readonly string[] = () => [],
): Promise<ManagedBroker> {
  const broker = await mosquitto((folder) => [
    ...lines(folder),
    'allow_anonymous false',
    'plugin /usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so',
    `plugin_opt_config_file ${join(folder, 'dynamic-security.json')}`,
    'message_size_limit 307200',
    'persistence true',
    `persistence_location ${folder}/`,
    'autosave_interval 1',
    'autosave_on_changes true',
  ])
  return { ...broker, format: 'mosquitto', file: join(broker.folder, 'dynamic-security.json') }
}

/** Mosquitto with TLS, and the certificate of its private CA. Its own certificate is valid for 127.0.0.1. */
export async function mosquittoWithTls(): Promise<ManagedBroker & { ca: string }> {
  const broker = await managedMosquitto((folder) => [
    `certfile ${join(folder, 'broker.pem')}`,
    `keyfile ${join(folder, 'broker.key')}`,
  ])
  const ca = newTestCa(broker.folder)
  ca.issue('broker', 'IP:127.0.0.1')
  return { ...broker, ca: ca.file }
}

async function nats(): Promise<ManagedBroker> {
  const port = await unusedPort()
  const broker = await brokerProcess('nats-server', (folder, mqtt) => ({
    args: ['-c', join(folder, 'nats.conf')],
    files: {
      'nats.conf': [
        'server_name: untag',
        `listen: "127.0.0.1:${port}"`,
        `jetstream { store_dir: "${join(folder, 'js')}" }`,
        `mqtt { listen: "127.0.0.1:${mqtt}" }`,
        'include "untag.conf"',
      ].join('\n'),
    },
  }))
  return { ...broker, format: 'nats', file: join(broker.folder, 'untag.conf') }
}

async function rabbitmq(): Promise<ManagedBroker> {
  const [amqp, distribution, epmd] = [await unusedPort(), await unusedPort(), await unusedPort()]
  const broker = await brokerProcess('/usr/lib/rabbitmq/bin/rabbitmq-server', (folder, mqtt) => ({
    args: [],
    files: {
      'rabbitmq.conf': [
        `listeners.tcp.1 = 127.0.0.1:${amqp}`,
        `mqtt.listeners.tcp.1 = 127.0.0.1:${mqtt}`,
        'mqtt.allow_anonymous = false',
        `load_definitions = ${join(folder, 'definitions.json')}`,
        '',
      ].join('\n'),
      plugins: '[rabbitmq_mqtt].',
    },
    env: {
      HOME: folder,
      ERL_EPMD_PORT: String(epmd),
      RABBITMQ_DIST_PORT: String(distribution),
      RABBITMQ_NODENAME: `untag${mqtt}@localhost`,
      RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
      RABBITMQ_LOG_BASE: join(folder, 'log'),
      RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
      RABBITMQ_GENERATED_CONFIG_DIR: join(folder, 'generated'),
      RABBITMQ_PID_FILE: join(folder, 'pid'),
    },
  }))
  return {
    ...broker,
    format: 'rabbitmq',
    file: join(broker.folder, 'definitions.json'),
    async kill() {
      await broker.kill()
      // The name service of Erlang is a daemon of its own. It belongs to this test only, by its port.
      spawnSync('epmd', ['-kill'], { env: { ...environment(), ERL_EPMD_PORT: String(epmd) } })
    },
  }
}
