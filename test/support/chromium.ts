import { existsSync, rmSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'
import { temporaryFolder } from './databases.ts'

const ASK_NOBODY = ['--disable-background-networking', '--disable-component-update', '--disable-sync']
const CHROMIUM = '/usr/bin/chromium'

const MISSING = `${CHROMIUM} is missing: install the package chromium (apt-get install chromium)`
/** Why browser tests are skipped on this machine, or undefined if they can run. */
export const NO_CHROMIUM = existsSync(CHROMIUM) ? undefined : MISSING

export interface TestBrowser {
  browser: Browser
  close(): Promise<void>
}

/** A browser that sends requests only to the tested pages. */
export async function startChromium(): Promise<TestBrowser> {
  const folder = temporaryFolder('chromium')
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', ...ASK_NOBODY],
    env: { ...process.env, HOME: folder },
  })
  return {
    browser,
    async close() {
      await browser.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
