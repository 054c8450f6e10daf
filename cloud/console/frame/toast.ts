import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { ConsoleTexts } from '../texts/catalogue.ts'
import type { ConsolePage } from './page.ts'

const COOKIE = 'untag_toast'

/** Remembers the action that succeeded, for the page that the browser fetches next. */
export function setToast(c: Context, page: ConsolePage, action: string, isSecure: boolean): void {
  setCookie(c, COOKIE, `${page.path} ${action}`, cookieOptions(isSecure, 60))
}

/** The message of the action that succeeded last, once. */
export function takeToast(
  c: Context,
  pages: readonly ConsolePage[],
  texts: ConsoleTexts,
  isSecure: boolean,
): string | undefined {
  const remembered = getCookie(c, COOKIE)
  if (remembered === undefined) return undefined
  setCookie(c, COOKIE, '', cookieOptions(isSecure, 0))
  const [path, name = ''] = remembered.split(' ')
  const actions = pages.find((page) => page.path === path)?.actions ?? {}
  return Object.hasOwn(actions, name) ? actions[name]?.done(texts) : undefined
}

function cookieOptions(secure: boolean, maxAge: number) {
  return { path: '/console', httpOnly: true, sameSite: 'Lax', secure, maxAge } as const
}
