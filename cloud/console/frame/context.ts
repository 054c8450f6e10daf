import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { isLanguage, LANGUAGE_COOKIE, pageLanguage, type Language } from '../../../policy/page-language.ts'
import { fetchAgents } from '../../agents/administration/agent-operations.ts'
import type { Mode } from '../../foundation/caller.ts'
import { asFailure } from '../../http/as-failure.ts'
import type { OperationResult } from '../../operations/call-context.ts'
import type { Operation } from '../../operations/operation.ts'
import { fetchOpenTasks } from '../../store-operations/open-tasks.ts'
import { fetchStores } from '../../store-operations/read-stores.ts'
import type { Store } from '../../stores/schema.ts'
import { consoleFormats, consoleTexts } from '../texts/catalogue.ts'
import type { ConsoleSession } from './access.ts'
import type { ConsolePage, OpenTasks, PageContext } from './page.ts'
import type { Preferences } from './preferences.ts'

/** Maximum number of agents among which a page looks for the store to show first. */
const AGENTS_LIMIT = 100
/** Maximum number of stores in the switcher. */
const STORES_LIMIT = 200
/** Query parameters of the switches in the header. They are no filters of a page. */
const SWITCHES = ['lang', 'mode', 'store']

/** Sources of a page's context. */
interface ContextSources {
  readonly session: ConsoleSession
  readonly page: ConsolePage | undefined
  readonly preferences: Preferences
  readonly language: Language
  readonly nowMs: number
  readonly pages: readonly ConsolePage[]
  perform(operation: Operation, mode: Mode, input: Record<string, unknown>): Promise<OperationResult>
}

/** Makes the context of a page. Reads the stores of the user, and what waits in the chosen one. */
export async function contextOf(c: Context, sources: ContextSources): Promise<PageContext> {
  const { session, page, pages, preferences, language, nowMs, perform } = sources
  const { mode } = preferences
  const run = async (operation: Operation, input: Record<string, unknown>) =>
    JSON.parse((await perform(operation, mode, input)).body) as Record<string, unknown>
  const runIfAllowed = async (operation: Operation, input: Record<string, unknown>) => {
    try {
      return await run(operation, input)
    } catch (error) {
      if (asFailure(error).code !== 'permission-denied') throw error
      return undefined
    }
  }
  const found = await runIfAllowed(fetchStores, { limit: STORES_LIMIT })
  const stores = (found?.['stores'] ?? []) as readonly Store[]
  const isChosen = preferences.storeId === 'all' || stores.some(({ storeId }) => storeId === preferences.storeId)
  const first = isChosen || stores.length < 2 ? undefined : await storeWithAgent(stores, runIfAllowed)
  const store = chosenStore(stores, preferences.storeId, page?.scope ?? 'account', first)
  const open = store && (await runIfAllowed(fetchOpenTasks, { storeId: store.storeId }))
  const query = new URLSearchParams(new URL(c.req.url).search)
  for (const name of SWITCHES) query.delete(name)
  return {
    user: session.user,
    mode,
    mayUseLive: session.mayUseLive,
    stores,
    store,
    tasks: (open?.['tasks'] ?? []) as OpenTasks,
    language,
    texts: consoleTexts(language),
    formats: consoleFormats(language),
    nowMs,
    path: c.req.path,
    query,
    params: page ? (c.req.param() as Record<string, string>) : {},
    has: (roles) => roles.includes(session.user.role),
    opens: (path) => pages.some((each) => each.path === path && each.roles.includes(session.user.role)),
    run: run as PageContext['run'],
    runIfAllowed: runIfAllowed as PageContext['runIfAllowed'],
  }
}

/** The first store with an agent: staff need the console most where tags come off. */
async function storeWithAgent(
  stores: readonly Store[],
  runIfAllowed: (operation: Operation, input: Record<string, unknown>) => Promise<Record<string, unknown> | undefined>,
): Promise<Store | undefined> {
  const found = await runIfAllowed(fetchAgents, { limit: AGENTS_LIMIT })
  const ids = new Set(((found?.['agents'] ?? []) as readonly { storeId: string }[]).map(({ storeId }) => storeId))
  return stores.find(({ storeId }) => ids.has(storeId))
}

function chosenStore(
  stores: readonly Store[],
  storeId: string | undefined,
  scope: ConsolePage['scope'],
  first: Store | undefined,
): Store | undefined {
  const chosen = stores.find((store) => store.storeId === storeId)
  if (chosen || (storeId === 'all' && scope === 'account')) return chosen
  return first ?? stores[0]
}

/** Language: the switch of the header, else the cookie, else the setting of the user, else the browser. */
export function languageOf(c: Context, session: ConsoleSession | undefined, isSecure: boolean): Language {
  const requested = c.req.query('lang')
  const remembered = getCookie(c, LANGUAGE_COOKIE)
  if (isLanguage(requested) && requested !== remembered)
    setCookie(c, LANGUAGE_COOKIE, requested, { path: '/', httpOnly: true, sameSite: 'Lax', secure: isSecure })
  return pageLanguage({
    requested,
    remembered,
    configured: session?.user.language,
    accepted: c.req.header('accept-language'),
  })
}
