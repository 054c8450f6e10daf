import { createServer, type AddressInfo } from 'node:net'
import { explain } from './http-server.ts'

/** A port that no other program can take until `release`. */
export interface ReservedPort {
  port: number
  release(): Promise<void>
}

/**
 * Reserves a port for a server that starts later; 0 chooses a free one. If another program uses the port, rejects with
 * an error that names the option.
 */
export async function reservePort(address: { host: string; port: number; flag: string }): Promise<ReservedPort> {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, address)))
    server.listen({ port: address.port, host: address.host, exclusive: true }, resolve)
  })
  const { port } = server.address() as AddressInfo
  let released: Promise<void> | undefined
  return {
    port,
    release: () => (released ??= new Promise((resolve) => void server.close(() => resolve()))),
  }
}
