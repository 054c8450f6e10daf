import type { Context, Hono } from 'hono'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { TimeClaims } from '../../../policy/documents/store-documents.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { JSON_HEADERS } from './json-headers.ts'
import type { PublicAccess } from './public-access.ts'

/** Route for signed time, for anyone (ADR 0015). The nonce proves that the response is fresh. */
export function signedTimeRoute(
  app: Hono,
  base: string,
  { authority }: Pick<Services, 'authority'>,
  access: PublicAccess,
): void {
  app.get(`${base}/time`, async (c: Context) => {
    if (access.isTooFast(c)) return access.refuseTooFast(c)
    const nonce = c.req.query('nonce') ?? ''
    if (!/^[A-Za-z0-9_-]{16,64}$/.test(nonce))
      return access.refuse(c, invalid('nonce', 'must be 16 to 64 characters of base64url'))
    await authority.refresh()
    const why = authority.clock.untrustedReason()
    if (why) return access.refuse(c, new Failure('unavailable', why))
    const timeMs = authority.clock.nowMs()
    const iat = Math.floor(timeMs / 1_000)
    const claims: TimeClaims = { aud: nonce, iat, exp: iat + 60, timeMs, timeEpoch: authority.timeEpoch }
    const time = signDocument(DOCUMENT_KINDS.time, claims, authority.freshnessSigner)
    return c.json({ success: true, time }, 200, JSON_HEADERS)
  })
}
