import type { CDPSession, Page } from 'playwright-core'

/** A scanner that types like a keyboard, at real scanner speed even on a slow machine. */
export interface Wedge {
  /** Types the text, then the keys of `end`. Some scanners send two such keys. */
  scan(text: string, end?: readonly (keyof typeof CODES)[]): Promise<void>
}

/** Time between two characters, s. */
const GAP = 0.006
const PAUSE = 0.3
const CODES = { Enter: 13, Tab: 9 } as const

export async function wedge(page: Page): Promise<Wedge> {
  const line: CDPSession = await page.context().newCDPSession(page)
  let timestamp = 0
  const press = (key: string, text: string, code?: number) => {
    timestamp += GAP
    const what = { key, timestamp, ...(code !== undefined && { windowsVirtualKeyCode: code }) }
    const down = line.send('Input.dispatchKeyEvent', { type: 'keyDown', text, ...what })
    return [down, line.send('Input.dispatchKeyEvent', { type: 'keyUp', ...what })]
  }
  return {
    async scan(text, end = ['Enter']) {
      // The timestamps end at the current time.
      timestamp = Math.max(Date.now() / 1_000 - (text.length + end.length) * GAP, timestamp + PAUSE)
      const typed = [...text].flatMap((char) => press(char, char))
      await Promise.all([...typed, ...end.flatMap((key) => press(key, key === 'Enter' ? '\r' : '', CODES[key]))])
    },
  }
}
