import type { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FIX_PAGES, FIXES } from '../../../cloud/console/components/fixes.ts'
import { fixHref } from '../../../cloud/console/components/exception-card.tsx'
import { consoleTexts } from '../../../cloud/console/texts/catalogue.ts'
import { firstIdAt } from '../../../policy/ids.ts'
import { EXCEPTION_KINDS } from '../../../policy/vocabulary.ts'
import { browserOf, consoleOf, fillConsole } from '../../support/console.ts'
import { openShop, type Shop } from '../../support/shop.ts'

/** Each exception carries its fix: the steps in words, and the button or the page that does it. */
describe('fixes of exceptions', () => {
  let shop: Shop
  let app: Hono
  let about: { deviceId: string; purchaseId: string }

  beforeAll(async () => {
    shop = await openShop('sqlite')
    app = consoleOf(shop, (await fillConsole(shop)).accountId)
    const { database } = shop.cloud.db
    const purchaseId = (await shop.buy([{ productId: shop.products[0].productId, quantity: 1 }])).transactionId
    about = { deviceId: Object.values(shop.devices)[0] as string, purchaseId }
    const { tenant } = await database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    await database.write(async (db) => {
      await db.deleteFrom('protection_exception').execute()
      await db
        .insertInto('protection_exception')
        .values(
          [...EXCEPTION_KINDS, 'of_a_later_release'].map((kind, n) => ({
            exception_id: firstIdAt('exc', n * 1_000),
            tenant,
            store_id: shop.storeId,
            kind,
            // The end of an emergency is one exception of its agent.
            subject: `agt_Kabinen/${kind === 'emergency_ended' ? 'end' : kind}`,
            device_id: about.deviceId,
            purchase_id: about.purchaseId,
            detail: 'what the agent says',
            raised_ms: shop.cloud.platform.clock.wall(),
            times: 1,
          })),
        )
        .execute()
    })
  })
  afterAll(() => shop?.stop())

  const { get } = browserOf(
    () => shop,
    () => app,
    'owner',
  )

  /** The cards of all pages of the list, by their titles. */
  async function cards(lang: string, storeId: string): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    let path: string | undefined = '/console/exceptions'
    while (path !== undefined) {
      const text: string = await get(path, { lang, storeId })
      for (const [card, title = ''] of text.matchAll(/<h2>([^<]+)<\/h2>[^]*?<details>/g)) found.set(title, card)
      const next: RegExpExecArray | undefined = [...text.matchAll(/<a class="button" href="([^"]*cursor=[^"]+)"/g)].at(
        -1,
      )
      path = next?.[1]?.replaceAll('&amp;', '&')
    }
    return found
  }

  it.each(['en', 'de'] as const)('%s: every kind shows its steps, and its button or link', async (lang) => {
    const { exceptionTitles, exceptionSteps, exceptions } = consoleTexts(lang)
    for (const storeId of [shop.storeId, 'all']) {
      const shown = await cards(lang, storeId)
      for (const kind of EXCEPTION_KINDS) {
        // The alarms of gates have a page of their own.
        if (kind === 'gate_alarm' || kind === 'gate_bulk_alarm') continue
        const card = shown.get(exceptionTitles[kind]) ?? ''
        expect([kind, card.includes(exceptionSteps[kind])]).toEqual([kind, true])
        const fix = FIXES[kind]
        if (fix.by === 'page') {
          const link = new RegExp(`href="([^"]+)"[^>]*>${exceptions.openPage[fix.page]}<`).exec(card)?.[1]
          const store =
            storeId === 'all' ? `${fixHref(about, fix.page)?.includes('?') ? '&amp;' : '?'}store=${shop.storeId}` : ''
          expect([kind, link]).toEqual([kind, `${fixHref(about, fix.page)}${store}`])
        }
        const action = { tag: 'resolve', fork: 'trust', revoke: 'revoke' } as const
        if (fix.by === 'button')
          expect([kind, card.includes(`name="_action" value="${action[fix.button]}"`)]).toEqual([kind, true])
      }
    }
  })

  it('an exception of a later release says whom to ask, and shows its details', async () => {
    const card = (await cards('en', shop.storeId)).get('Another exception')
    expect(card).toContain('Show the details to the administrator.')
  })

  it.each(Object.keys(FIX_PAGES) as (keyof typeof FIX_PAGES)[])('the page %s exists', async (page) => {
    const text = await get(fixHref(about, page) ?? '')
    expect(text).toContain('<main')
    for (const missing of ['This page does not exist', 'has no such device', 'There is no such operation'])
      expect([page, text.includes(missing)]).toEqual([page, false])
  })

  it('leads nowhere if the exception does not name what the page is about', () => {
    expect(fixHref({}, 'device')).toBeUndefined()
    expect(fixHref({}, 'purchase')).toBeUndefined()
    expect(fixHref({}, 'rules')).toBe('/console/rules')
  })
})
