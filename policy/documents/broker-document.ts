import { createHash } from 'node:crypto'
import { z } from 'zod'

/** Maximum length of the certificates of a private CA, characters. */
export const CA_LIMIT = 16_384

/** `broker+jwt`: where and how one agent logs in to the MQTT broker. Sent over HTTP only. */
export const BrokerClaims = z.strictObject({
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  url: z.string().max(2_000),
  username: z.string().max(200),
  /** Absent at the embedded broker: there the password is the signed challenge of the login. */
  password: z.string().max(2_000).optional(),
  /** Certificates of a private CA, PEM. Absent: the public CAs of the machine. */
  ca: z.string().max(CA_LIMIT).optional(),
})
export type BrokerClaims = z.infer<typeof BrokerClaims>

/** Address and credentials of the broker for one agent. */
export type BrokerAccess = Omit<BrokerClaims, 'aud' | 'iat' | 'exp'>

/**
 * Identifies the content of a broker document. The agent sends this identifier. The cloud returns its document only if
 * the identifiers differ.
 */
export function brokerVersion({ url, username, password, ca }: BrokerAccess): string {
  const text = JSON.stringify([url, username, password ?? null, ca ?? null])
  return createHash('sha256').update(`untag/broker/1\0${text}`).digest('base64url').slice(0, 16)
}
