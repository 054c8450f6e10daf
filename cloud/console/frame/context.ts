import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import { isLanguage, LANGUAGE_COOKIE, pageLanguage, type Language } from '../../../policy/page-language.ts'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { hasRole, isOfPlatform, type Mode } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import type { OperationResult } from '../../platform/operations/call-context.ts'
import type { Operation } from '../../platform/operations/operation.ts'
import { fetchOpenTasks } from '../../sales/store-operations/open-tasks.ts'
import { fetchStore, fetchStoreNames } from '../../sales/store-operations/read-stores.ts'
import type { Store, StoreName } from '../../platform/stores/schema.ts'
import { consoleFormats, consoleTexts } from '../texts/catalogue.ts'
import type { ConsoleSession, BusyStores, ConsolePage, OpenTasks, PageContext } from './page.ts'
import type { Preferences } from './preferences.ts'

/** Maximum number of agents among which a page looks for the store to show first. */
const AGENTS_LIMIT = 100
/** Query parameters of the switches in the header. They are no filters of a page. */
const SWITCHES = ['lang', 'mode', 'store']

/** Sources of a page's context. */
interface ContextSources {
  readonly session: ConsoleSession
  readonly page: ConsolePage | undefined
  readonly preferences: Preferences
  readonly language: Language
  readonly nowMs: number
  readonly cloudUrl: string
  readonly pages: readonly ConsolePage[]
  perform(operation: Operation, mode: Mode, input: Record<string, unknown>): Promise<OperationResult>
}

/** Makes the context of a page. Reads the stores of the user, and what waits in the chosen one. */
export async function contextOf(c: Context, sources: ContextSources): Promise<PageContext> {
  const { session, page, pages, preferences, language, nowMs, cloudUrl, perform } = sources
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
  const listed = await runIfAllowed(fetchStoreNames, {})
  const { stores, total } = (listed ?? { stores: [], total: 0 }) as { stores: readonly StoreName[]; total: number }
  const store = await chosenStore(stores, preferences, page?.scope ?? 'account', runIfAllowed)
  const open = stores.length > 0 && (await runIfAllowed(fetchOpenTasks, store ? { storeId: store.storeId } : {}))
  const waiting = (open || {}) as { tasks?: OpenTasks; stores?: BusyStores }
  const query = new URLSearchParams(new URL(c.req.url).search.replaceAll('%00', ''))
  for (const name of SWITCHES) query.delete(name)
  return {
    user: session.user,
    mode,
    mayUseLive: session.mayUseLive,
    stores,
    storesTotal: total,
    store,
    tasks: waiting.tasks ?? [],
    busyStores: waiting.stores ?? [],
    language,
    texts: consoleTexts(language),
    formats: consoleFormats(language),
    nowMs,
    cloudUrl,
    path: c.req.path,
    query,
    params: page ? (c.req.param() as Record<string, string>) : {},
    isOfPlatform: isOfPlatform(session.caller),
    has: (roles) => hasRole(session.caller, roles),
    opens: (path) => pages.some((each) => each.path === path && hasRole(session.caller, each.roles)),
    run: run as PageContext['run'],
    runIfAllowed: runIfAllowed as PageContext['runIfAllowed'],
  }
}

type RunIfAllowed = (
  operation: Operation,
  input: Record<string, unknown>,
) => Promise<Record<string, unknown> | undefined>

/** The first store with an agent: staff need the console most where tags come off. */
async function storeWithAgent(
  stores: readonly StoreName[],
  runIfAllowed: RunIfAllowed,
): Promise<StoreName | undefined> {
  const found = await runIfAllowed(fetchAgents, { limit: AGENTS_LIMIT })
  const ids = new Set(((found?.['agents'] ?? []) as readonly { storeId: string }[]).map(({ storeId }) => storeId))
  return stores.find(({ storeId }) => ids.has(storeId))
}

/**
 * The store that a form or an address names, the one that the browser remembers, or the first. Throws 404 if the user
 * may not see the store that is named: a form must never act on another store.
 */
async function chosenStore(
  stores: readonly StoreName[],
  { storeId, from }: Preferences,
  scope: ConsolePage['scope'],
  runIfAllowed: RunIfAllowed,
): Promise<StoreName | undefined> {
  const isAll = storeId === 'all' || (from === 'form' && storeId === undefined)
  if (isAll && (from !== 'form' || scope !== 'store'))
    return scope === 'account' || stores.length > 1 ? undefined : stores[0]
  if (storeId !== undefined && storeId !== 'all') {
    const listed = stores.find((store) => store.storeId === storeId)
    const store = listed ?? (await visibleStore(storeId, runIfAllowed))
    if (store) return store
    if (from === 'address') throw notFound('store')
  }
  if (from === 'form') throw notFound('store')
  return stores.length < 2 ? stores[0] : ((await storeWithAgent(stores, runIfAllowed)) ?? stores[0])
}

async function visibleStore(storeId: string, runIfAllowed: RunIfAllowed): Promise<StoreName | undefined> {
  try {
    const store = (await runIfAllowed(fetchStore, { storeId })) as Store | undefined
    return store && { storeId, tradingName: store.tradingName, street: store.address.street, city: store.address.city }
  } catch (error) {
    if (asFailure(error).code !== 'not-found') throw error
    return undefined
  }
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
