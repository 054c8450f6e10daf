import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** A network between a client and a server. It delays or drops bytes, cuts connections, and changes the server. */
export interface BadNetwork {
  port: number
  /** Port of the server for new connections. */
  target: number
  /** While true, all bytes are dropped. */
  isStalled: boolean
  /** Delay of the next packet, ms. The packets of a connection stay in order. */
  delayMs: () => number
  /** Ends all connections. */
  cut(): void
  close(): void
}

const HOST = '127.0.0.1'

/** Creates a network in front of this port of the machine. */
export async function badNetwork(target: number): Promise<BadNetwork> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((near) => {
    const far = connect(network.target, HOST)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      const send = inOrder(to)
      from.on('data', (bytes) => void (network.isStalled || send(bytes, network.delayMs())))
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  server.listen(0, HOST)
  await once(server, 'listening')
  const network: BadNetwork = {
    port: (server.address() as AddressInfo).port,
    target,
    isStalled: false,
    delayMs: () => 0,
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    close() {
      network.cut()
      server.close()
    },
  }
  return network
}

/** Sends each packet after its delay, and never before an earlier one. */
function inOrder(to: Socket): (bytes: Buffer, delayMs: number) => void {
  const waiting: Buffer[] = []
  let lastMs = 0
  const sendNext = () => {
    const bytes = waiting.shift()
    if (bytes && !to.destroyed) to.write(bytes)
  }
  return (bytes, delayMs) => {
    waiting.push(bytes)
    const nowMs = performance.now()
    lastMs = Math.max(nowMs + delayMs, lastMs)
    if (lastMs === nowMs && waiting.length === 1) sendNext()
    else setTimeout(sendNext, lastMs - nowMs)
  }
}
