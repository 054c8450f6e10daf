import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { isIdShaped } from '../../../policy/ids.ts'
import { isOfPlatform, type Mode } from '../../platform/foundation/caller.ts'
import type { ConsoleSession } from './page.ts'

const COOKIE = 'untag_console'
const MODES: ReadonlySet<string> = new Set(['test', 'live'])

/** Mode and store that this browser shows. They are no secrets: rights are checked at each call. */
export interface Preferences {
  readonly mode: Mode
  /** Undefined: no store was chosen. `all`: all stores. */
  readonly storeId: string | undefined
  /** Where the store comes from. A form, or an address, must not show or change another store than it names. */
  readonly from: 'form' | 'address' | 'cookie'
}

/**
 *   query (a switch of the header) ─▶ cookie ─▶ mode of the session, first store
 *
 * A session that may use sandbox data only is always in test mode, that of a person who runs the cloud in live mode. Reads
 * mode and store of a GET. Remembers them for this browser session. A change of the mode forgets the store.
 */
export function readPreferences(
  c: Context,
  isSecure: boolean,
  session: Pick<ConsoleSession, 'mode' | 'mayUseLive' | 'caller'>,
): Preferences {
  const [rememberedMode = '', rememberedStore = ''] = (getCookie(c, COOKIE) ?? '').split('/')
  const [queryMode, queryStore] = [c.req.query('mode'), c.req.query('store')]
  const remembered = asMode(rememberedMode) ?? session.mode
  const wanted = asMode(queryMode) ?? remembered
  const mode = isOfPlatform(session.caller) ? 'live' : session.mayUseLive ? wanted : 'test'
  const storeId = asStore(queryStore) ?? (mode === remembered ? asStore(rememberedStore) : undefined)
  const value = `${mode}/${storeId ?? ''}`
  if ((queryMode !== undefined || queryStore !== undefined) && value !== `${rememberedMode}/${rememberedStore}`)
    setCookie(c, COOKIE, value, { path: '/console', httpOnly: true, sameSite: 'Lax', secure: isSecure })
  return { mode, storeId, from: asStore(queryStore) === undefined ? 'cookie' : 'address' }
}

/** Remembers the store that a page showed first, so that only the user changes it. */
export function rememberStore(
  c: Context,
  isSecure: boolean,
  { mode, storeId, from }: Preferences,
  shown?: string,
): void {
  if (storeId !== undefined || from !== 'cookie' || shown === undefined) return
  setCookie(c, COOKIE, `${mode}/${shown}`, { path: '/console', httpOnly: true, sameSite: 'Lax', secure: isSecure })
}

/** The mode of this text, if it is one. */
export function asMode(text: string | undefined): Mode | undefined {
  return text !== undefined && MODES.has(text) ? (text as Mode) : undefined
}

/** The store id in this text, or `all`. */
export function asStore(text: string | undefined): string | undefined {
  return text !== undefined && (text === 'all' || isIdShaped(text)) ? text : undefined
}
