import { generate, parser } from 'mqtt-packet'
import type {
  IConnackPacket,
  IConnectPacket,
  IDisconnectPacket,
  IPingreqPacket,
  IPingrespPacket,
  IPubackPacket,
  IPublishPacket,
  ISubackPacket,
  ISubscribePacket,
  Packet,
} from 'mqtt-packet'
import { mqttFraming } from '../../../policy/mqtt-framing.ts'
import type { Codec } from './codec.ts'

/** Packets of MQTT 3.1.1 (OASIS, 2014) that a client with QoS 0 and 1 needs, and the broker's answers. */
export type MqttPacket =
  | IConnectPacket
  | (IConnackPacket & { returnCode: number })
  | (IPublishPacket & { payload: Buffer })
  | (IPubackPacket & { messageId: number })
  | (ISubscribePacket & { messageId: number })
  | (ISubackPacket & { messageId: number; granted: number[] })
  | IPingreqPacket
  | IPingrespPacket
  | IDisconnectPacket

/** An MQTT stream cannot resynchronise: after a fault the codec reads nothing more. */
interface MqttCodec extends Codec<MqttPacket> {
  readonly fault: string | null
  /** Buffered bytes of an incomplete packet. */
  readonly held: number
}

/** Maximum size of a packet, bytes. Readers send at most 256 KB. */
export const MAX_PACKET_BYTES = 1_048_576

/** Why a broker refuses a connection, by return code. */
export const CONNECT_REFUSALS: Readonly<Record<number, string>> = {
  1: 'it does not speak MQTT 3.1.1',
  2: 'it does not accept the client id',
  3: 'it is unavailable',
  4: 'user or password is wrong',
  5: 'this user may not connect',
}

const MAX_FIELD_BYTES = 65_535
const MAX_ID = 65_535
const EMPTY = Buffer.alloc(0)

/** The fields of a packet with a 2-byte length: texts and binary data (§1.5.3). */
function fieldsOf(packet: Packet): readonly (string | Buffer)[] {
  if (packet.cmd === 'publish') return [packet.topic]
  if (packet.cmd === 'subscribe') return packet.subscriptions.map(({ topic }) => topic)
  if (packet.cmd !== 'connect') return []
  const { clientId, username = '', password = '', will } = packet
  return [clientId, username, password, will?.topic ?? '', will?.payload ?? '']
}

/** Rejects packets that mqtt-packet accepts although the standard forbids them or this codec does not support them. */
function assertPacket(packet: Packet): asserts packet is MqttPacket {
  const { cmd, messageId = 0 } = packet
  switch (cmd) {
    case 'connect':
      if ((packet.protocolId ?? 'MQTT') !== 'MQTT' || (packet.protocolVersion ?? 4) !== 4 || 'bridgeMode' in packet)
        throw new RangeError('another version of MQTT')
      if ((packet.will?.qos ?? 0) > 2) throw new RangeError('a will of QoS 3')
      break
    case 'publish':
      if (packet.qos > 1) throw new RangeError('a message of QoS 2')
      if (packet.qos === 1 && !isId(messageId)) throw new RangeError('a message of QoS 1 without an identifier')
      break
    case 'puback':
    case 'subscribe':
    case 'suback':
      if (!isId(messageId)) throw new RangeError(`a ${cmd} without an identifier`)
      break
    case 'connack':
    case 'pingreq':
    case 'pingresp':
    case 'disconnect':
      break
    default:
      throw new RangeError(`a packet of type ${cmd}, which is not used here`)
  }
  for (const field of fieldsOf(packet)) {
    if (typeof field === 'string' && field.includes('\0')) throw new RangeError('a text with a null character')
    if (Buffer.byteLength(field) > MAX_FIELD_BYTES) throw new RangeError(`a field over ${MAX_FIELD_BYTES} bytes`)
  }
}

const isId = (id: number) => id >= 1 && id <= MAX_ID

/**
 * Passes one packet at a time to mqtt-packet, because mqtt-packet would otherwise read a missing field from the next
 * packet.
 */
function packetReader(): (bytes: Buffer) => MqttPacket {
  const reader = parser({ protocolVersion: 4 })
  let read: Packet | undefined
  let failure: Error | undefined
  reader.on('packet', (packet) => void (read = packet))
  reader.on('error', (error: Error) => void (failure = error))
  return (bytes) => {
    read = undefined
    reader.parse(bytes)
    if (failure) throw failure
    if (!read) throw new RangeError('a packet that is too short')
    assertPacket(read)
    // mqtt-packet replaces invalid UTF-8 and ignores surplus bytes. In both cases its output differs from the input.
    if (!generate(read).equals(bytes)) throw new RangeError('a packet with surplus bytes, or a text that is no UTF-8')
    return read
  }
}

/** A codec for both directions. It uses mqtt-packet, and applies the size limit before it buffers. */
export function mqttCodec(): MqttCodec {
  const lengths = mqttFraming(MAX_PACKET_BYTES)
  const readPacket = packetReader()
  let buffer = EMPTY
  let held = 0
  let fault: string | null = null

  /**
   * Appends bytes to the buffer. A full buffer doubles its size, so that the bytes are not copied for each small chunk.
   */
  function append(bytes: Uint8Array): void {
    if (held + bytes.length > buffer.length) {
      const grown = Buffer.allocUnsafe(Math.max(held * 2, held + bytes.length))
      buffer.copy(grown, 0, 0, held)
      buffer = grown
    }
    buffer.set(bytes, held)
    held += bytes.length
  }

  /** Returns the buffered bytes and starts a new buffer, so that payloads stay valid. */
  function release(): Buffer {
    const bytes = buffer.subarray(0, held)
    buffer = EMPTY
    held = 0
    return bytes
  }

  return {
    push(chunk) {
      const packets: MqttPacket[] = []
      try {
        for (let at = 0; at < chunk.length && fault === null;) {
          const end = lengths.endOfPacket(chunk, at)
          if (lengths.violation !== undefined) throw new RangeError(lengths.violation)
          append(chunk.subarray(at, end))
          at = end
          if (lengths.isBetweenPackets) packets.push(readPacket(release()))
        }
      } catch (error) {
        fault = error instanceof Error ? error.message : String(error)
        release()
      }
      return packets
    },
    encode(packet) {
      assertPacket(packet)
      return generate(packet)
    },
    get fault() {
      return fault
    },
    get held() {
      return held
    },
  }
}
