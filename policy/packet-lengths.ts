/**
 * Reads the framing of MQTT (3.1.1 §2.2) before anything buffers a packet. A peer could fill the memory with a
 * packet that is too long, or with messages of QoS 2, which a receiver must remember and which untag never uses.
 */
export interface PacketLengths {
  /** The longest packet that passes, bytes after its header. */
  limit: number
  /** True where the next byte begins a packet. */
  readonly isBetweenPackets: boolean
  /** Why the stream must be cut; undefined while it may go on. */
  readonly fault: string | undefined
  /** Continues at `from`. Returns the index after the current packet's last byte, or the chunk's length if the packet goes on. */
  endOfPacket(chunk: Uint8Array, from: number): number
  /** Walks through a whole chunk; returns `fault`. */
  faultIn(chunk: Uint8Array): string | undefined
}

/** The longest packet to or from an agent: a bundle of documents or a batch of events, with its topic. */
export const LONGEST_PACKET = 300 * 1024

const MAX_LENGTH_BYTES = 4
const PUBLISH = 0x30
const QOS_2 = 0x04

/** Watches one stream from its first byte. */
export function packetLengths(limit: number): PacketLengths {
  /** Bytes of the current packet that are still to come; 0: a header is expected. */
  let left = 0
  let headerBytes = 0
  let length = 0
  let fault: string | undefined

  /** Takes one byte of a header. */
  function takeHeader(byte: number): void {
    if (headerBytes++ === 0) {
      if ((byte & 0xf0) === PUBLISH && (byte & QOS_2) !== 0) fault = 'a message of QoS 2'
      return
    }
    length += (byte & 0x7f) * 128 ** (headerBytes - 2)
    if (length > lengths.limit || headerBytes > MAX_LENGTH_BYTES + 1) fault = `a packet over ${lengths.limit} bytes`
    if ((byte & 0x80) !== 0) return
    left = length
    headerBytes = 0
    length = 0
  }

  const lengths: PacketLengths = {
    limit,
    get isBetweenPackets() {
      return left === 0 && headerBytes === 0
    },
    get fault() {
      return fault
    },
    endOfPacket(chunk, from) {
      let i = from
      while (i < chunk.length && fault === undefined) {
        if (left === 0) takeHeader(chunk[i++] ?? 0)
        const step = Math.min(left, chunk.length - i)
        left -= step
        i += step
        if (left === 0 && headerBytes === 0) return i
      }
      return i
    },
    faultIn(chunk) {
      for (let i = 0; i < chunk.length && fault === undefined;) i = lengths.endOfPacket(chunk, i)
      return fault
    },
  }
  return lengths
}
