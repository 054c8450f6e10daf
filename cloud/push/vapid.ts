import { createECDH, createPrivateKey, sign, type KeyObject } from 'node:crypto'
import type { Randomness } from '../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'
import type { Database } from '../persistence/database.ts'

/** The key pair by which push services know this installation (RFC 8292). */
export interface VapidKeys {
  /** In base64url, as browsers take it. */
  readonly publicKey: string
  readonly privateKey: KeyObject
}

const NAME = 'vapid'
/** Push services take tokens of a day at most. */
const LIFE_S = 12 * 3_600

/**
 * The installation's VAPID keys; made at the first start and never changed, because every browser binds its subscription to the
 * public key.
 */
export async function openVapid(database: Database, sealer: Sealer, random: Randomness): Promise<VapidKeys> {
  const sealed = await database.write(async (db) => {
    await db
      .insertInto('sealed_secret')
      .values({ name: NAME, sealed: sealer.seal(random.bytes(32), NAME) })
      .onConflict((c) => c.column('name').doNothing())
      .execute()
    const kept = await db
      .selectFrom('sealed_secret')
      .select('sealed')
      .where('name', '=', NAME)
      .executeTakeFirstOrThrow()
    return kept.sealed
  })
  return keysOf(sealer.open(sealed, NAME))
}

/** The key pair of a private key of 32 bytes. */
export function keysOf(secret: Uint8Array): VapidKeys {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(secret)
  const point = pair.getPublicKey()
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
    d: Buffer.from(secret).toString('base64url'),
  }
  return { publicKey: point.toString('base64url'), privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) }
}

/** `Authorization` of a request to a push service: who sends, whom it may ask (`sub`), for half a day. */
export function vapidHeader(
  { publicKey, privateKey }: VapidKeys,
  endpoint: string,
  sub: string,
  nowMs: number,
): string {
  const claims = { aud: new URL(endpoint).origin, exp: Math.floor(nowMs / 1_000) + LIFE_S, sub }
  const signed = [{ typ: 'JWT', alg: 'ES256' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `vapid t=${signed}.${signature.toString('base64url')}, k=${publicKey}`
}
