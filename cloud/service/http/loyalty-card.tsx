import type { Context, Hono } from 'hono'
import { Failure } from '../../platform/foundation/failure.ts'
import { originOf } from '../../platform/foundation/config.ts'
import { cardAddress, findCard, type Card } from '../../shop/loyalty/card-operations.ts'
import { isTest } from '../../shop/purchases/present.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import {
  ConnectionLost,
  ConnectionScript,
  LIVE_PAGE_HEADERS,
  type PageRenderer,
  Page,
  type PageContext,
} from './page.tsx'
import { tooManyRequests, type PublicAccess } from './public-access.ts'
import { qrPngBase64 } from '../../platform/foundation/qr-code.ts'
import { tierOf } from '../../shop/loyalty/program.ts'

interface CardView extends Omit<Card, 'code'> {
  /** Address of this page. */
  url: string
  sandbox: boolean
  reader: PageContext
}

/** Page of a loyalty card: code for the till, balance, the next reward, and all rewards. */
function LoyaltyCardPage({ member, program, store, url, sandbox, reader }: CardView) {
  const { texts, formats } = reader
  const t = texts.loyaltyCard
  const { balance, next_expiry_ms: expiresMs } = member
  const unit = program.type === 'stamps' || program.type === 'cashback' ? program.type : 'points'
  const amount = (units: number) => (unit === 'cashback' ? formats.money(units) : formats.count(units))
  const inWords = (units: number) => t.balance[unit](amount(units), units)
  const tier = tierOf(program, balance)
  const next = program.rewards.find(({ cost }) => cost > balance)
  return (
    <Page
      title={`${program.row.name}, ${store.trading_name}`}
      reader={reader}
      sandbox={sandbox}
      head={<ConnectionScript />}
    >
      <ConnectionLost texts={reader.texts} />
      <p class="soft">
        {t.title} · {store.trading_name}
      </p>
      <h1>{program.row.name}</h1>
      <p class="balance">{inWords(balance)}</p>
      {tier === undefined ? null : (
        <p>
          <span class="soft">{t.level}:</span> {tier.name}
        </p>
      )}
      {next === undefined ? null : (
        <p>
          <label for="next">{t.next(inWords(next.cost - balance), next.name)}</label>
          <progress id="next" max={next.cost} value={Math.max(0, balance)} />
        </p>
      )}
      {program.row.is_active === 1 ? null : <p>{t.inactive}</p>}
      <img class="code" src={`data:image/png;base64,${qrPngBase64(url)}`} alt={t.qr} />
      <p>{t.show}</p>
      {program.rewards.length === 0 ? null : (
        <>
          <h2>{t.rewards}</h2>
          <table>
            <thead>
              <tr>
                <th>{t.reward}</th>
                <th class="n">{t.cost}</th>
              </tr>
            </thead>
            <tbody>
              {program.rewards.map(({ name, cost }) => (
                <tr>
                  <td>
                    {name} {cost <= balance ? <span class="tag">{t.ready}</span> : null}
                  </td>
                  <td class="n">{amount(cost)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {expiresMs === null || balance === 0 ? null : <p class="soft">{t.expires(formats.day(expiresMs))}</p>}
      <p class="soft">{t.keep}</p>
    </Page>
  )
}

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
    const sandbox = isTest(card.store.tenant)
    const page = (reader: PageContext) => LoyaltyCardPage({ ...card, url, sandbox, reader })
    return readers.show(c, page, 200, LIVE_PAGE_HEADERS)
  }
  app.get('/L/:code', answer)
  app.get('/l/:code', answer)
}
