/**
 * Reads the framing of MQTT (3.1.1 §2.2) before anything buffers a packet. A peer could fill the memory with a
 * packet that is too long, or with messages of QoS 2, which a receiver must remember and which untag never uses.
 */
export interface MqttFraming {
  /** The longest packet that passes, bytes after its header. */
  maxPacketBytes: number
  /** True where the next byte begins a packet. */
  readonly isBetweenPackets: boolean
  /** Reason to close the stream; undefined while it is valid. */
  readonly violation: string | undefined
  /**
   * Continues at `from`. Returns the index after the packet's last byte, or the chunk's length if the packet continues.
   */
  endOfPacket(chunk: Uint8Array, from: number): number
  /** Checks a whole chunk; returns `violation`. */
  checkChunk(chunk: Uint8Array): string | undefined
}

/** The longest packet to or from an agent: a bundle of documents or a batch of events, with its topic. */
export const MAX_PACKET_BYTES = 300 * 1024

const MAX_LENGTH_BYTES = 4
const PUBLISH = 0x30
const QOS_2 = 0x04

/** Watches one stream from its first byte. */
export function mqttFraming(maxPacketBytes: number): MqttFraming {
  /** Bytes of the current packet that are still to come; 0: a header is expected. */
  let left = 0
  let headerBytes = 0
  let length = 0
  let violation: string | undefined

  function takeHeader(byte: number): void {
    if (headerBytes++ === 0) {
      if ((byte & 0xf0) === PUBLISH && (byte & QOS_2) !== 0) violation = 'a message of QoS 2'
      return
    }
    length += (byte & 0x7f) * 128 ** (headerBytes - 2)
    if (length > framing.maxPacketBytes || headerBytes > MAX_LENGTH_BYTES + 1)
      violation = `a packet over ${framing.maxPacketBytes} bytes`
    if ((byte & 0x80) !== 0) return
    left = length
    headerBytes = 0
    length = 0
  }

  const framing: MqttFraming = {
    maxPacketBytes,
    get isBetweenPackets() {
      return left === 0 && headerBytes === 0
    },
    get violation() {
      return violation
    },
    endOfPacket(chunk, from) {
      let i = from
      while (i < chunk.length && violation === undefined) {
        if (left === 0) takeHeader(chunk[i++] ?? 0)
        const step = Math.min(left, chunk.length - i)
        left -= step
        i += step
        if (left === 0 && headerBytes === 0) return i
      }
      return i
    },
    checkChunk(chunk) {
      for (let i = 0; i < chunk.length && violation === undefined;) i = framing.endOfPacket(chunk, i)
      return violation
    },
  }
  return framing
}
