import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import { otherLanguage } from '../../../policy/page-language.ts'
import type { Child } from 'hono/jsx'
import { URGENT_TASKS } from '../../sales/store-operations/open-tasks.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import type { ConsoleAssets } from '../frame/assets.ts'
import { HTMX_CONFIG } from '../frame/headers.ts'
import { NAVIGATION_GROUPS, type ConsolePage, type PageContext } from '../frame/page.ts'
import type { ConsoleTexts } from '../texts/catalogue.ts'
import { Icon } from './icons.tsx'
import { countId, type CountPlace } from './live.tsx'
import { Toasts } from './notice.tsx'
import { FRAME_FIELDS } from '../frame/form.ts'
import type { StoreName } from '../../platform/stores/schema.ts'

/** The mark of untag: a `u`, the open tag, and above it the pin that lifts off. */
function Mark({ size = 28 }: { size?: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <path d="M8 7v11a8 8 0 0 0 16 0V7" fill="none" stroke="currentColor" stroke-width="4.4" stroke-linecap="round" />
      <circle cx="16" cy="7.2" r="2.9" fill="#2fb6a8" />
    </svg>
  )
}

/** Street and city, to tell apart stores of one name. */
function addressOf({ street, city }: StoreName): string {
  return `${street}, ${city}`
}

/** Address of this page with another mode, store or language. */
function hrefWith(at: PageContext, change: Readonly<Record<string, string>>): string {
  return `${at.path}?${new URLSearchParams(change)}`
}

/** Stores in the menu of each page. The page of stores has all. */
const SWITCHER_STORES = 50

/** The chosen store, those in which something waits, then the others. */
function switcherStores(at: PageContext): readonly StoreName[] {
  const busy = new Set(at.busyStores.map(({ storeId }) => storeId))
  const rank = ({ storeId }: StoreName) => (storeId === at.store?.storeId ? 0 : busy.has(storeId) ? 1 : 2)
  return at.storesTotal <= SWITCHER_STORES
    ? at.stores
    : at.stores.toSorted((a, b) => rank(a) - rank(b)).slice(0, SWITCHER_STORES)
}

/** Chooses the store that the pages show. */
function StoreSwitch({ at }: { at: PageContext }) {
  const texts = at.texts.frame
  const current = at.store?.tradingName ?? (at.stores.length === 0 ? texts.noStore : texts.allStores)
  return (
    <>
      <button
        type="button"
        class="menu-button store"
        popovertarget="stores"
        aria-label={`${texts.switchStore}: ${current}`}
      >
        <Icon name="store" />
        <span>{current}</span>
        <Icon name="down" size={16} />
      </button>
      <div id="stores" class="popover at-top left" popover="auto" role="dialog" aria-label={texts.switchStore}>
        {at.stores.length > 1 ? (
          <StoreLink href={hrefWith(at, { store: 'all' })} name={texts.allStores} isCurrent={at.store === undefined} />
        ) : null}
        {switcherStores(at).map((store) => (
          <StoreLink
            href={hrefWith(at, { store: store.storeId })}
            name={store.tradingName}
            address={addressOf(store)}
            isCurrent={store.storeId === at.store?.storeId}
          />
        ))}
        {at.storesTotal > SWITCHER_STORES ? (
          <a class="menu-item" href="/console/stores">
            {texts.moreStores(at.formats.number(at.storesTotal))}
          </a>
        ) : null}
        {at.stores.length === 0 ? <p class="menu-title soft">{noStoreText(at)}</p> : null}
      </div>
    </>
  )
}

/** How a user without a store gets one. */
export function noStoreText(at: PageContext): string {
  const { text, ofOwner } = at.texts.errors.noStore
  return at.has(rolesFrom('admin')) ? ofOwner : text
}

function StoreLink(props: { href: string; name: string; address?: string; isCurrent: boolean }) {
  const { href, name, address, isCurrent } = props
  return (
    <a class="menu-item" href={href} {...(isCurrent && { 'aria-current': 'true' as const })}>
      <span>
        {name}
        {address === undefined ? null : <small>{address}</small>}
      </span>
      {isCurrent ? (
        <span class="check">
          <Icon name="check" />
        </span>
      ) : null}
    </a>
  )
}

/** Switches between live and test data. Says why, if the session may not see live data. */
function ModeSwitch({ at }: { at: PageContext }) {
  const texts = at.texts.frame
  if (!at.mayUseLive)
    return (
      <div class="mode" role="group" aria-label={texts.mode}>
        <button type="button" popovertarget="no-live">
          {texts.live}
        </button>
        <a href={hrefWith(at, { mode: 'test' })} aria-current="true">
          {texts.test}
        </a>
        <div id="no-live" class="popover at-top" popover="auto" role="dialog" aria-label={texts.live}>
          <p class="menu-title">{at.user.role === 'owner' ? texts.liveNeedsFactor : texts.testOnly}</p>
          {at.user.role === 'owner' ? (
            <a class="button main" href="/console/profile">
              {texts.profile}
            </a>
          ) : null}
        </div>
      </div>
    )
  return (
    <div class="mode" role="group" aria-label={texts.mode}>
      {(['live', 'test'] as const).map((mode) => (
        <a href={hrefWith(at, { mode })} {...(mode === at.mode && { 'aria-current': 'true' as const })}>
          {texts[mode]}
        </a>
      ))}
    </div>
  )
}

/** Name, role, language and sign-out. */
function AccountMenu({ at, csrfToken }: { at: PageContext; csrfToken: string }) {
  const texts = at.texts.frame
  const other = otherLanguage(at.language)
  return (
    <>
      <button
        type="button"
        class="menu-button account"
        popovertarget="account"
        aria-label={texts.accountOf(at.user.name)}
      >
        <span class="avatar" data-initials={initials(at.user.name)}></span>
        <span class="name">{at.user.name}</span>
        <Icon name="down" size={16} />
      </button>
      <div id="account" class="popover at-top" popover="auto" role="dialog" aria-label={texts.account}>
        <p class="menu-title">
          <strong>{at.user.name}</strong>
          <span class="small soft">
            {at.user.email} · {texts.roles[at.user.role]}
          </span>
        </p>
        <div class="menu-line"></div>
        <a class="menu-item" href={hrefWith(at, { lang: other })} lang={other} hreflang={other}>
          <Icon name="language" />
          {texts.otherLanguage}
        </a>
        <a class="menu-item" href="/console/profile">
          <Icon name="user" />
          {texts.profile}
        </a>
        <SignOut csrfToken={csrfToken} label={texts.signOut} everywhere="no" />
        <SignOut csrfToken={csrfToken} label={texts.signOutEverywhere} everywhere="yes" />
      </div>
    </>
  )
}

function SignOut({ csrfToken, label, everywhere }: { csrfToken: string; label: string; everywhere: 'yes' | 'no' }) {
  return (
    <form method="post" action="/console/sign-out">
      <input type="hidden" name={FRAME_FIELDS.csrf} value={csrfToken} />
      <input type="hidden" name="everywhere" value={everywhere} />
      <button class="menu-item">
        <Icon name="out" />
        {label}
      </button>
    </form>
  )
}

function initials(name: string): string {
  const words = name.split(/\s+/).filter((word) => /^\p{L}/u.test(word))
  return [words[0], words.length > 1 ? words.at(-1) : undefined]
    .map((word) => word?.[0] ?? '')
    .join('')
    .toUpperCase()
}

/** Maximum number of pages in the bottom bar of a phone. The others are behind “More”. */
const TABS = 4

/** What the frame draws around a page. */
interface FrameProps {
  at: PageContext
  csrfToken: string
  assets: ConsoleAssets
  /** Pages of the navigation that the user may open. */
  pages: readonly ConsolePage[]
  title: string
  lead?: string | undefined
  toast?: string | undefined
  /** Address of the event stream of the page's topics; undefined if the page is not live. */
  liveHref?: string | undefined
  children?: Child
}

/** Head of every document of the console. */
function Head({ title, assets, mode }: { title: string; assets: ConsoleAssets; mode?: string }) {
  return (
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
      <meta name="robots" content="noindex" />
      <meta name="htmx-config" content={HTMX_CONFIG} />
      <meta name="theme-color" content={mode === 'test' ? '#ffc83d' : '#102a31'} />
      <title>{`${title} · untag`}</title>
      <link rel="icon" href={assets.href('mark.svg')} type="image/svg+xml" />
      <link rel="stylesheet" href={assets.href('console.css')} />
      <script src={assets.href('htmx.js')} defer></script>
      <script src={assets.href('sse.js')} defer></script>
      <script src={assets.href('console.js')} defer></script>
      <script src={assets.href('typed.js')} defer></script>
      <script src={assets.href('connection.js')} defer></script>
      <script src={assets.href('alarms.js')} defer></script>
      <script src={assets.href('notices.js')} defer></script>
      <script src={assets.href('passkeys.js')} defer></script>
    </head>
  )
}

/** A page with navigation, header and content. */
export function Frame(props: FrameProps) {
  const { at, assets, title, lead, toast, liveHref, children } = props
  const texts = at.texts.frame
  const isTest = at.mode === 'test'
  return (
    <html lang={at.language} class={isTest ? 'is-test' : undefined}>
      <Head title={title} assets={assets} mode={at.mode} />
      <body data-user={at.user.userId}>
        <a class="skip" href="#content">
          {texts.skip}
        </a>
        {isTest ? (
          <div class="ribbon">
            <p>{texts.testRibbon}</p>
          </div>
        ) : null}
        <ConnectionLost texts={at.texts} />
        <div class="frame">
          <SideBar {...props} />
          <div class="main-column">
            <TopBar {...props} />
            <main
              class="content"
              id="content"
              tabindex={-1}
              {...(liveHref && { 'hx-ext': 'sse', 'sse-connect': liveHref })}
            >
              <div id="page">
                <div class="page-head">
                  <div>
                    <p class="on-paper">
                      {[
                        at.isOfPlatform ? texts.platform : at.store?.tradingName,
                        at.formats.moment(at.nowMs),
                        isTest ? texts.testRibbon : '',
                      ]
                        .filter((part) => part)
                        .join(' · ')}
                    </p>
                    <h1>{title}</h1>
                    {lead === undefined ? null : <p>{lead}</p>}
                  </div>
                </div>
                {children}
              </div>
            </main>
          </div>
          <BottomBar {...props} />
        </div>
        <Toasts message={toast} />
      </body>
    </html>
  )
}

/** What the page says while the cloud does not answer (http/browser/connection.ts). */
function ConnectionLost({ texts: { frame } }: { texts: ConsoleTexts }) {
  const texts = frame.connection
  return (
    <div id="connection" class="connection" role="alert" hidden data-zone={STORE_TIME_ZONE} data-old={texts.old}>
      <Icon name="warning" />
      <p>
        <strong>{texts.lost}</strong> <span data-text></span>{' '}
        <span data-sent="entry" hidden>
          {texts.notConfirmed}
        </span>
        <span data-sent="press" hidden>
          {texts.pressNotConfirmed}
        </span>
      </p>
    </div>
  )
}

function NavigationLink({ page, at, size }: { page: ConsolePage; at: PageContext; size?: number }) {
  return (
    <a class="nav-link" href={page.path} {...currentOf(page, at)}>
      <Icon name={page.navigation?.icon ?? 'more'} {...(size !== undefined && { size })} />
      <span>{page.title(at.texts)}</span>
      <WaitingCount page={page} at={at} place="side" />
    </a>
  )
}

/** Pages of a group. What the store needs all day is always in view; the other groups open at their heading. */
function NavigationGroup({
  at,
  name,
  group,
  own,
}: {
  at: PageContext
  name: string
  group: (typeof NAVIGATION_GROUPS)[number]
  own: readonly ConsolePage[]
}) {
  const links = own.map((page) => <NavigationLink page={page} at={at} />)
  if (group === 'work' || group === 'platform')
    return (
      <div class="nav-group">
        <p>{name}</p>
        {links}
      </div>
    )
  const isCurrent = own.some((page) => 'aria-current' in currentOf(page, at))
  return (
    <details class="nav-group" open={isCurrent}>
      <summary>{name}</summary>
      {links}
    </details>
  )
}

/** How many tasks of the page wait. Live parts of the page refresh it (components/live.tsx). */
function WaitingCount({ page, at, place }: { page: ConsolePage; at: PageContext; place: CountPlace }) {
  const kinds = page.navigation?.tasks
  if (!kinds) return null
  const own = at.tasks.filter(({ kind, count }) => count > 0 && kinds.includes(kind))
  const count = own.reduce((sum, task) => sum + task.count, 0)
  const isUrgent = own.some(({ kind }) => URGENT_TASKS.has(kind))
  return (
    <span id={countId(place, page.path)} class={`waits ${isUrgent ? 'alarm' : ''}`} hidden={count === 0}>
      {at.formats.number(count)} <span class="spoken">{at.texts.frame.waiting}</span>
    </span>
  )
}

function currentOf(page: ConsolePage, at: PageContext) {
  const isBelow = page.path !== '/console' && at.path.startsWith(`${page.path}/`)
  return at.path === page.path || isBelow ? { 'aria-current': 'page' as const } : {}
}

function SideBar({ at, pages }: FrameProps) {
  const texts = at.texts.frame
  return (
    <div class="side">
      <div class="side-inner">
        <a class="brand" href="/console">
          <Mark /> untag
        </a>
        <nav aria-label={texts.navigation}>
          {NAVIGATION_GROUPS.map((group) => {
            const own = pages.filter(({ navigation }) => (at.isOfPlatform ? 'platform' : navigation?.group) === group)
            return own.length === 0 ? null : (
              <NavigationGroup at={at} name={texts.groups[group]} own={own} group={group} />
            )
          })}
        </nav>
        {at.isOfPlatform ? null : <p class="side-foot">{at.store?.tradingName ?? texts.allStores}</p>}
      </div>
    </div>
  )
}

function TopBar({ at, csrfToken }: FrameProps) {
  return (
    <header class="top">
      <a class="brand" href="/console" aria-label="untag">
        <Mark /> <b>untag</b>
      </a>
      {at.isOfPlatform ? null : <StoreSwitch at={at} />}
      <span class="space"></span>
      {at.isOfPlatform ? null : <ModeSwitch at={at} />}
      <AccountMenu at={at} csrfToken={csrfToken} />
    </header>
  )
}

function BottomBar({ at, pages }: FrameProps) {
  const texts = at.texts.frame
  const tabs = pages.length > TABS + 1 ? pages.slice(0, TABS) : pages
  return (
    <nav class="bottom" aria-label={texts.navigation}>
      {tabs.map((page) => (
        <a class="tab" href={page.path} {...currentOf(page, at)}>
          <Icon name={page.navigation?.icon ?? 'more'} size={24} />
          <span>{page.title(at.texts)}</span>
          <WaitingCount page={page} at={at} place="bar" />
        </a>
      ))}
      {tabs.length === pages.length ? null : (
        <>
          <button type="button" class="tab" popovertarget="more-pages">
            <Icon name="more" size={24} />
            <span>{texts.more}</span>
          </button>
          <div id="more-pages" class="popover" popover="auto" role="dialog" aria-label={texts.allPages}>
            {pages.map((page) => (
              <a class="menu-item" href={page.path} {...currentOf(page, at)}>
                <Icon name={page.navigation?.icon ?? 'more'} />
                <span>{page.title(at.texts)}</span>
                <WaitingCount page={page} at={at} place="more" />
              </a>
            ))}
          </div>
        </>
      )}
    </nav>
  )
}

/** A page without navigation: sign-in, an invitation, an error while signed out. */
export function AlonePage({
  title,
  language,
  texts,
  assets,
  otherHref,
  children,
}: {
  title: string
  language: 'en' | 'de'
  texts: ConsoleTexts
  assets: ConsoleAssets
  /** Address of this page in the other language. */
  otherHref: string
  children?: Child
}) {
  const other = otherLanguage(language)
  return (
    <html lang={language}>
      <Head title={title} assets={assets} />
      <body>
        <ConnectionLost texts={texts} />
        <div class="alone">
          <main>
            <p class="brand">
              <Mark size={36} /> untag
            </p>
            <div class="card stack">
              <h1>{title}</h1>
              {children}
            </div>
            <footer>
              <a class="button quiet" href={otherHref} lang={other} hreflang={other}>
                {texts.frame.otherLanguage}
              </a>
              <a class="button quiet" href="/docs">
                {texts.frame.forDevelopers}
              </a>
            </footer>
          </main>
        </div>
      </body>
    </html>
  )
}
