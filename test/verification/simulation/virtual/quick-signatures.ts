import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Replaces Ed25519 in this process by a faster signature and caches parsed keys. A run signs and verifies the same few
 * documents thousands of times; Ed25519 took a quarter of the run's time. Like an Ed25519 signature, the fast signature
 * needs the private key and is valid for only one text.
 *
 * Call it only in a process that simulates, before the first key is made, because earlier signatures become invalid.
 * Other tests cover Ed25519.
 */
export function signQuickly(): void {
  const read = new Map<string, crypto.KeyObject>()
  /** Private keys of this process by public key, base64url. */
  const seeds = new Map<string, Buffer>()
  const seedOf = new WeakMap<crypto.KeyObject, Buffer>()
  const nameOf = new WeakMap<crypto.KeyObject, string>()
  const { createHmac, createPrivateKey, createPublicKey, sign, verify, timingSafeEqual } = crypto

  function privateKey(input: Parameters<typeof createPrivateKey>[0]): crypto.KeyObject {
    if (typeof input !== 'object' || !('key' in input) || !(input.key instanceof Uint8Array))
      return createPrivateKey(input)
    const name = Buffer.from(input.key).toString('base64')
    const known = read.get(name)
    if (known) return known
    const key = createPrivateKey(input)
    read.set(name, key)
    if (key.asymmetricKeyType !== 'ed25519') return key
    const { x, d } = key.export({ format: 'jwk' })
    const seed = Buffer.from(String(d), 'base64url')
    seeds.set(String(x), seed)
    seedOf.set(key, seed)
    return key
  }

  function publicKey(input: Parameters<typeof createPublicKey>[0]): crypto.KeyObject {
    if (typeof input !== 'object' || !('format' in input) || input.format !== 'jwk') return createPublicKey(input)
    const { crv, x } = input.key as crypto.JsonWebKey
    const name = `${crv} ${x}`
    const known = read.get(name)
    if (known) return known
    const key = createPublicKey(input)
    read.set(name, key)
    if (key.asymmetricKeyType === 'ed25519') nameOf.set(key, String(x))
    return key
  }

  const quick = (seed: Buffer, data: NodeJS.ArrayBufferView) => createHmac('sha512', seed).update(data).digest()

  function signed(algorithm: string | null | undefined, data: NodeJS.ArrayBufferView, key: crypto.KeyLike): Buffer {
    const seed = algorithm === null && key instanceof crypto.KeyObject ? seedOf.get(key) : undefined
    return seed ? quick(seed, data) : sign(algorithm, data, key)
  }

  function isSigned(
    algorithm: string | null | undefined,
    data: NodeJS.ArrayBufferView,
    key: crypto.KeyLike,
    signature: NodeJS.ArrayBufferView,
  ): boolean {
    const seed = algorithm === null && key instanceof crypto.KeyObject ? seeds.get(nameOf.get(key) ?? '') : undefined
    return seed
      ? signature.byteLength === 64 && timingSafeEqual(quick(seed, data), signature)
      : verify(algorithm, data, key, signature)
  }

  Object.assign(crypto, { createPrivateKey: privateKey, createPublicKey: publicKey, sign: signed, verify: isSigned })
  syncBuiltinESMExports()
}
