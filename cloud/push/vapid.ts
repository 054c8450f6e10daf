import { createECDH } from 'node:crypto'
import webPush from 'web-push'
import type { Randomness } from '../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'
import type { VapidKeys } from '../foundation/ports.ts'
import type { Database } from '../persistence/database.ts'

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
 * `Authorization` of a request to a push service. The token is valid for 12 h.
 *
 * @param sub Contact of the sender: an `https:` or `mailto:` address.
 */
export function vapidHeader(
  { publicKey, privateKey }: VapidKeys,
  endpoint: string,
  sub: string,
  nowMs: number,
): string {
  const exp = Math.floor(nowMs / 1_000) + LIFE_S
  const { origin } = new URL(endpoint)
  return webPush.getVapidHeaders(origin, sub, publicKey, privateKey, CONTENT_ENCODING, exp).Authorization
}
