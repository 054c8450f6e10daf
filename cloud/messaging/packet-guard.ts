import { Duplex } from 'node:stream'
import type { Socket } from 'node:net'
import { LONGEST_PACKET, packetLengths } from '../../policy/packet-lengths.ts'

/**
 *   socket ──▶ guard ──▶ broker
 *
 * The broker buffers a packet as a whole before it asks who sent it, and knows no limit: one stranger
 * could fill its memory. The guard reads each packet's announced length and cuts the line when it is too
 * long: little until the client was accepted, a batch of events afterwards.
 *
 * Towards the client it never makes the broker wait, which would hold up everybody else: who does not read
 * what was sent is cut off.
 */
export interface PacketGuard extends Duplex {
  /** From now on packets may be as large as a batch. */
  accept(): void
}

const BEFORE_ACCEPTED = 8 * 1024
/** Bytes that may wait for a client: all documents of a store many times over. An agent has one line. */
const UNREAD_LIMIT = 8 * 1024 * 1024

/** Watches the bytes of one connection before the broker parses them. */
export function packetGuard(socket: Socket, onRefused: (why: string) => void): PacketGuard {
  const lengths = packetLengths(BEFORE_ACCEPTED)

  const guard = new Duplex({
    read: () => void socket.resume(),
    write(chunk: Uint8Array, _encoding, done) {
      socket.write(chunk)
      if (socket.writableLength <= UNREAD_LIMIT) return done()
      onRefused('it does not read what it is sent')
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
    const fault = lengths.faultIn(chunk)
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
  return Object.assign(guard, { accept: () => void (lengths.limit = LONGEST_PACKET) })
}
