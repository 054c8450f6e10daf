import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { newTcpWire, unusedPort, type TcpWire } from '../verification/kills/tcp-wire.ts'
import type { Json } from './cloud.ts'
import { newMigratedPostgres, temporaryFolder } from './databases.ts'
import { eventually, openJourney, type Journey } from './journey.ts'
import { independentBoard } from './modbus-serial-board.ts'
import { CLOUD_LOGIN, type ManagedBroker } from './outside-brokers.ts'
import { runProcess, startProcess, type RunningProcess } from './processes.ts'

/**
 * A store whose cloud has two workers, and a second cloud on the same PostgreSQL database, as on two machines. Both
 * read their keys in one folder.
 */
export interface ManyClouds {
  journey: Journey
  /** The second cloud, after `startSecond`. */
  second: RunningProcess
  /** Host and port of both clouds. */
  hosts: readonly [string, string]
  /** Connection of both clouds to an outside broker. */
  brokerWire: TcpWire
  startSecond(): Promise<void>
  /** Restarts the first cloud with this broker, after `untag broker sync`; without it, with the embedded one. */
  moveTo(broker: (ManagedBroker & { ca?: string }) | undefined): Promise<void>
  /** Process ids of the workers of the first cloud. */
  workers(): number[]
  /** Calls a cloud over a new connection, so that the workers take turns. */
  call(operation: string, body: Json, origin?: string): Promise<Json>
  /** Waits for these fields in the status of the agent. */
  status(fields: Json, limitMs?: number): Promise<unknown>
  stop(): Promise<void>
}

/**
 * Starts the first cloud and its store. `brokerPort`: port of the outside broker, and before it of the embedded one.
 */
export async function openManyClouds(brokerPort: number, drainSeconds: number): Promise<ManyClouds> {
  const database = await newMigratedPostgres()
  const keys = join(temporaryFolder('keys'), 'keys')
  const brokerWire = await newTcpWire({ http: brokerPort, mqtt: brokerPort })
  const boards = {
    station: await independentBoard(),
    detacher: await independentBoard(),
    gate: await independentBoard(),
  }
  const secondPort = await unusedPort()
  const shared = [`--keys-dir=${keys}`, `--drain-delay=${drainSeconds}`, '--allow-private-targets']
  let env: NodeJS.ProcessEnv = {}
  const journey = await openJourney({
    databaseUrl: database.url,
    brokerPort,
    cloudOptions: ['--workers=2', ...shared],
    cloudIn: {
      get env() {
        return env
      },
    },
    boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
  })
  const many: ManyClouds = {
    journey,
    second: journey.cloud,
    hosts: [new URL(journey.baseUrl).host, `127.0.0.1:${secondPort}`],
    brokerWire,
    async startSecond() {
      const place = [
        `--port=${secondPort}`,
        `--data=${join(journey.folder, 'second')}`,
        `--database-url=${database.url}`,
      ]
      const publicUrl = `http://127.0.0.1:${journey.wire.httpPort}`
      many.second = await startProcess(['cloud', ...place, ...shared, '--rate-limit=0'], {
        env: { UNTAG_PUBLIC_URL: publicUrl, ...env },
      })
    },
    async moveTo(broker) {
      await journey.cloud.stop()
      env = broker ? brokerSettings(broker, many) : {}
      if (broker) {
        const place = { UNTAG_DATABASE_URL: database.url, UNTAG_KEYS_DIR: keys, UNTAG_DATA_DIR: journey.folder }
        const made = await runProcess(['broker', 'sync', '--format', broker.format, '--out', broker.file], {
          ...place,
          ...env,
        })
        if (made.code !== 0) throw new Error(made.stderr)
        await broker.start()
      }
      await journey.startCloud()
    },
    workers() {
      const { pid } = journey.cloud.child
      return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
    },
    async call(operation, body, origin = new URL(journey.baseUrl).origin) {
      const answer = await fetch(`${origin}/api/v1/${operation}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${journey.key}`, 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify(body),
      })
      const text = await answer.text()
      if (answer.status !== 200) throw new Error(`${operation} at ${origin} answered ${answer.status}: ${text}`)
      return JSON.parse(text) as Json
    },
    status: (fields, limitMs = 40_000) =>
      eventually(
        JSON.stringify(fields),
        async () => {
          const now = await journey.status()
          return Object.keys(fields).every((field) => now[field] === fields[field])
        },
        limitMs,
      ),
    async stop() {
      if (many.second !== journey.cloud) await many.second.stop()
      await journey.stop()
      brokerWire.close()
      for (const board of Object.values(boards)) await board.close()
      await database.remove()
    },
  }
  return many
}

/** Settings of the cloud for this broker. Agents connect through the wire of the journey, if it leads to the broker. */
function brokerSettings(
  { port, ca }: ManagedBroker & { ca?: string },
  { journey, brokerWire }: ManyClouds,
): NodeJS.ProcessEnv {
  const scheme = ca === undefined ? 'mqtt' : 'mqtts'
  const isWired = port === journey.brokerPort
  const { username, password } = CLOUD_LOGIN
  const login = `${username}:${encodeURIComponent(password)}`
  return {
    UNTAG_MQTT_URL: `${scheme}://${login}@127.0.0.1:${isWired ? brokerWire.mqttPort : port}`,
    UNTAG_PUBLIC_MQTT_URL: `${scheme}://127.0.0.1:${isWired ? journey.wire.mqttPort : port}`,
    ...(ca !== undefined && { UNTAG_MQTT_CA: ca }),
  }
}
