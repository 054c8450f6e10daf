import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'

/**
 *   socket ──▶ guard ──▶ broker
 *
 * The broker buffers a packet as a whole before it asks who sent it, and knows no limit: one stranger
 * could fill its memory. The guard reads each packet's announced length and cuts the line when it is too
 * long: little until the client was accepted, a batch of events afterwards (MQTT 3.1.1 §2.2.3).
 */
export interface PacketGuard extends Duplex {
  /** From now on packets may be as large as a batch. */
  accept(): void
}

const BEFORE_ACCEPTED = 8 * 1024
const AFTER_ACCEPTED = 300 * 1024
const MAX_LENGTH_BYTES = 4

/** Watches the bytes of one connection before the broker parses them. */
export function packetGuard(socket: Socket, onRefused: (why: string) => void): PacketGuard {
  let limit = BEFORE_ACCEPTED
  /** Bytes of the current packet that are still to come; 0: a header is expected. */
  let left = 0
  let headerBytes = 0
  let length = 0

  /** Walks the packets in a chunk; false when one is too long or malformed. */
  function isAllowed(chunk: Uint8Array): boolean {
    for (let i = 0; i < chunk.length; ) {
      if (left > 0) {
        const step = Math.min(left, chunk.length - i)
        left -= step
        i += step
        continue
      }
      const byte = chunk[i++] ?? 0
      if (headerBytes++ === 0) continue // packet type and flags
      length += (byte & 0x7f) * 128 ** (headerBytes - 2)
      if (length > limit || headerBytes > MAX_LENGTH_BYTES + 1) return false
      if ((byte & 0x80) === 0) {
        left = length
        headerBytes = 0
        length = 0
      }
    }
    return true
  }

  const guard = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Uint8Array, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy: (error, done) => {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', (chunk: Uint8Array) => {
    if (!isAllowed(chunk)) {
      onRefused(`a packet over ${limit} bytes`)
      guard.destroy()
    } else if (!guard.push(chunk)) {
      socket.pause()
    }
  })
  socket.on('end', () => guard.push(null))
  socket.on('close', () => guard.destroy())
  socket.on('error', () => guard.destroy())
  return Object.assign(guard, { accept: () => void (limit = AFTER_ACCEPTED) })
}
