import { createECDH, createPrivateKey } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Randomness } from '../../../policy/platform.ts'
import type { Sealer } from '../../platform/authority/sealing.ts'
import type { VapidKeys } from '../../platform/foundation/ports.ts'
import type { Database } from '../../platform/persistence/database.ts'

/** Encryption of messages (RFC 8291). */
export const CONTENT_ENCODING = 'aes128gcm'
const NAME = 'vapid'
/** Life of a token, s. RFC 8292 allows 24 h at most. */
const LIFE_S = 12 * 3_600

/**
 * Opens the VAPID keys of the installation. The first start creates them. The keys never change, because browsers bind
 * subscriptions to the public key.
 */
export async function openVapid(database: Database, sealer: Sealer, random: Randomness): Promise<VapidKeys> {
  const sealed = await database.write(async (db) => {
    await db
      .insertInto('sealed_secret')
      .values({ name: NAME, sealed: sealer.seal(random.bytes(32), NAME) })
      .onConflict((c) => c.column('name').doNothing())
      .execute()
    const row = await db.selectFrom('sealed_secret').select('sealed').where('name', '=', NAME).executeTakeFirstOrThrow()
    return row.sealed
  })
  return keysOf(sealer.open(sealed, NAME))
}

/** The key pair of a private key of 32 bytes. */
export function keysOf(secret: Uint8Array): VapidKeys {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(secret)
  return { publicKey: pair.getPublicKey('base64url'), privateKey: pair.getPrivateKey('base64url') }
}

/**
 * `Authorization` of a request to a push service (RFC 8292 §3). The token is valid for 12 h. web-push would compare this
 * time with the machine's clock instead of `nowMs`.
 *
 * @param sub Contact of the sender: an `https:` or `mailto:` address.
 */
export async function vapidHeader(
  { publicKey, privateKey }: VapidKeys,
  endpoint: string,
  sub: string,
  nowMs: number,
): Promise<string> {
  const point = Buffer.from(publicKey, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'))
  // Node.js leaves out leading zeros of a private key.
  const d = Buffer.from(privateKey, 'base64url').toString('hex').padStart(64, '0')
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '', d: Buffer.from(d, 'hex').toString('base64url') }
  const token = await new SignJWT({ sub })
    .setProtectedHeader({ typ: 'JWT', alg: 'ES256' })
    .setAudience(new URL(endpoint).origin)
    .setExpirationTime(Math.floor(nowMs / 1_000) + LIFE_S)
    .sign(createPrivateKey({ format: 'jwk', key: jwk }))
  return `vapid t=${token}, k=${publicKey}`
}
