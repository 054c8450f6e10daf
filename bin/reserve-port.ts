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
