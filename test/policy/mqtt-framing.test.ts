import { expect, it } from 'vitest'
import { MAX_PACKET_BYTES, mqttFraming } from '../../policy/mqtt-framing.ts'

/** A packet with this first byte and length. */
function packet(first: number, length: number): Uint8Array {
  const header = [first]
  for (let left = length; ; left = Math.floor(left / 128)) {
    header.push((left % 128) | (left >= 128 ? 0x80 : 0))
    if (left < 128) break
  }
  return Uint8Array.from([...header, ...new Uint8Array(length)])
}

it.each([
  ['SUBSCRIBE', 0x82, 1_024],
  ['UNSUBSCRIBE', 0xa2, 1_024],
  ['PUBLISH', 0x32, MAX_PACKET_BYTES],
])('admits a %s packet up to its limit', (_, first, most) => {
  expect(mqttFraming(MAX_PACKET_BYTES).checkChunk(packet(first, most))).toBeUndefined()
  expect(mqttFraming(MAX_PACKET_BYTES).checkChunk(packet(first, most + 1))).toBe(`a packet over ${most} bytes`)
})
