import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Checking an Ed25519 signature and reading a key are pure: the same question has the same answer. In a
 * world every agent asks what the others asked, in every seed again, and that is a third of all its time:
 * so each question is put to node:crypto once. For processes that only simulate.
 */
export function askCryptoOnce(): void {
  const keys = new Map<string, crypto.KeyObject>()
  const verdicts = new WeakMap<crypto.KeyObject, Map<string, boolean>>()
  const { createPrivateKey, createPublicKey, verify } = crypto

  function privateKey(input: Parameters<typeof createPrivateKey>[0]): crypto.KeyObject {
    const der = typeof input === 'object' && 'key' in input && input.key instanceof Uint8Array ? Buffer.from(input.key).toString('base64') : undefined
    if (der === undefined) return createPrivateKey(input)
    const known = keys.get(der) ?? createPrivateKey(input)
    keys.set(der, known)
    return known
  }

  function publicKey(input: Parameters<typeof createPublicKey>[0]): crypto.KeyObject {
    if (typeof input !== 'object' || !('format' in input) || input.format !== 'jwk') return createPublicKey(input)
    const text = JSON.stringify(input.key)
    const known = keys.get(text) ?? createPublicKey(input)
    keys.set(text, known)
    return known
  }

  function isSigned(...args: Parameters<typeof verify>): boolean {
    const [algorithm, data, key, signature] = args
    if (!(key instanceof crypto.KeyObject) || algorithm !== null) return verify(algorithm, data, key, signature)
    const known = verdicts.get(key) ?? new Map<string, boolean>()
    verdicts.set(key, known)
    const question = `${textOf(data)} ${textOf(signature)}`
    const answer = known.get(question) ?? verify(algorithm, data, key, signature)
    if (known.size >= VERDICTS_LIMIT) known.clear()
    known.set(question, answer)
    return answer
  }

  Object.assign(crypto, { createPrivateKey: privateKey, createPublicKey: publicKey, verify: isSigned })
  syncBuiltinESMExports()
}

const VERDICTS_LIMIT = 10_000

function textOf(bytes: NodeJS.ArrayBufferView): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
