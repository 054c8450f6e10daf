import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Aedes, type PublishPacket } from 'aedes'

/** The broker's behaviour on a new connection. */
export type WireTrick = 'a broker' | 'closes at once' | 'stays silent' | ((socket: Socket) => void)

/** A broker on a real socket that accepts every login, forwards nothing and sends what the test requires. */
export interface HostileBroker {
  url: string
  trick: WireTrick
  /** Logins with their passwords. */
  readonly logins: { clientId: string; password: string }[]
  /** Messages that it received and did not forward. */
  readonly received: { topic: string; payload: string }[]
  /** Number of connections so far. */
  readonly connections: number
  publish(topic: string, payload: string | Buffer, options?: { retain?: boolean }): Promise<void>
  close(): Promise<void>
}

export const CONNACK = Buffer.from([0x20, 2, 0, 0])

export async function hostileBroker(): Promise<HostileBroker> {
  const sockets = new Set<Socket>()
  const logins: HostileBroker['logins'] = []
  const received: HostileBroker['received'] = []
  let connections = 0
  const aedes = await Aedes.createBroker({
    authenticate(client, _username, password, done) {
      logins.push({ clientId: client.id, password: password?.toString() ?? '' })
      done(null, true)
    },
  })
  aedes.on('publish', (packet, client) => {
    if (client && received.length < 10_000) received.push({ topic: packet.topic, payload: packet.payload.toString() })
  })
  const server = createServer((socket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
    const { trick } = broker
    if (trick === 'a broker') return void aedes.handle(socket)
    if (trick === 'closes at once') return void socket.once('data', () => socket.end(CONNACK))
    if (trick === 'stays silent') return void socket.resume()
    trick(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const broker: HostileBroker = {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    trick: 'a broker',
    logins,
    received,
    get connections() {
      return connections
    },
    publish: (topic, payload, { retain = false } = {}) =>
      new Promise((resolve) => {
        const packet: PublishPacket = {
          cmd: 'publish',
          topic,
          payload: Buffer.from(payload),
          qos: 1,
          retain,
          dup: false,
        }
        aedes.publish(packet, () => resolve())
      }),
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await new Promise<void>((resolve) => aedes.close(() => resolve()))
    },
  }
  return broker
}
