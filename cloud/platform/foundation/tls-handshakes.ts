import type { Server, Socket } from 'node:net'

/**
 * Calls `onRaw` for each new connection of a TLS server. The function that `onRaw` returns is called when the handshake
 * is complete or the connection closes. Node.js has another socket object after the handshake, so the remote port
 * identifies the connection. The returned function cuts all connections whose handshake is not complete.
 */
export function watchHandshakes(server: Server, onRaw: (socket: Socket) => () => void): () => void {
  const handshakes = new Map<string, { socket: Socket; end(): void }>()
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket)
    const handshake = { socket, end: onRaw(socket) }
    handshakes.set(name, handshake)
    socket.once('close', () => {
      handshake.end()
      if (handshakes.get(name) === handshake) handshakes.delete(name)
    })
  })
  server.on('secureConnection', (socket: Socket) => {
    handshakes.get(nameOf(socket))?.end()
    handshakes.delete(nameOf(socket))
  })
  return () => {
    for (const { socket } of handshakes.values()) socket.destroy()
  }
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? ''}`
}
