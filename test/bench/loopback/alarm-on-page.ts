import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { realPlatform } from '../../../host/platform.ts'
import { pause } from '../../../policy/platform.ts'
import { CHROMIUM, NO_WHOLE_CHROMIUM } from '../../verification/tools.ts'
import { FigureUnavailable, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { quantile } from '../measure.ts'
import { waitRow } from './waits.ts'
import { processes, registerItems, withLoopbackStore, type LoopbackStore } from './loopback-store.ts'

/** Median from the first read outside to the alarm on the page, ms. */
const MEDIAN_MS = 1_000
const READ_EVERY_MS = 50
const INSIDE_READS = 6
const OUTSIDE_READS = 12
const LONGEST_MS = 20_000
const CARDS = 'article[data-alarm].alarm'

const SIZES = {
  full: { alarms: 50, betweenMs: 1_500 },
  quick: { alarms: 50, betweenMs: 1_500 },
  smoke: { alarms: 1, betweenMs: 0 },
} satisfies Sizes

/** Measures when an alarm of a gate is visible on the page of a guard. */
export const alarmOnPage: Figure = { sizes: SIZES, run }

/** When each step of an alarm happened, in ms after the first read outside. */
interface Alarm {
  readonly siren: number
  readonly visible: number
}

async function run({ mode, folder, note }: Bench): Promise<Result> {
  if (CHROMIUM.whole === undefined) throw new FigureUnavailable(NO_WHOLE_CHROMIUM ?? '')
  const { alarms: count, betweenMs } = SIZES[mode]
  const launch = { executablePath: CHROMIUM.whole, args: ['--no-sandbox', '--disable-gpu'] }
  const { timers } = realPlatform()
  return withLoopbackStore(folder, async (store) => {
    const browser = await chromium.launch(launch)
    try {
      const epcs = await registerItems(store, count, 1)
      const page = await browser.newPage({ viewport: { width: 390, height: 844 }, locale: 'en' })
      await openAlarms(page, store)
      note(`${count} alarms`)
      const alarms: Alarm[] = []
      for (const epc of epcs) {
        alarms.push(await raise(store, page, epc))
        await pause(timers, betweenMs)
      }
      return resultOf(alarms)
    } finally {
      await browser.close()
    }
  })
}

/** Invites a guard, signs in, opens the page of alarms, and waits until its stream is open. */
async function openAlarms(page: Page, store: LoopbackStore): Promise<void> {
  const user = [
    '--account',
    'Journey',
    '--email',
    'guard@shop.example',
    '--role',
    'associate',
    '--store',
    store.storeId,
  ]
  const invited = await processes.run(['users', 'invite', ...user, '--data', join(store.folder, 'cloud'), '--json'])
  if (invited.code !== 0) throw new Error(invited.stderr)
  const { url } = JSON.parse(invited.stdout) as { url: string }
  await page.goto(url)
  await page.locator('input[name=name]').fill('Gil Guard')
  await page.locator('input[name=password]').fill('a long password of the bench')
  await page.locator('form:has(input[name=password]) button[type=submit]').click()
  await page.waitForURL((at) => at.pathname === '/console')
  const stream = page.waitForResponse((response) => response.url().includes('/console/live?'))
  await page.goto(`${new URL(url).origin}/console/alarms?mode=test&store=${store.storeId}`)
  await stream
}

/** Carries an unpaid item out, and waits until the page shows one more alarm, the newest first. */
async function raise({ gate }: LoopbackStore, page: Page, epc: string): Promise<Alarm> {
  const { clock, timers } = realPlatform()
  const newest = await page.evaluate(`document.querySelector('${CARDS}')?.dataset.alarm`)
  const isNewer = page.locator(`:not([data-alarm="${String(newest ?? '')}"])`)
  const first = page.locator(CARDS).first()
  const shown = first
    .and(isNewer)
    .waitFor({ timeout: LONGEST_MS })
    .then(() => clock.elapsed())
  // Without this, a failure during the walk would be an unhandled rejection.
  shown.catch(() => {})
  const written = gate.writes.length
  for (let read = 0; read < INSIDE_READS; read++) {
    gate.see(epc, { antenna: 1, rssiDbm: -52 })
    await pause(timers, READ_EVERY_MS)
  }
  const readMs = clock.elapsed()
  for (let read = 0; read < OUTSIDE_READS; read++) {
    gate.see(epc, { antenna: 2, rssiDbm: -52 })
    await pause(timers, READ_EVERY_MS)
  }
  const visible = (await shown) - readMs
  const siren = gate.writes.slice(written).find(({ gpo, on, at }) => gpo === 1 && on && at >= readMs)
  return { siren: (siren?.at ?? Number.NaN) - readMs, visible }
}

function resultOf(alarms: readonly Alarm[]): Result {
  const of = (step: keyof Alarm, q: number) => quantile(alarms.map((alarm) => alarm[step]).filter(Number.isFinite), q)
  const base = of('siren', 0.5)
  const measured = of('visible', 0.5)
  return {
    title: '13  An alarm on the page of a guard',
    counts: 'wall time from the first read outside; agent, cloud and Chromium on one machine',
    rows: [
      waitRow('siren, median', base, base),
      waitRow('siren, p95', of('siren', 0.95), base),
      waitRow('visible, median', measured, base),
      waitRow('visible, p95', of('visible', 0.95), base),
    ],
    targets: [
      {
        text: `median until an alarm is visible, ms: at most ${MEDIAN_MS}`,
        measured,
        limit: MEDIAN_MS,
        met: measured <= MEDIAN_MS,
      },
    ],
    notes: [`${alarms.length} alarms`],
  }
}
