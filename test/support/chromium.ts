import { rmSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'
import { CHROMIUM, NO_CHROMIUM, NO_WHOLE_CHROMIUM } from '../verification/tools.ts'
import { temporaryFolder } from './databases.ts'

const ASK_NOBODY = ['--disable-background-networking', '--disable-component-update', '--disable-sync']

/** Why browser tests are skipped on this machine, or undefined if they can run. */
export { NO_CHROMIUM, NO_WHOLE_CHROMIUM }

export interface TestBrowser {
  browser: Browser
  close(): Promise<void>
}

/** A browser that sends requests only to the tested pages. */
export async function startChromium(kind: keyof typeof CHROMIUM = 'shell'): Promise<TestBrowser> {
  const executablePath = CHROMIUM[kind]
  const folder = temporaryFolder('chromium')
  const browser = await chromium.launch({
    ...(executablePath !== undefined && { executablePath }),
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
