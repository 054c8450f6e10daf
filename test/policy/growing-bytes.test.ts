import { expect, it } from 'vitest'
import { GrowingBytes } from '../../policy/growing-bytes.ts'

it('collects chunks of any size, and takes at most twice the room of their bytes', () => {
  const bytes = new GrowingBytes()
  const expected: number[] = []
  for (let i = 0; i < 20_000; i++) {
    const chunk = Uint8Array.from({ length: i % 7 }, (_, n) => (i + n) % 256)
    bytes.append(chunk)
    expected.push(...chunk)
  }
  expect(bytes.size).toBe(expected.length)
  expect(Buffer.from(bytes.whole()).equals(Buffer.from(expected))).toBe(true)
  expect(bytes.whole().buffer.byteLength).toBeLessThanOrEqual(2 * expected.length)
})
