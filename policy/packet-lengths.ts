/**
 * Looks at the framing of MQTT (3.1.1 §2.2) before anything buffers a packet: whoever announces one that is too
 * long, or asks for the delivery that must be remembered (QoS 2, which nobody here uses), could fill a memory.
 */
export interface PacketLengths {
  /** The longest packet that passes, bytes. */
  limit: number
  /** Walks on through the packets of a stream; answers why it must be cut, or undefined. */
  faultIn(chunk: Uint8Array): string | undefined
}

/** What is said to and by an agent: a bundle of documents or a batch of events, with its topic. */
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
  const lengths: PacketLengths = {
    limit,
    faultIn(chunk) {
      for (let i = 0; i < chunk.length;) {
        if (left > 0) {
          const step = Math.min(left, chunk.length - i)
          left -= step
          i += step
          continue
        }
        const byte = chunk[i++] ?? 0
        if (headerBytes++ === 0) {
          if ((byte & 0xf0) === PUBLISH && (byte & QOS_2) !== 0) return 'a message of QoS 2'
          continue
        }
        length += (byte & 0x7f) * 128 ** (headerBytes - 2)
        if (length > lengths.limit || headerBytes > MAX_LENGTH_BYTES + 1) return `a packet over ${lengths.limit} bytes`
        if ((byte & 0x80) === 0) {
          left = length
          headerBytes = 0
          length = 0
        }
      }
      return undefined
    },
  }
  return lengths
}
