import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import { MAX_PACKET_BYTES, mqttFraming } from '../../policy/mqtt-framing.ts'

/**
 * Filters the bytes between a socket and the broker. The broker buffers whole packets of any size, even before the
 * login, so one client could fill the broker's memory. The guard reads the announced length of each packet. It closes
 * the connection if the length exceeds the limit: 8 KiB before the login, the size of a batch afterwards.
 *
 * The guard never blocks the broker's writes, because one slow client would delay all others. It closes the connection
 * of a client that does not read.
 */
export interface PacketGuard extends Duplex {
  /** Raises the limit to the size of a batch. */
  accept(): void
}

const BEFORE_ACCEPTED = 8 * 1024
/** Maximum number of bytes that wait for a slow client. All documents of a store are far smaller. */
const UNREAD_LIMIT = 8 * 1024 * 1024

/** Watches the bytes of one connection before the broker parses them. */
export function packetGuard(socket: Socket, onRefused: (why: string) => void): PacketGuard {
  const lengths = mqttFraming(BEFORE_ACCEPTED)

  const guard = new Duplex({
    read: () => void socket.resume(),
    write(chunk: Uint8Array, _encoding, done) {
      socket.write(chunk)
      if (socket.writableLength <= UNREAD_LIMIT) return done()
      onRefused('it does not read the bytes sent to it')
      done()
      guard.destroy()
    },
    final: (done) => void socket.end(done),
    destroy: (error, done) => {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', (chunk: Uint8Array) => {
    const fault = lengths.checkChunk(chunk)
    if (fault !== undefined) {
      onRefused(fault)
      guard.destroy()
    } else if (!guard.push(chunk)) {
      socket.pause()
    }
  })
  socket.on('end', () => guard.push(null))
  socket.on('close', () => guard.destroy())
  socket.on('error', () => guard.destroy())
  return Object.assign(guard, { accept: () => void (lengths.maxPacketBytes = MAX_PACKET_BYTES) })
}
