import { otherLanguage } from '../../../policy/page-language.ts'
import { FRAME_FIELDS } from '../frame/form.ts'
import type { PageContext } from '../frame/page.ts'
import type { Store } from '../../platform/stores/schema.ts'
import { Icon } from './icons.tsx'

/** Street and city, to tell apart stores of one name. */
function addressOf({ address }: Store): string {
  return `${address.street}, ${address.city}`
}

/** Address of this page with another mode, store or language. */
function hrefWith(at: PageContext, change: Readonly<Record<string, string>>): string {
  return `${at.path}?${new URLSearchParams(change)}`
}

/** Chooses the store that the pages show. */
export function StoreSwitch({ at }: { at: PageContext }) {
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
        {at.stores.map((store) => (
          <StoreLink
            href={hrefWith(at, { store: store.storeId })}
            name={store.tradingName}
            address={addressOf(store)}
            isCurrent={store.storeId === at.store?.storeId}
          />
        ))}
        {at.storesTotal > at.stores.length ? (
          <p class="menu-title soft">{texts.moreStores(at.stores.length, at.storesTotal)}</p>
        ) : null}
        {at.stores.length === 0 ? <p class="menu-title soft">{at.texts.errors.noStore.text}</p> : null}
      </div>
    </>
  )
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
export function ModeSwitch({ at }: { at: PageContext }) {
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
export function AccountMenu({ at, csrfToken }: { at: PageContext; csrfToken: string }) {
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
