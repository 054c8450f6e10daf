/**
 * Passkeys: shows the forms in `data-passkey` if the browser can use passkeys at this address, and fills their field
 * `credential` before they are sent. Without this script the forms stay hidden.
 */

/** The parts of the server's options that are not JSON values for the browser. */
interface Options {
  challenge: string
  user?: { id: string; name: string; displayName: string }
  excludeCredentials?: { id: string; type: 'public-key'; transports: AuthenticatorTransport[] }[]
}

/** A waiting sign-in is renewed after this time, because its challenge is valid for 5 minutes. */
const RENEW_MS = 4 * 60_000

/** The sign-in that waits in the list of the e-mail field. */
let waiting: AbortController | undefined

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (each) => each.charCodeAt(0))
}

function textOf(buffer: ArrayBuffer | null): string | undefined {
  if (!buffer) return undefined
  const text = btoa(String.fromCharCode(...new Uint8Array(buffer)))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Options of the server in the form of the browser. */
function browserOptions({ challenge, user, excludeCredentials, ...rest }: Options): object {
  return {
    ...rest,
    challenge: bytesOf(challenge),
    ...(user && { user: { ...user, id: bytesOf(user.id) } }),
    ...(excludeCredentials && {
      excludeCredentials: excludeCredentials.map((each) => ({ ...each, id: bytesOf(each.id) })),
    }),
  }
}

/** The browser's response as JSON. */
function jsonOf({ rawId, response }: PublicKeyCredential): string {
  const id = textOf(rawId)
  const clientDataJSON = textOf(response.clientDataJSON)
  const base = { id, rawId: id, type: 'public-key' }
  if (response instanceof AuthenticatorAttestationResponse) {
    const attestationObject = textOf(response.attestationObject)
    return JSON.stringify({
      ...base,
      response: { clientDataJSON, attestationObject, transports: response.getTransports?.() ?? [] },
    })
  }
  const { authenticatorData, signature, userHandle } = response as AuthenticatorAssertionResponse
  const signed = { authenticatorData: textOf(authenticatorData), signature: textOf(signature) }
  return JSON.stringify({ ...base, response: { clientDataJSON, ...signed, userHandle: textOf(userHandle) } })
}

async function create(part: HTMLElement): Promise<Credential | null> {
  const options = JSON.parse(part.dataset['options'] ?? '{}') as Options
  return navigator.credentials.create({ publicKey: browserOptions(options) as PublicKeyCredentialCreationOptions })
}

async function get(more: Partial<CredentialRequestOptions>): Promise<Credential | null> {
  const response = await fetch('/api/v1/beginPasskeySignIn', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  if (!response.ok) throw new Error(`beginPasskeySignIn answered ${response.status}`)
  const { options } = (await response.json()) as { options: Options }
  return navigator.credentials.get({
    publicKey: browserOptions(options) as PublicKeyCredentialRequestOptions,
    ...more,
  })
}

/** Sends the form with the browser's response. */
function send(form: HTMLFormElement, credential: Credential | null): void {
  const field = form.elements.namedItem('credential')
  if (!(credential instanceof PublicKeyCredential) || !(field instanceof HTMLInputElement)) return
  field.value = jsonOf(credential)
  form.requestSubmit()
}

function showFailed(part: HTMLElement, isFailed: boolean): void {
  const text = part.querySelector<HTMLElement>('[data-passkey-failed]')
  if (text) text.hidden = !isFailed
}

document.addEventListener(
  'submit',
  (event) => {
    const form = event.target
    if (!(form instanceof HTMLFormElement)) return
    const part = form.closest<HTMLElement>('[data-passkey]')
    const field = form.elements.namedItem('credential')
    if (!part || !(field instanceof HTMLInputElement) || field.value !== '') return
    event.preventDefault()
    event.stopImmediatePropagation()
    waiting?.abort()
    showFailed(part, false)
    const made = part.dataset['passkey'] === 'create' ? create(part) : get({})
    made.then(
      (credential) => send(form, credential),
      () => showFailed(part, true),
    )
  },
  { capture: true },
)

/** Offers passkeys in the list of the e-mail field, where the browser can. */
async function offer(form: HTMLFormElement): Promise<void> {
  if ((await PublicKeyCredential.isConditionalMediationAvailable?.()) !== true) return
  const own = new AbortController()
  waiting = own
  const renew = setTimeout(() => {
    own.abort()
    if (form.isConnected) void offer(form)
  }, RENEW_MS)
  try {
    send(form, await get({ mediation: 'conditional', signal: own.signal }))
  } catch {
    // Aborted, or the cloud cannot be reached: the button still works.
  }
  if (own.signal.aborted) clearTimeout(renew)
}

/** Shows the forms that the page has now. */
function show(): void {
  if (!('PublicKeyCredential' in window)) return
  for (const part of document.querySelectorAll<HTMLElement>('[data-passkey][hidden]')) {
    const { origin, passkey } = part.dataset
    if (origin !== undefined && origin !== location.origin) continue
    part.hidden = false
    const form = part.querySelector('form')
    if (passkey === 'get' && form) void offer(form)
  }
}

document.addEventListener('htmx:afterSettle', show)
// A page that the browser kept must not send the former response again.
window.addEventListener('pageshow', () => {
  for (const field of document.querySelectorAll<HTMLInputElement>('[data-passkey] [name=credential]')) field.value = ''
})
show()

export {}
