import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assertKeyPairs, type Identity, type KeyPair } from '../../../edge-agent/identity/identity.ts'
import { newKey } from '../../../policy/documents/keys.ts'
import { seededRandom } from '../../verification/simulation/virtual/virtual-platform.ts'

function pair(seed: number): KeyPair {
  const { x, secret } = newKey(seededRandom(seed))
  return { x, secret: secret.toString('base64url') }
}
const [own, next, former] = [pair(1), pair(2), pair(3)]
const identity = { ...own, next, former: [former] } as Identity
const DAMAGED = 'agent.json is damaged: re-enrol this agent with untag edge enrol --replace'

describe('key pairs in the identity file', () => {
  it('accepts key pairs that enrolment and rotation wrote', async () => {
    await expect(assertKeyPairs('', identity)).resolves.toBeUndefined()
    await expect(assertKeyPairs('', { ...own } as Identity)).resolves.toBeUndefined()
  })

  it('rejects a secret key of another public key, also for pending and former keys', async () => {
    const mixed = { x: own.x, secret: next.secret }
    for (const wrong of [mixed, { ...identity, next: mixed }, { ...identity, former: [former, mixed] }])
      await expect(assertKeyPairs('', { ...identity, ...wrong })).rejects.toThrow(DAMAGED)
  })

  it('rejects a secret key that is truncated, changed or of another curve', async () => {
    const x25519 = generateKeyPairSync('x25519').privateKey.export({ format: 'der', type: 'pkcs8' })
    const bytes = Buffer.from(own.secret, 'base64url')
    const secrets = fc.oneof(
      fc.nat(bytes.length - 1).map((end) => bytes.subarray(0, end)),
      // Changes a byte after the header of 16 bytes.
      fc.tuple(fc.integer({ min: 16, max: bytes.length - 1 }), fc.integer({ min: 1, max: 255 })).map(([at, by]) => {
        const changed = Buffer.from(bytes)
        changed[at] = (changed[at] ?? 0) ^ by
        return changed
      }),
      fc.constant(x25519),
    )
    await fc.assert(
      fc.asyncProperty(secrets, async (secret) => {
        const wrong = { ...own, secret: secret.toString('base64url') } as Identity
        await expect(assertKeyPairs('', wrong)).rejects.toThrow(DAMAGED)
      }),
      { numRuns: 300 },
    )
  })
})
