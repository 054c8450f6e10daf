import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ResyncingCodec } from '../../device-drivers/kit/protocol/codec.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import { chopped, concat } from './pieces.ts'

export interface CodecRig<Frame> {
  make(): ResyncingCodec<Frame>
  /** Frames that the codec must encode and decode. */
  readonly frames: fc.Arbitrary<Frame>
  /** Different frames for different numbers, 0 to 255. */
  sample(n: number): Frame
  /** Maximum number of buffered bytes. */
  readonly mostHeld: number
  /** Byte that begins a frame. Some noise in the tests contains many of them. */
  readonly begin: number
  /** Number of bytes before a frame that its check does not cover; default 0. */
  readonly unchecked?: number
}

/** Conformance tests of a codec for lines with noise. */
export function describeCodec<Frame>(name: string, rig: CodecRig<Frame>): void {
  describe(`${name} codec`, () => {
    test('decodes what it encoded, in any chunks', () => {
      fc.assert(
        fc.property(fc.array(rig.frames, { maxLength: 5 }), fc.integer({ min: 1, max: 100 }), (frames, size) => {
          const codec = rig.make()
          const bytes = concat(frames.map((frame) => codec.encode(frame)))
          expect(chopped(bytes, size).flatMap((chunk) => codec.push(chunk))).toEqual(frames)
          expect([codec.held, codec.silence(), codec.takeNoise()]).toEqual([0, [], null])
        }),
      )
    })

    test('finds each valid frame after garbage, frame starts and incomplete frames', () => {
      const random = seededRandom(11)
      let missing = 0
      for (let round = 0; round < 2_000; round++) {
        const codec = rig.make()
        const [n = 0, cut = 0, size = 0] = random.bytes(3)
        // Bytes that begin no frame, then one byte that begins one. So the noise cannot contain a complete frame by
        // chance.
        const garbage = random.bytes(n % 60).map((byte) => (byte === rig.begin || byte === 0xff ? 0x00 : byte))
        const whole = codec.encode(rig.sample(255))
        const half = whole.subarray(0, cut % whole.length)
        const frames = Array.from({ length: 1 + (n % 4) }, (_, i) => rig.sample(i))
        const sent = concat([garbage, Uint8Array.of(rig.begin), half, ...frames.map((frame) => codec.encode(frame))])
        const got = [...chopped(sent, 1 + (size % 40)).flatMap((chunk) => codec.push(chunk)), ...codec.silence()]
        if (frames.some((frame) => !got.some((one) => JSON.stringify(one) === JSON.stringify(frame)))) missing++
        expect(codec.held).toBe(0)
      }
      expect(missing).toBe(0)
    })

    test('rejects a frame with a flipped bit and finds the next one', () => {
      const codec = rig.make()
      const good = codec.encode(rig.sample(1))
      const next = codec.encode(rig.sample(2))
      for (let bit = (rig.unchecked ?? 0) * 8; bit < good.length * 8; bit++) {
        const wrong = good.slice()
        wrong[bit >> 3] = (wrong[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        const got = [...codec.push(wrong), ...codec.silence(), ...codec.push(next), ...codec.silence()]
        expect(got).toContainEqual(rig.sample(2))
        expect(got.length).toBeLessThanOrEqual(2)
        expect(JSON.stringify(got)).not.toContain(JSON.stringify(rig.sample(1)))
      }
    })

    test('stays bounded over 250,000 random chunks, does not slow down, and finds valid frames', () => {
      const random = seededRandom(5)
      const codec = rig.make()
      const good = codec.encode(rig.sample(7))
      const pieces = Array.from({ length: 997 }, (_, i) => {
        const piece = random.bytes(1 + (i % 23))
        if (i % 3 === 0) piece[0] = rig.begin
        return piece
      })
      const blocks: number[] = []
      let most = 0
      let found = 0
      let sent = 0
      for (let block = 0; block < 10; block++) {
        const from = process.cpuUsage()
        for (let i = 0; i < 25_000; i++) {
          codec.push(pieces[i % pieces.length] ?? good)
          most = Math.max(most, codec.held)
          if (i % 100 !== 99) continue
          sent++
          found += [...codec.push(good), ...codec.silence()].length > 0 ? 1 : 0
        }
        blocks.push(process.cpuUsage(from).user)
      }
      const [first = 1, ...rest] = blocks
      expect(most).toBeLessThan(rig.mostHeld)
      expect(found).toBe(sent)
      expect(Math.min(...rest)).toBeLessThan(first * 5 + 50_000)
      expect(codec.takeNoise()?.bytes).toBeGreaterThan(1_000_000)
    })

    test('discards endless frame starts as they arrive', () => {
      const codec = rig.make()
      for (let i = 0; i < 1_000; i++) codec.push(new Uint8Array(100).fill(rig.begin))
      codec.silence()
      expect(codec.held).toBe(0)
      expect(codec.takeNoise()?.bytes).toBeGreaterThan(90_000)
    })
  })
}
