import type { Child } from 'hono/jsx'
import type { Language } from '../../../policy/page-language.ts'
import type { PasskeySite } from '../../platform/users/console-address.ts'
import { jsonOf, type FormFields } from '../frame/form.ts'
import { consoleTexts } from '../texts/catalogue.ts'
import { Submit } from './form.tsx'
import { encode } from 'uqr'

/** A QR code as a drawing: one path of all dark modules on white. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: 'M', border: 4 })
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join('')
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <path d={`M0 0h${size}v${size}h-${size}z`} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}

/**
 * Shows `children`, the form of a passkey, only if the browser can use passkeys at this address. The script
 * browser/passkeys.ts shows the form, and fills its field `credential` when the user sends it.
 */
export function PasskeyPart({
  kind,
  origin,
  options,
  failed,
  children,
}: {
  kind: 'create' | 'get' | 'begin'
  /** Origin to which the passkeys are bound. Default: that of the page. */
  origin?: string
  /** Argument for the browser's call. */
  options?: object
  /** Text to show if the user cancels. */
  failed?: string
  children?: Child
}) {
  return (
    <div
      class="stack"
      data-passkey={kind}
      {...(origin !== undefined && { 'data-origin': origin })}
      {...(options && { 'data-options': JSON.stringify(options) })}
      hidden
    >
      {failed === undefined ? null : (
        <p class="field-error" role="alert" data-passkey-failed hidden>
          {failed}
        </p>
      )}
      {children}
    </div>
  )
}

/** The field that the script fills. */
export const CredentialField = () => <input type="hidden" name="credential" value="" autocomplete="off" />

/** The button “Sign in with a passkey”. */
export function PasskeySignIn({ language, to, site }: { language: Language; to: string; site: PasskeySite }) {
  const { passkeys } = consoleTexts(language)
  return (
    <PasskeyPart kind="get" origin={site.origin} failed={passkeys.failed}>
      <form method="post" action="/console/sign-in/passkey">
        <input type="hidden" name="to" value={to} />
        <CredentialField />
        <Submit wide main={false}>
          {passkeys.signIn}
        </Submit>
      </form>
    </PasskeyPart>
  )
}

/** The credential of a sent form; an empty object if it is missing, which the operation rejects. */
export function credentialOf(form: FormFields): unknown {
  return jsonOf(form.text('credential') ?? '{}')
}
