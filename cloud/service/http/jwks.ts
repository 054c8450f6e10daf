import type { Context, Hono } from 'hono'
import { publicJwk } from '../../../policy/documents/keys.ts'
import { isIdShaped } from '../../../policy/ids.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { JSON_HEADERS } from './json-headers.ts'
import type { PublicAccess } from './public-access.ts'

/** Routes for the public keys of tokens and receipts: all keys, or the keys of one issuer. */
export function jwksRoutes(app: Hono, database: Database, access: PublicAccess): void {
  app.get('/.well-known/jwks.json', (c) => answer(c))
  app.get('/.well-known/jwks/:file', (c) => answer(c, c.req.param('file').replace(/\.json$/, '')))

  async function answer(c: Context, iss?: string): Promise<Response> {
    if (access.isTooFast(c, 'jwks ')) return access.refuseTooFast(c)
    // A text without the form of an id cannot be an issuer, and PostgreSQL rejects texts with NUL.
    if (iss !== undefined && !isIdShaped(iss))
      return c.json({ keys: [] }, 200, { ...JSON_HEADERS, 'access-control-allow-origin': '*' })
    let query = database.reads
      .selectFrom('signing_key')
      .select(['kid', 'x', 'key_use', 'iss'])
      .where('key_use', 'in', ['token', 'receipt'])
      .where('state', 'in', ['next', 'active', 'retiring'])
    if (iss !== undefined) query = query.where('iss', '=', iss)
    const rows = await query.orderBy('kid').execute()
    const keys = rows.map((row) => ({ ...publicJwk(row.x), kid: row.kid, use: 'sig', alg: 'EdDSA' }))
    return c.json({ keys }, 200, {
      ...JSON_HEADERS,
      'cache-control': 'public, max-age=60',
      'access-control-allow-origin': '*',
    })
  }
}
