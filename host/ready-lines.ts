import { consoleUrlAt } from '../cloud/platform/users/console-address.ts'
import { namedLines } from './output.ts'
import { createServer, type AddressInfo } from 'node:net'
import { explain } from './http-server.ts'

/** A port for a server that starts later. */
export interface ReservedPort {
  port: number
  release(): Promise<void>
}

/**
 * Finds out if a port is free. If another program uses the port, rejects with an error that names the option. 0 chooses
 * a free port, which no other program can take until `release`. A named port is free at once: a reserved port would
 * accept the requests of a proxy and lose them.
 */
export async function reservePort(address: { host: string; port: number; flag: string }): Promise<ReservedPort> {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, address)))
    server.listen({ port: address.port, host: address.host, exclusive: true }, resolve)
  })
  const { port } = server.address() as AddressInfo
  let released: Promise<void> | undefined
  const release = () => (released ??= new Promise((resolve) => void server.close(() => resolve())))
  if (address.port !== 0) await release()
  return { port, release }
}

/** What commands that serve print in a terminal when they are ready. Programs read the line `ready {…}` instead. */

/** Addresses and next steps of a cloud that is ready. */
export function cloudLines(
  { baseUrl, mqttUrl, metricsUrl }: { baseUrl: string; mqttUrl: string; metricsUrl?: string },
  { data, databaseUrl }: { data: string; databaseUrl: string | undefined },
): string[] {
  const { origin } = new URL(baseUrl)
  // The address of a database may contain a password, so that it is not shown.
  const place = databaseUrl === undefined ? `--data ${data}` : '--database-url URL'
  return [
    'The cloud runs.',
    ...namedLines([
      ['API', baseUrl],
      ['Console', consoleUrlAt(origin)],
      ['Reference', `${origin}/docs`],
      ['MQTT broker', mqttUrl],
      ...(metricsUrl === undefined ? [] : [['Metrics', metricsUrl] as const]),
    ]),
    `Create an API key:       untag keys create ${place} --account NAME`,
    `Invite to the console:   untag users invite ${place} --account NAME --email ADDRESS --role owner`,
    'Stop it with Ctrl-C.',
  ]
}

/** Addresses and next steps of an agent that is ready. */
export function edgeLines(
  { url, agentId, storeId }: { url: string; agentId: string; storeId: string },
  data: string,
): string[] {
  return [
    `Agent ${agentId} of store ${storeId} runs.`,
    ...namedLines([
      ['Staff station', `${url}/station`],
      ['Exit gate', `${url}/gate`],
      ['Set-up', `${url}/setup`],
      ['Status', `${url}/readyz`],
    ]),
    `Pair a browser:   untag edge link --data ${data}`,
    `Pair a program:   untag edge pair --data ${data} --name NAME`,
    'Stop it with Ctrl-C.',
  ]
}

/** What `listen` does, with the secret that the receiver needs. */
export function listenLines(forwardTo: string, secret: string, events: string): string[] {
  return [
    `Forwards ${events === '*' ? 'all events' : events} to ${forwardTo}`,
    'Give your receiver the secret that signs them:',
    `  export WEBHOOK_SECRET=${secret}`,
    'Send a test event from another terminal: untag trigger checkout.completed',
    'Stop it with Ctrl-C.',
    '',
  ]
}
