import { expect, it } from 'vitest'
import { realPlatform } from '../../host/platform.ts'

it('never returns the same random bytes twice, for any lengths', () => {
  const { random } = realPlatform()
  const seen = new Set<string>()
  for (let i = 0; i < 5_000; i++) {
    const length = 8 + (i % 40)
    const bytes = random.bytes(length)
    expect(bytes.length).toBe(length)
    const start = Buffer.from(bytes.subarray(0, 8)).toString('hex')
    expect(seen.has(start)).toBe(false)
    seen.add(start)
    bytes.fill(7)
  }
})
