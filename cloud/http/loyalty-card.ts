import type { Context, Hono } from 'hono'
import { Failure } from '../foundation/failure.ts'
import { originOf } from '../foundation/config.ts'
import { cardAddress, findCard } from '../loyalty/card.ts'
import { isTest } from '../purchases/present.ts'
import type { Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import { LoyaltyCardPage } from './loyalty-card-page.tsx'
import type { PageRenderer } from './page-renderer.ts'
import { tooManyRequests, type PublicAccess } from './public-access.ts'

/** Route of the page of a loyalty card. The code in the address authorizes the reader. */
export function loyaltyCardRoute(
  app: Hono,
  database: Database,
  services: Services,
  readers: PageRenderer,
  access: PublicAccess,
): void {
  const answer = async (c: Context<object, '/L/:code' | '/l/:code'>) => {
    if (access.isTooFast(c, 'card ')) return readers.problem(c, tooManyRequests())
    const card = await findCard(database.reads, c.req.param('code').slice(0, 64))
    if (!card) return readers.problem(c, new Failure('not-found', 'no such loyalty card'), undefined, 'noCard')
    const url = cardAddress(originOf(services.config), card.code)
    return readers.show(c, (reader) => LoyaltyCardPage({ ...card, url, sandbox: isTest(card.store.tenant), reader }))
  }
  app.get('/L/:code', answer)
  app.get('/l/:code', answer)
}
