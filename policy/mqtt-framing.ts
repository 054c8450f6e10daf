/**
 * Checks the framing of MQTT (3.1.1 §2.2) before a packet is buffered. Otherwise a peer could fill the memory with an
 * endless packet, or with messages of QoS 2. A receiver must store QoS 2 messages until the sender releases them. untag
 * does not use QoS 2.
 */
interface MqttFraming {
  /** Maximum length of a packet after its header, bytes. */
  maxPacketBytes: number
  /** True if the next byte starts a packet. */
  readonly isBetweenPackets: boolean
  /** Number of packets that have ended. */
  readonly packets: number
  /** Reason to close the stream; undefined while the stream is valid. */
  readonly violation: string | undefined
  /**
   * Reads the chunk from index `from`. Returns the index after the last byte of the packet, or the length of the chunk
   * if the packet continues in the next chunk.
   */
  endOfPacket(chunk: Uint8Array, from: number): number
  /** Checks a whole chunk; returns `violation`. */
  checkChunk(chunk: Uint8Array): string | undefined
}

/**
 * Maximum length of a packet to or from an agent, bytes: a bundle of documents or a batch of events, with its topic.
 */
export const MAX_PACKET_BYTES = 300 * 1024

/** Maximum length of a SUBSCRIBE or UNSUBSCRIBE packet, bytes: an agent has a handful of topic filters. */
const MAX_FILTER_BYTES = 1_024
const FILTERS: ReadonlySet<number> = new Set([0x80, 0xa0])

const MAX_LENGTH_BYTES = 4
const PUBLISH = 0x30
const QOS_2 = 0x04

/** Creates a checker for one stream. Pass all bytes of the stream to the checker, from the first byte on. */
export function mqttFraming(maxPacketBytes: number): MqttFraming {
  /** Missing bytes of the current packet; 0 while the checker reads a header. */
  let left = 0
  let headerBytes = 0
  let length = 0
  let hasFilters = false
  let packets = 0
  let violation: string | undefined

  function takeHeader(byte: number): void {
    if (headerBytes++ === 0) {
      hasFilters = FILTERS.has(byte & 0xf0)
      if ((byte & 0xf0) === PUBLISH && (byte & QOS_2) !== 0) violation = 'a message of QoS 2'
      return
    }
    length += (byte & 0x7f) * 128 ** (headerBytes - 2)
    const most = hasFilters ? MAX_FILTER_BYTES : framing.maxPacketBytes
    if (length > most || headerBytes > MAX_LENGTH_BYTES + 1) violation = `a packet over ${most} bytes`
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
    get packets() {
      return packets
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
        if (left > 0 || headerBytes > 0) continue
        packets++
        return i
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
