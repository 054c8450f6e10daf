import type { Texts } from '../texts/texts.ts'

/** The operator at this device, with sign-in and sign-out. */
export function OperatorBar({ name, texts }: { name: string | null; texts: Texts }) {
  return (
    <div class="operator">
      <p data-slot="operator-name" data-name={name ?? undefined} hidden={name === null}>
        {name === null ? '' : texts.signedInAs(name)}
      </p>
      <button type="button" data-slot="sign-in" hidden={name !== null}>
        {texts.signIn}
      </button>
      <button type="button" data-slot="sign-out" hidden={name === null}>
        {texts.signOut}
      </button>
    </div>
  )
}

const DIGITS = ['1', '2', '3', '4', '5', '6', '7', '8', '9']

/**
 * Dialog for name, then PIN. The number pad of the dialog replaces the on-screen keyboard. A physical keyboard works,
 * too.
 */
export function SignIn({ texts }: { texts: Texts }) {
  return (
    <dialog data-slot="sign-in-dialog" aria-labelledby="sign-in-title">
      <div class="dialog-head">
        <h2 id="sign-in-title" data-slot="sign-in-title">
          {texts.whoAreYou}
        </h2>
        <button type="button" data-slot="sign-in-close">
          {texts.close}
        </button>
      </div>
      <p class="alert" role="alert" data-slot="sign-in-error" />
      <div data-slot="names-step">
        <ul class="names" data-slot="names" />
        <p class="soft">{texts.badgeToo}</p>
      </div>
      <form data-slot="pin-step" method="post" hidden>
        <input
          type="password"
          data-slot="pin"
          aria-label={texts.pin}
          inputmode="none"
          autocomplete="one-time-code"
          maxlength={12}
        />
        <div class="pad">
          {DIGITS.map((digit) => (
            <button type="button" data-digit={digit}>
              {digit}
            </button>
          ))}
          <button type="button" data-slot="pin-delete" aria-label={texts.deleteDigit}>
            ⌫
          </button>
          <button type="button" data-digit="0">
            0
          </button>
          <button type="submit" class="main" data-slot="pin-confirm">
            {texts.confirm}
          </button>
        </div>
        <button type="button" data-slot="pin-back">
          {texts.back}
        </button>
      </form>
    </dialog>
  )
}
