import type { Texts } from '../texts/texts.ts'

/**
 * Small picture of a product, or a neutral placeholder if the agent has none. The product's name beside it has the same
 * meaning, so screen readers skip both. The page's script fills the slots (browser/elements.ts).
 */
export function Picture({ name, hash }: { name: string; hash: string }) {
  return (
    <span class="picture" data-slot="picture" hidden={name === ''} aria-hidden="true">
      <img data-slot="picture-image" src={hash === '' ? undefined : pictureAddress(hash)} alt="" hidden={hash === ''} />
      <svg data-slot="picture-none" viewBox="0 0 64 64" focusable="false" class={hash === '' ? '' : 'gone'}>
        <path d="M12 14 H36 L54 32 L32 54 L12 34 Z M22 24 v.1" />
      </svg>
    </span>
  )
}

function pictureAddress(hash: string): string {
  return `/pictures/${hash}.webp`
}

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
        <p class="soft">
          {texts.badgeToo} {texts.signInFor}
        </p>
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
