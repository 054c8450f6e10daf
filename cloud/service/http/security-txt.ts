import type { Hono } from 'hono'
import { originOf } from '../../platform/foundation/config.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { PublicAccess } from './public-access.ts'

/** Validity of one answer, ms. RFC 9116 asks for less than a year. */
const VALID_MS = 180 * 86_400_000

/** Route with the contact for security reports (RFC 9116). Without a contact there is no such page. */
export function securityTxtRoute(app: Hono, { config, platform }: Services, access: PublicAccess): void {
  const { securityContact } = config
  if (securityContact === undefined) return
  const path = '/.well-known/security.txt'
  app.get(path, (c) => {
    if (access.isTooFast(c, 'security ')) return access.refuseTooFast(c)
    const expires = new Date(platform.clock.wall() + VALID_MS).toISOString()
    const lines = [
      `Contact: ${new URL(securityContact).href}`,
      `Expires: ${expires}`,
      'Preferred-Languages: de, en',
      `Canonical: ${originOf(config)}${path}`,
    ]
    return c.text(`${lines.join('\n')}\n`, 200, { 'cache-control': 'public, max-age=3600' })
  })
}
