import { createCipheriv, createECDH, hkdfSync } from 'node:crypto'
import type { Randomness } from '../../policy/platform.ts'

const SALT_BYTES = 16
/** Of a record, bytes. A notice is far smaller, so there is one record. */
const RECORD_SIZE = 4_096
/** Ends the last record before its padding, of which there is none (RFC 8188 §2). */
const LAST_RECORD = Buffer.of(2)

/** Encrypts a message for one browser: the body of a Web Push request in `aes128gcm` (RFC 8291 and 8188). */
export function encryptFor(keys: { p256dh: string; auth: string }, message: string, random: Randomness): Buffer {
  const receiver = Buffer.from(keys.p256dh, 'base64url')
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(random.bytes(32))
  const sender = pair.getPublicKey()
  const salt = Buffer.from(random.bytes(SALT_BYTES))
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver, sender])
  const input = derive(pair.computeSecret(receiver), Buffer.from(keys.auth, 'base64url'), info, 32)
  const key = derive(input, salt, 'Content-Encoding: aes128gcm\0', 16)
  const nonce = derive(input, salt, 'Content-Encoding: nonce\0', 12)
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const record = [cipher.update(message, 'utf8'), cipher.update(LAST_RECORD), cipher.final(), cipher.getAuthTag()]
  const sizes = Buffer.alloc(5)
  sizes.writeUInt32BE(RECORD_SIZE)
  sizes.writeUInt8(sender.length, 4)
  return Buffer.concat([salt, sizes, sender, ...record])
}

function derive(input: Buffer, salt: Buffer, info: string | Buffer, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', input, salt, info, bytes))
}
