import type { z } from 'zod'
import { EVERY_ROLE } from '../../platform/foundation/caller.ts'
import {
  beginSecondFactor,
  confirmSecondFactor,
  removeSecondFactor,
} from '../../platform/users/second-factor-operations.ts'
import {
  changePassword,
  endSessions,
  fetchProfile,
  fetchSessions,
  updateProfile,
} from '../../platform/users/session-operations.ts'
import { Badge, Card, PrintButton } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { ActionButton, ActionForm, Submit, Confirm } from '../components/form.tsx'
import { QrCode, CredentialField, credentialOf, PasskeyPart } from '../components/passkey.tsx'
import { List } from '../components/table.tsx'
import { page, type ViewContext, type PageAction, type PageContext } from '../frame/page.ts'
import { beginPasskey, fetchPasskeys, registerPasskey, removePasskey } from '../../platform/users/passkey-operations.ts'
import { Notice } from '../components/notice.tsx'

/** What the card of passkeys on the page of the profile shows. */
interface PasskeyView {
  readonly passkeys: z.output<typeof fetchPasskeys.response>
}

/** Loads the passkeys of the user. */
const loadPasskeys = (at: PageContext) => at.run(fetchPasskeys, {})

/** Actions of the card. */
const passkeyActions: Readonly<Record<string, PageAction>> = {
  beginPasskey: {
    operation: beginPasskey,
    input: () => ({}),
    done: () => '',
    show: (result, at) => <NewPasskey at={at} options={(result as z.output<typeof beginPasskey.response>).options} />,
  },
  registerPasskey: {
    operation: registerPasskey,
    input: (form) => ({ name: form.text('name'), credential: credentialOf(form) }),
    done: (texts) => texts.passkeys.added,
  },
  removePasskey: {
    operation: removePasskey,
    input: (form) => ({ passkeyId: form.text('passkeyId') }),
    done: (texts) => texts.passkeys.removed,
  },
}

/** The passkeys of the user, with buttons to add and remove one. */
function PasskeyCard({ at }: { at: ViewContext<PasskeyView> }) {
  const t = at.texts.passkeys
  const { available, passkeys } = at.data.passkeys
  if (!available && passkeys.length === 0) return null
  return (
    <Card title={t.title}>
      <p>{available ? t.lead : t.missing}</p>
      {at.form.id === 'registerPasskey' ? (
        <Notice tone="warn" title={t.notAdded} isUrgent>
          {Object.values(at.form.errors)[0] ?? at.form.message}
        </Notice>
      ) : null}
      {passkeys.length === 0 ? null : (
        <List>
          {passkeys.map((passkey) => (
            <li>
              <Passkey at={at} passkey={passkey} />
            </li>
          ))}
        </List>
      )}
      {available ? (
        <PasskeyPart kind="begin">
          <ActionButton at={at} action="beginPasskey" main>
            {t.add}
          </ActionButton>
        </PasskeyPart>
      ) : null}
    </Card>
  )
}

function Passkey({ at, passkey }: { at: ViewContext; passkey: PasskeyView['passkeys']['passkeys'][number] }) {
  const t = at.texts.passkeys
  const { passkeyId, name, createdAt, lastUsedAt, backedUp } = passkey
  const ago = (time: string) => at.formats.ago(Date.parse(time), at.nowMs)
  const facts = [
    t.created(ago(createdAt)),
    lastUsedAt === undefined ? t.unused : t.used(ago(lastUsedAt)),
    ...(backedUp ? [t.backedUp] : []),
  ]
  return (
    <>
      <div>
        <strong>{name}</strong>
        <span class="sub">{facts.join(' · ')}</span>
      </div>
      <Confirm
        at={at}
        action="removePasskey"
        about={{ passkeyId }}
        label={t.remove}
        question={t.removeQuestion(name)}
        explanation={t.removeText}
        confirm={t.remove}
      />
    </>
  )
}

/** The second step: the name, and the button that opens the browser's dialogue. */
function NewPasskey({ at, options }: { at: ViewContext; options: object }) {
  const t = at.texts.passkeys
  return (
    <Card title={t.add}>
      <PasskeyPart kind="create" options={options} failed={t.failed}>
        <p>{t.addLead}</p>
        <ActionForm at={at} action="registerPasskey">
          <TextField form={at.form} name="name" label={t.name} hint={t.nameHint} maxlength={80} required />
          <CredentialField />
          <Submit>{t.create}</Submit>
        </ActionForm>
      </PasskeyPart>
    </Card>
  )
}

interface ProfileView extends PasskeyView {
  readonly profile: z.output<typeof fetchProfile.response>
  readonly sessions: z.output<typeof fetchSessions.response>['sessions']
}
type View = ViewContext<ProfileView>
type Begun = z.output<typeof beginSecondFactor.response>
type Confirmed = z.output<typeof confirmSecondFactor.response>

/** The own name, password, second factor and sessions. */
export const profilePage = page<ProfileView>({
  path: '/console/profile',
  roles: EVERY_ROLE,
  scope: 'account',
  title: (texts) => texts.account.profile,
  lead: (at) => at.texts.account.profileLead,
  actions: {
    ...passkeyActions,
    rename: {
      operation: updateProfile,
      input: (form) => ({ name: form.text('name') }),
      done: (texts) => texts.account.saved,
    },
    password: {
      operation: changePassword,
      input: (form) => ({ password: form.text('password'), newPassword: form.text('newPassword') }),
      done: (texts) => texts.account.passwordChanged,
    },
    begin: {
      operation: beginSecondFactor,
      input: () => ({}),
      done: () => '',
      show: (result, at) => <AppSetUp at={at} made={result as Begun} />,
    },
    confirm: {
      operation: confirmSecondFactor,
      input: (form) => ({ code: form.text('code') }),
      done: (texts) => texts.account.factorDone,
      show: (result, at) => <RecoveryCodes at={at} codes={(result as Confirmed).recoveryCodes} />,
    },
    removeFactor: {
      operation: removeSecondFactor,
      input: (form) => ({ code: form.text('code') }),
      done: (texts) => texts.account.removed,
    },
    end: {
      operation: endSessions,
      input: (form) => ({ sessionId: form.text('sessionId') }),
      done: (texts) => texts.account.ended,
    },
  },
  load: async (at) => ({
    profile: await at.run(fetchProfile, {}),
    sessions: (await at.run(fetchSessions, {})).sessions,
    passkeys: await loadPasskeys(at),
  }),
  view: (at) => {
    const t = at.texts.account
    return (
      <>
        <Card title={t.factorTitle} aside={<FactorState at={at} />}>
          <div class="stack">
            <FactorNeeded at={at} />
            <SecondFactor at={at} />
          </div>
        </Card>
        <PasskeyCard at={at} />
        <Card title={t.name}>
          <ActionForm at={at} action="rename">
            <TextField form={at.form} name="name" label={t.name} value={at.data.profile.name} required />
            <Submit>{t.save}</Submit>
          </ActionForm>
        </Card>
        {at.data.profile.hasPassword ? <PasswordCard at={at} /> : null}
        <Sessions at={at} />
      </>
    )
  },
})

/** Why a person who runs the cloud sees no other page yet. */
function FactorNeeded({ at }: { at: View }) {
  const t = at.texts.account
  const { hasSecondFactor, hasAuthenticatorApp } = at.data.profile
  if (!at.isOfPlatform || hasSecondFactor) return null
  const hasOne = hasAuthenticatorApp || at.data.passkeys.passkeys.length > 0
  return (
    <Notice tone="warn" title={t.factorNeeded}>
      {hasOne ? t.factorUse : t.factorFirst}
    </Notice>
  )
}

function PasswordCard({ at }: { at: View }) {
  const t = at.texts.account
  return (
    <Card title={t.changePassword}>
      <ActionForm at={at} action="password">
        <input type="hidden" name="username" value={at.user.email} autocomplete="username" />
        <TextField
          form={at.form}
          name="password"
          type="password"
          autocomplete="current-password"
          label={t.password}
          required
        />
        <TextField
          form={at.form}
          name="newPassword"
          type="password"
          autocomplete="new-password"
          label={t.newPassword}
          hint={t.newPasswordHint}
          required
        />
        <Submit>{t.changePassword}</Submit>
      </ActionForm>
    </Card>
  )
}

function SecondFactor({ at }: { at: View }) {
  const t = at.texts.account
  const { uri, secret } = at.form.values
  if (uri !== undefined && secret !== undefined)
    return (
      <>
        <p>{t.factorAgain}</p>
        <AppKey at={at} made={{ uri, secret }} />
        <div class="row">
          <ActionButton at={at} action="begin">
            {t.factorRestart}
          </ActionButton>
          <a class="button quiet" href={at.path}>
            {t.stop}
          </a>
        </div>
      </>
    )
  if (at.data.profile.hasAuthenticatorApp)
    return (
      <>
        <p>{t.factorOn}</p>
        <CodeForm at={at} action="removeFactor" label={t.factorRemove} />
      </>
    )
  return (
    <>
      <p>{at.isOfPlatform ? t.factorOffOfPlatform : t.factorOff}</p>
      <ActionButton at={at} action="begin" main>
        {t.factorBegin}
      </ActionButton>
    </>
  )
}

function FactorState({ at }: { at: View }) {
  const { hasAuthenticatorApp } = at.data.profile
  const hasPasskey = at.data.passkeys.passkeys.length > 0
  const isOn = hasAuthenticatorApp || hasPasskey
  return <Badge tone={isOn ? 'ok' : 'warn'}>{isOn ? at.texts.frame.on : at.texts.frame.off}</Badge>
}

type AppSecret = Pick<Begun, 'uri' | 'secret'>

function AppSetUp({ at, made }: { at: ViewContext; made: AppSecret }) {
  const t = at.texts.account
  return (
    <Card title={t.factorBegin}>
      <p>{t.factorScan}</p>
      <AppKey at={at} made={made} />
      <a class="button quiet" href={at.path}>
        {t.stop}
      </a>
    </Card>
  )
}

/** The key to scan or type, and the form for the first code. The form returns the key, so a wrong code does not hide it. */
function AppKey({ at, made: { uri, secret } }: { at: ViewContext; made: AppSecret }) {
  const t = at.texts.account
  return (
    <>
      <QrCode text={uri} label={t.factorScan} />
      <p>
        {t.key}: <code>{secret}</code>
      </p>
      <CodeForm at={at} action="confirm" label={t.factorConfirm} kept={{ uri, secret }} />
    </>
  )
}

function RecoveryCodes({ at, codes }: { at: ViewContext; codes: readonly string[] }) {
  const t = at.texts.account
  return (
    <Card title={t.factorDone}>
      <p>{t.recovery}</p>
      <ul class="codes">
        {codes.map((code) => (
          <li>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <div class="row no-print">
        <PrintButton label={t.print} />
        <button type="button" class="button needs-script" data-copy={codes.join('\n')} data-done={t.copied}>
          {t.copy}
        </button>
        <a class="button" href={at.isOfPlatform ? '/console' : at.path}>
          {at.isOfPlatform ? at.texts.errors.backToStart : t.profile}
        </a>
      </div>
    </Card>
  )
}

function CodeForm({ at, action, label, kept = {} }: { at: ViewContext; action: string; label: string; kept?: object }) {
  return (
    <ActionForm at={at} action={action}>
      {Object.entries(kept).map(([name, value]) => (
        <input type="hidden" name={name} value={String(value)} />
      ))}
      <TextField form={at.form} name="code" autocomplete="one-time-code" label={at.texts.account.code} required />
      <Submit>{label}</Submit>
    </ActionForm>
  )
}

/** Names in the text that a browser sends about itself. The first match counts, because each also names older ones. */
const BROWSERS = [
  [/\bEdg/, 'Microsoft Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
] as const
const SYSTEMS = [
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
] as const

/** Names of browser and system in the text that a browser sends about itself; undefined if it names one only. */
export function browserAndSystem(userAgent: string): [browser: string, system: string] | undefined {
  const nameIn = (names: typeof BROWSERS | typeof SYSTEMS) => names.find(([form]) => form.test(userAgent))?.[1]
  const [browser, system] = [nameIn(BROWSERS), nameIn(SYSTEMS)]
  return browser && system ? [browser, system] : undefined
}

function deviceName(at: View, userAgent: string): string {
  const t = at.texts.account
  const known = browserAndSystem(userAgent)
  return known ? t.deviceOf(...known) : userAgent || t.unknownDevice
}

function Sessions({ at }: { at: View }) {
  const t = at.texts.account
  return (
    <Card title={t.sessions} flush>
      <List>
        {at.data.sessions.map(({ sessionId, device, isCurrent, lastUsedAt }) => (
          <li>
            <div>
              <strong>{deviceName(at, device)}</strong>
              <span class="sub">
                {isCurrent ? t.thisSession : `${t.lastUsed} ${at.formats.ago(Date.parse(lastUsedAt), at.nowMs)}`}
              </span>
            </div>
            {isCurrent ? null : (
              <ActionButton at={at} action="end" about={{ sessionId }}>
                {t.end}
              </ActionButton>
            )}
          </li>
        ))}
        {at.data.sessions.length === 1 ? <li class="soft">{t.onlyHere}</li> : null}
      </List>
    </Card>
  )
}
