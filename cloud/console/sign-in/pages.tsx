import type { Child } from 'hono/jsx'
import { otherLanguage, type Language } from '../../../policy/page-language.ts'
import { Choices, TextField } from '../components/fields.tsx'
import { Submit } from '../components/form.tsx'
import { AlonePage } from '../components/frame.tsx'
import { Notice } from '../components/notice.tsx'
import { PasskeySignIn } from '../components/passkey.tsx'
import type { PasskeySite } from '../../platform/users/console-address.ts'
import type { ConsoleAssets } from '../frame/assets.ts'
import type { FormState } from '../frame/form.ts'
import { consoleTexts } from '../texts/catalogue.ts'

const SIGN_IN = '/console/sign-in'

/** What the pages for visitors show. */
export interface VisitorView {
  readonly language: Language
  readonly assets: ConsoleAssets
  readonly form: FormState
}

/**
 * Address of a page in the other language. It keeps `query`. `path`: undefined if the page is at its own address, and
 * not the answer of a form.
 */
function inOtherLanguage(language: Language, path = '', query: Readonly<Record<string, string>> = {}): string {
  return `${path}?${new URLSearchParams({ ...query, lang: otherLanguage(language) })}`
}

function VisitorPage({
  view,
  title,
  otherHref,
  failed,
  children,
}: {
  view: VisitorView
  title: string
  /** Address of this page in the other language. */
  otherHref: string
  /** Title above the reason of a rejected form. Default: not signed in. */
  failed?: string
  children?: Child
}) {
  const { language, assets, form } = view
  const texts = consoleTexts(language)
  return (
    <AlonePage title={title} language={language} texts={texts} assets={assets} otherHref={otherHref}>
      {form.message === undefined ? null : (
        <Notice tone="warn" title={failed ?? texts.signIn.failed} isUrgent>
          {form.message}
        </Notice>
      )}
      {children}
    </AlonePage>
  )
}

/**
 * The sign-in page. `to` is the address to open afterwards, `provider` the name of the OpenID Connect provider, `again` whether
 * the provider asks who signs in, `site`
 * that of passkeys, if browsers allow them. `accounts`: the person has these, and must choose one.
 */
export function SignInPage({
  view,
  to,
  at,
  provider,
  again,
  site,
  accounts,
  isEnded = false,
}: {
  view: VisitorView
  to: string
  /** Address of the page in whose place this one is shown. */
  at: URL | undefined
  provider: string | undefined
  /** True if the session of this browser has ended. Without its cookie only the browser knows (browser/typed.ts). */
  isEnded?: boolean
  again: boolean
  site: PasskeySite | undefined
  accounts: readonly string[]
}) {
  const { signIn } = consoleTexts(view.language)
  const { form } = view
  const ended = (
    <Notice tone="info" title={signIn.ended}>
      {signIn.endedText}
    </Notice>
  )
  const otherHref = at
    ? inOtherLanguage(view.language, at.pathname, Object.fromEntries(at.searchParams))
    : inOtherLanguage(view.language, SIGN_IN, { to, ...(isEnded && { ended: '' }) })
  return (
    <VisitorPage view={view} title={signIn.title} otherHref={otherHref}>
      {isEnded ? ended : null}
      {isEnded || form.message !== undefined ? null : <template data-ended>{ended}</template>}
      {provider === undefined ? null : (
        <>
          <a
            class="button main wide"
            href={`/console/sign-in/openid-connect?${new URLSearchParams({ to, ...(again && { again: 'yes' }) })}`}
          >
            {signIn.withProvider(provider)}
          </a>
          <p class="small soft">{signIn.orPassword}</p>
        </>
      )}
      <form class="stack" method="post" data-guarded action="/console/sign-in">
        <input type="hidden" name="to" value={to} />
        <TextField
          form={form}
          name="email"
          type="email"
          autocomplete="username webauthn"
          label={signIn.email}
          required
        />
        <TextField
          form={form}
          name="password"
          type="password"
          autocomplete="current-password"
          label={signIn.password}
          required
        />
        {accounts.length === 0 ? null : <AccountChoice form={form} language={view.language} accounts={accounts} />}
        {accounts.length > 0 || form.message === undefined ? null : (
          <TextField form={form} name="account" label={signIn.account} hint={signIn.accountHint} />
        )}
        <Submit wide main={provider === undefined}>
          {signIn.submit}
        </Submit>
      </form>
      {site && <PasskeySignIn language={view.language} to={to} site={site} />}
      <p class="small soft">{signIn.forgotten}</p>
    </VisitorPage>
  )
}

function AccountChoice({
  form,
  language,
  accounts,
  usedBefore = [],
}: {
  form: FormState
  language: Language
  accounts: readonly string[]
  usedBefore?: readonly string[]
}) {
  const { signIn } = consoleTexts(language)
  const choices = accounts.map((name) => ({
    value: name,
    label: name,
    ...(usedBefore.includes(name) && { hint: signIn.usedBefore }),
  }))
  return <Choices form={form} name="account" label={signIn.account} choices={choices} required />
}

/** The choice of an account, after the sign-in at the OpenID Connect provider. */
export function AccountPage({
  view,
  accounts,
  usedBefore,
  to,
}: {
  view: VisitorView
  accounts: readonly string[]
  usedBefore: readonly string[]
  to: string
}) {
  const { signIn } = consoleTexts(view.language)
  return (
    // The provider answers once, so the sign-in begins again.
    <VisitorPage view={view} title={signIn.accountTitle} otherHref={inOtherLanguage(view.language, SIGN_IN, { to })}>
      <p>{signIn.accountLead}</p>
      <form class="stack" method="post" data-guarded action="/console/sign-in/account">
        <AccountChoice form={view.form} language={view.language} accounts={accounts} usedBefore={usedBefore} />
        <Submit wide>{signIn.submit}</Submit>
      </form>
      <p class="small soft">{signIn.accountUnknown}</p>
    </VisitorPage>
  )
}

/** The second step of a sign-in: a code of the authenticator app, or a recovery code. */
export function CodePage({ view, to }: { view: VisitorView; to: string }) {
  const { signIn } = consoleTexts(view.language)
  return (
    <VisitorPage
      view={view}
      title={signIn.codeTitle}
      otherHref={inOtherLanguage(view.language, `${SIGN_IN}/code`, { to })}
    >
      <p>{signIn.codeLead}</p>
      <form class="stack" method="post" data-guarded action="/console/sign-in/code">
        <input type="hidden" name="to" value={to} />
        <TextField form={view.form} name="code" autocomplete="one-time-code" label={signIn.code} required />
        <Submit wide>{signIn.submit}</Submit>
      </form>
      <p class="small soft">{signIn.codeLost}</p>
    </VisitorPage>
  )
}

/** The page of an invitation. `email` is undefined if the invitation is unknown, used or expired. */
export function InvitationPage({ view, email }: { view: VisitorView; email: string | undefined }) {
  const { signIn } = consoleTexts(view.language)
  const { form } = view
  if (email === undefined)
    return (
      <VisitorPage view={view} title={signIn.invitationTitle} otherHref={inOtherLanguage(view.language)}>
        <p>{signIn.invitationGone}</p>
        <a class="button" href="/console/sign-in">
          {signIn.toSignIn}
        </a>
      </VisitorPage>
    )
  return (
    <VisitorPage
      view={view}
      title={signIn.invitationTitle}
      otherHref={inOtherLanguage(view.language)}
      failed={signIn.invitationOpen}
    >
      <p>{signIn.invitationLead(email)}</p>
      <form class="stack" method="post" data-guarded>
        <input type="hidden" name="username" value={email} autocomplete="username" />
        <TextField form={form} name="name" autocomplete="name" maxlength={80} label={signIn.name} required />
        <TextField
          form={form}
          name="password"
          type="password"
          autocomplete="new-password"
          label={signIn.newPassword}
          hint={signIn.newPasswordHint}
          required
        />
        <Submit wide>{signIn.accept}</Submit>
      </form>
    </VisitorPage>
  )
}
