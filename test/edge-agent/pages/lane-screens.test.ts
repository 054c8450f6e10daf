// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { DENY_REASONS, type DenyReason } from '../../../policy/vocabulary.ts'
import { resultView } from '../../../edge-agent/pages/model/result-view.ts'
import type { PageResult } from '../../../edge-agent/pages/model/wire.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { denied, GATE, granted, newStatus, pagesBench, pairBrowser, servePages, STATION } from './pages-agent.ts'
import type { PagesBench, ServedPages } from './pages-agent.ts'

/** A screen of 7 inches with 1024 × 600 pixels has 0.15 mm for a pixel: 46 px are 7 mm. */
const READABLE_PX = 46
const SMALL = { width: 1024, height: 600 }
/** Names as long as catalogues have them. */
const PRODUCTS = ['Regenjacke mit Kapuze, Gr. 152', 'Herren-Winterjacke Nordkap', 'Damen-Stiefelette Wildleder']

/** What a station shows: every denial of a receipt and of a named tag, every unknown code, and what is left of receipts. */
function stationResults(): PageResult[] {
  const next = PRODUCTS.map((name, n) => ({
    name,
    category: 'shirt',
    brand: 'Nord',
    priceCent: 12_990,
    quantity: n + 1,
  }))
  const shirts = [...next, ...next].map((each, n) => ({ ...each, name: undefined, priceCent: 1_000 * n }))
  const used = { at: '2026-09-27T21:02:30.000Z', deviceName: 'Kasse 2, Eingang Süd' }
  const product = PRODUCTS[1] ?? ''
  const answers = [
    granted({ itemCount: 4, remaining: 3 }),
    granted({ outcome: 'unknown' }),
    granted({ outcome: 'failed' }),
    ...DENY_REASONS.flatMap((reason) => [denied(reason), denied(reason, { offline: true })]),
  ] as PageResult[]
  return [
    ...answers,
    ...answers.map((answer, n) => ({ ...answer, item: `tag ${n}`, product })),
    { ...denied('recalled'), item: 'tag', product: 'Regenmantel'.repeat(20) },
    { ...denied('already_redeemed'), used },
    { ...granted({ itemCount: 4, remaining: 3 }), next, forStaff: 2 },
    { ...granted({ itemCount: 9, remaining: 9 }), next: shirts, forStaff: 2 },
    { ...granted({ itemCount: 4, remaining: 0 }), forStaff: 2 },
    { kind: 'receipt', left: 9, next },
    { kind: 'receipt', left: 9, next: shirts },
    { kind: 'receipt', left: 0, used },
    ...Object.keys(textsOf('de').notUnderstood).map((why) => ({ kind: 'not_understood', why }) as PageResult),
  ] as PageResult[]
}

const SCREENS = [SMALL, { width: 1080, height: 1920 }, { width: 1280, height: 800 }]

describe.skipIf(NO_CHROMIUM)(`screens of lanes (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let chromium: TestBrowser
  let bench: PagesBench
  let served: ServedPages
  beforeAll(async () => {
    ensureBuilt()
    bench = pagesBench()
    served = await servePages(bench)
    chromium = await startChromium()
  })
  afterAll(async () => {
    await chromium?.close()
    await served?.close()
  })

  afterEach(() => void (bench.status = newStatus()))

  async function open(
    path: string,
    language: string,
    viewport: { width: number; height: number },
    pages = served,
  ): Promise<Page> {
    const context = await chromium.browser.newContext({ locale: language, viewport })
    const page = await context.newPage()
    await pairBrowser(page, pages)
    const live = page.waitForResponse((response) => response.url().endsWith('/v1/events'))
    await page.goto(`${pages.url}/${path}&lang=${language}`)
    await live
    return page
  }

  /** What does not fit: the page or its stage scrolls, or texts for shoppers are too small. */
  const faults = (page: Page, smallestPx: number) =>
    page.evaluate<string[]>(`(async () => {
      // The list takes room from the stage, which is fitted again within the frame.
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
      const stage = document.querySelector('.stage'), root = document.documentElement, found = []
      if (root.scrollHeight > innerHeight || root.scrollWidth > innerWidth) found.push('the page scrolls: ' + root.scrollHeight)
      if (stage.scrollHeight > stage.clientHeight || stage.scrollWidth > stage.clientWidth) found.push('the stage scrolls')
      const aside = document.querySelector('aside')
      if (aside && aside.scrollHeight > aside.clientHeight) found.push('the list scrolls: ' + aside.scrollHeight)
      for (const part of stage.querySelectorAll('p, h2, span')) {
        const px = parseFloat(getComputedStyle(part).fontSize)
        if (part.matches('.last') || !part.offsetParent || !part.textContent.trim()) continue
        if (px < ${smallestPx}) found.push(part.className + ' ' + px + ' px: ' + part.textContent)
      }
      return found
    })()`)

  /** Buttons of the list at the gate that touch another button, or lie over a text. */
  const touching = (page: Page) =>
    page.evaluate<string[]>(`(() => {
      // A line of the list that is scrolled away lies below other parts, and nobody sees or touches it.
      const isSeen = (each) => {
        const [list, own] = [each.closest('ol')?.getBoundingClientRect(), each.getBoundingClientRect()]
        return !list || (own.top >= list.top && own.bottom <= list.bottom)
      }
      const shown = [...document.querySelectorAll('aside :is(button, a, code, time, h2, .handled)')].filter((each) => each.offsetParent && isSeen(each))
      const boxes = shown.map((each) => [each, each.getBoundingClientRect()])
      return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).flatMap(([other, b]) =>
        [one, other].some((each) => each.tagName === 'BUTTON') &&
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom ? [one.textContent + ' / ' + other.textContent] : []))
    })()`)
  const textOf = (selector: string, page: Page) =>
    page.evaluate<string>(`document.querySelector('${selector}').textContent`)
  /** Sign and weight of a line, as the style sheet makes them. */
  const looksOf = (alarmId: string, page: Page) =>
    page.evaluate<string[]>(`(() => {
      const line = document.querySelector('[data-alarm="${alarmId}"]')
      return [getComputedStyle(line, '::before').content.slice(0, 3), getComputedStyle(line.querySelector('code')).fontWeight]
    })()`)

  const cases = SCREENS.flatMap((screen) => ['de', 'en'].map((language) => ({ ...screen, language })))
  it.each(cases)('$width × $height in $language: a station shows each answer at once', async (at) => {
    const page = await open(`station?device=${STATION}`, at.language, at)
    const smallest = at.height === SMALL.height ? READABLE_PX : 0
    expect(await faults(page, smallest)).toEqual([])
    const name = 'Frau Dr. Petersen-Lüdemann'
    bench.feed.publish({ type: 'operator', deviceId: STATION, name })
    await page.getByText(name).first().waitFor()
    expect((await page.locator('#code').boundingBox())?.width).toBeGreaterThan(150)
    expect(await faults(page, smallest)).toEqual([])
    const ends = await page.evaluate<number[]>(
      `[...document.querySelectorAll('footer button, footer a')].filter((each) => each.offsetParent).map((each) => Math.round(each.getBoundingClientRect().bottom))`,
    )
    // No control lies over another one.
    const overlaps = await page.evaluate<number>(`(() => {
      const boxes = [...document.querySelectorAll('footer button, footer a, footer p')].filter((each) => each.offsetParent).map((each) => each.getBoundingClientRect())
      return boxes.filter((a, i) => boxes.some((b, n) => n > i && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).length
    })()`)
    expect(overlaps).toBe(0)
    if (at.width === SMALL.width) expect(Math.max(...ends) - Math.min(...ends)).toBeLessThan(3)
    const found: unknown[] = []
    for (const result of stationResults()) {
      const view = resultView(result, textsOf(at.language as 'de'))
      if (!view) throw new Error('a sign-in has no view')
      bench.happens(STATION, result as never)
      // A small screen names fewer goods.
      const shown = [view.next, ...view.shorterNext].map((next) =>
        [view.headline, view.product, view.left, next, view.message, view.advice].join(''),
      )
      const isShown = async () => {
        const all = await textOf('.stage', page)
        return shown.some((text) => all.includes(text))
      }
      await expect.poll(isShown, { interval: 10, timeout: 5_000 }).toBe(true)
      for (const fault of await faults(page, smallest)) found.push([view.message, fault])
    }
    expect(found).toEqual([])
    await page.context().close()
  })

  it('a station keeps the link of the language beside a result, drops old texts, and invites no scan in a fire', async () => {
    const page = await open(`station?device=${STATION}`, 'de', SMALL)
    const aloud = () => page.evaluate<string>(`document.querySelector('[data-slot="aloud"]').textContent`)
    bench.happens(STATION, { ...denied('already_redeemed'), item: 'tag' } as never)
    await page.locator(`.stage[data-view='result']`).waitFor()
    await expect.poll(aloud).not.toBe('')
    expect(await page.getByRole('link', { name: 'English' }).isVisible()).toBe(true)
    expect(await faults(page, READABLE_PX)).toEqual([])
    const overlapped = `[...document.querySelectorAll('.result button, .result p, .result svg')].filter((each) => each.offsetParent)
      .some((each) => { const a = each.getBoundingClientRect(), b = document.querySelector('.language').getBoundingClientRect()
        return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom })`
    expect(await page.evaluate(overlapped)).toBe(false)
    await page.locator(`[data-slot='done']`).click()
    expect(await aloud()).toBe('')
    // The emergency takes the screen at once, also from a result.
    bench.happens(STATION, granted({ itemCount: 1 }) as never)
    await page.locator(`.stage[data-tone='granted']`).waitFor()
    const fire = { since: '2026-11-20T12:00:00.000Z', inputs: [], silent: true, opened: [GATE], lost: [] }
    bench.status = { ...bench.status, emergency: fire }
    bench.feed.publish({ type: 'status', status: bench.status })
    await page.locator('.stage').getByText('Notfall', { exact: true }).waitFor()
    // A result does not cover it: people must leave.
    bench.happens(STATION, granted({ itemCount: 1 }) as never)
    bench.happens(STATION, { ...denied('already_redeemed'), item: 'tag' } as never)
    await page.waitForTimeout(300)
    expect(await page.locator('.stage').innerText()).toContain('Bitte verlassen Sie jetzt das Geschäft.')
    expect(await page.locator('.idle').isVisible()).toBe(false)
    bench.status = { ...bench.status, emergency: null }
    bench.feed.publish({ type: 'status', status: bench.status })
    await page.locator('.idle').waitFor()
    expect(await aloud()).toBe('')
    await page.context().close()
  })

  it('the causes of an alarm are buttons of one size', async () => {
    const page = await open(`gate?device=${GATE}`, 'de', SMALL)
    await page.evaluate(`document.querySelector('[data-slot="alarm-dialog"]').showModal()`)
    const sizes = await page.evaluate<string[]>(`[...document.querySelectorAll('.steps-of-alarm [data-step]')]
      .filter((each) => each.offsetParent)
      .map((each) => { const { width, height } = each.getBoundingClientRect(); return Math.round(width) + 'x' + Math.round(height) })`)
    expect(sizes.length).toBeGreaterThan(4)
    expect(new Set(sizes).size).toBe(1)
    await page.context().close()
  })

  it.each(cases)('$width × $height in $language: a gate shows alarms and the way out', async (at) => {
    const smallest = at.height === SMALL.height ? READABLE_PX : 0
    const page = await open(`gate?device=${GATE}`, at.language, at)
    const stage = (tone: string) => page.locator(`.stage[data-tone='${tone}']`).waitFor()
    expect(await faults(page, smallest)).toEqual([])
    await page.locator(`[data-slot='sign-in']`).click()
    await page.locator(`[data-slot='sign-in-dialog'][open]`).waitFor()
    await page.locator(`[data-slot='sign-in-close']`).click()
    const alarm = { ...denied('item_not_paid'), item: '3034257BF7194E4000001A85', product: 'Regenjacke mit Kapuze' }
    for (let n = 0; n < 5; n++) bench.happens(GATE, { ...alarm, alarmId: `evt_${n}` } as never)
    await stage('alarm')
    expect(await faults(page, smallest)).toEqual([])
    expect(await touching(page)).toEqual([])
    // An alarm whose cause is recorded looks done.
    // The agent of this bench forgets it, so a page that reads its list meanwhile learns it from the next event only.
    const done = page.locator('[data-alarm="evt_4"][data-step="phantom"]')
    await expect
      .poll(() => {
        bench.feed.publish({ type: 'alarm', deviceId: GATE, alarmId: 'evt_4', step: 'phantom', by: 'Frau Petersen' })
        return done.count()
      })
      .toBe(1)
    expect([await looksOf('evt_4', page), await looksOf('evt_3', page)]).toEqual([
      ['"✓"', '400'],
      ['"✕"', '600'],
    ])
    expect(await faults(page, smallest)).toEqual([])
    expect(await touching(page)).toEqual([])
    bench.feed.publish({ type: 'operator', deviceId: GATE, name: 'Demo (alle Bildschirme)' })
    await page.locator(`[data-slot='sign-out']`).waitFor()
    // A colleague sees who is signed in, also beside a full list.
    expect(await page.locator('aside').innerText()).toContain('Demo (alle Bildschirme)')
    expect(await touching(page)).toEqual([])
    expect(await faults(page, smallest)).toEqual([])
    bench.feed.publish({ type: 'operator', deviceId: GATE, name: null })
    await page.locator(`[data-slot='sign-in']`).click()
    await page.locator(`[data-slot='sign-in-dialog'][open]`).waitFor()
    bench.status = {
      ...bench.status,
      emergency: { since: '2026-11-20T12:00:00.000Z', inputs: [], silent: true, opened: [GATE], lost: [] },
    }
    bench.feed.publish({ type: 'status', status: bench.status })
    await stage('way_out')
    expect(await page.locator('dialog[open]').count()).toBe(0)
    bench.happens(GATE, alarm as never)
    await page.locator('aside li').first().waitFor({ state: 'attached' })
    expect(await page.locator('header, aside').filter({ visible: true }).count()).toBe(0)
    expect(await page.locator('.stage').innerText()).toContain({ de: 'Ausgang offen', en: 'Exit open' }[at.language])
    expect(await faults(page, 0)).toEqual([])
    await page.reload()
    await stage('way_out')
    await page.context().close()
  })

  it.each(cases)('$width × $height in $language: a gate leads to each open alarm, those first', async (at) => {
    const own = pagesBench()
    const ownPages = await servePages(own)
    const page = await open(`gate?device=${GATE}`, at.language, at, ownPages)
    own.feed.publish({ type: 'operator', deviceId: GATE, name: 'Frau Dr. Petersen-Lüdemann' })
    await page.locator(`[data-slot='sign-out']`).waitFor()
    const count = 20
    for (let n = 0; n <= count; n++) {
      const of = { item: `3034257BF7194E40000${n}`, product: PRODUCTS[n % 3], alarmId: `evt_${n}` }
      own.happens(GATE, { ...denied(n === 3 ? 'recalled' : 'item_not_paid'), ...of } as never)
    }
    own.feed.publish({ type: 'alarm', deviceId: GATE, alarmId: `evt_${count}`, step: 'phantom', by: 'Frau Petersen' })
    await page.locator(`[data-alarm="evt_${count}"][data-step]`).waitFor({ state: 'attached' })
    /** Open alarms that a person sees whole. */
    const seen = () =>
      page.evaluate<string[]>(`(() => {
        const list = document.querySelector('aside ol').getBoundingClientRect()
        return [...document.querySelectorAll('aside li')].filter((each) => each.offsetParent).flatMap((each) => {
          const { top, bottom } = each.getBoundingClientRect()
          return top >= list.top - 1 && bottom <= Math.min(list.bottom, innerHeight) + 1 ? [each.dataset.alarm] : []
        })
      })()`)
    const first = await seen()
    expect(first.length).toBeGreaterThanOrEqual(3)
    expect(first).toEqual(Array.from({ length: first.length }, (_, n) => `evt_${count - 1 - n}`))
    const reached = new Set(first)
    const more = page.locator(`[data-slot='more-open']`)
    for (let presses = 0; presses < count && /\d/.test(await more.innerText()); presses++) {
      expect(await faults(page, 0)).toEqual([])
      expect(await touching(page)).toEqual([])
      const { y = 0, height = 0 } = (await more.boundingBox()) ?? {}
      expect(y + height).toBeLessThanOrEqual(at.height)
      await more.click()
      for (const alarmId of await seen()) reached.add(alarmId)
    }
    expect(reached.size).toBe(count)
    await page.locator('[data-alarm="evt_3"]').getByRole('button').click()
    const dialog = page.locator(`[data-slot='alarm-dialog'][open]`)
    await dialog.getByText(textsOf(at.language as 'de').gate.recalled).waitFor()
    expect(await dialog.evaluate((each) => each.scrollHeight - each.clientHeight)).toBe(0)
    await page.locator(`[data-slot='alarm-close']`).click()
    while (/\d/.test(await more.innerText())) await more.click()
    await more.click()
    expect(await seen()).toEqual(first)
    await page.context().close()
    await ownPages.close()
  })

  it.each(cases)(
    '$width × $height in $language: a gate names the goods of each alarm, and tells shoppers why',
    async (at) => {
      const texts = textsOf(at.language as 'de')
      const own = pagesBench()
      const ownPages = await servePages(own)
      const page = await open(`gate?device=${GATE}`, at.language, at, ownPages)
      const smallest = at.height === SMALL.height ? READABLE_PX : 0
      const found: unknown[] = []
      const check = async (reason: DenyReason, text: string) => {
        await expect.poll(() => textOf('.stage', page), { interval: 10, timeout: 5_000 }).toContain(text)
        for (const fault of await faults(page, smallest)) found.push([reason, fault])
      }
      for (const reason of DENY_REASONS) {
        own.happens(GATE, denied(reason) as never)
        await check(reason, texts.reasons[reason].todo)
      }
      const longest = 'Regenmantel'.repeat(20)
      for (const names of [PRODUCTS, [longest]])
        for (const reason of DENY_REASONS) {
          for (const [n, product] of names.entries())
            own.happens(GATE, { ...denied(reason, { itemStatus: 'exception_hold' }), item: `${n}`, product } as never)
          await check(reason, texts.reasons[reason].what)
        }
      expect(found).toEqual([])
      await page.context().close()
      await ownPages.close()
    },
  )
})
