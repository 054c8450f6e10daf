/** Small additions to htmx. The pages also work without this script. */

/** An event of htmx about a request. */
interface RequestEvent extends Event {
  readonly detail: { readonly elt: Element }
}

/** True while a refresh of the part would disturb the user. */
function isBusy(part: Element): boolean {
  return part.querySelector(':popover-open, :is(input, textarea, select):focus') !== null
}

/** True if the page is hidden. A part with alarms refreshes nevertheless, because a new alarm sounds. */
function isUnseen(part: Element): boolean {
  return document.hidden && part.querySelector('[data-alarms]') === null
}

// A live part is not replaced while the user types in it or has a menu of it open. It refreshes at the next message.
document.addEventListener('htmx:beforeRequest', (event) => {
  const { elt } = (event as RequestEvent).detail
  if (elt.hasAttribute('data-live') && (isBusy(elt) || isUnseen(elt))) event.preventDefault()
})
document.addEventListener('htmx:beforeSwap', (event) => {
  const { elt } = (event as RequestEvent).detail
  if (elt.hasAttribute('data-live') && isBusy(elt)) event.preventDefault()
})
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return
  for (const part of document.querySelectorAll('[data-live]')) part.dispatchEvent(new Event('sse:changed'))
})

document.addEventListener('click', ({ target }) => {
  if (target instanceof Element && target.closest('[data-print]')) window.print()
})

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest<HTMLElement>('[data-copy]') : null
  if (!button) return
  const { copy = '', done = '' } = button.dataset
  // Without HTTPS there is no clipboard, and the user may forbid it: the text beside the button can be selected.
  const copied = () => (button.textContent = done)
  void navigator.clipboard?.writeText(copy).then(copied, () => undefined)
})

/** Name of the typed text of a form that was sent, until the cloud has answered it. */
const TYPED = 'untag-typed'
/** Fields that are not kept, besides those of the type password. */
const SECRET = /pin|code|password|secret|token/i

interface Typed {
  readonly path: string
  readonly form: string
  readonly values: readonly (readonly [name: string, value: string])[]
}

const nameOf = (form: HTMLFormElement) => form.querySelector<HTMLInputElement>('input[name="_form"]')?.value ?? ''
const pathNow = () => `${location.pathname}${location.search}`
const fieldsOf = (form: HTMLFormElement) => [
  ...form.querySelectorAll<HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement>('input, textarea, select'),
]

// If the session has ended, the page loads the sign-in page, and after the sign-in the form has its text again.
document.addEventListener('htmx:beforeRequest', (event) => {
  const { elt } = (event as RequestEvent).detail
  if (!(elt instanceof HTMLFormElement) || elt.method !== 'post') return
  const values = fieldsOf(elt).flatMap(({ name, type, value }) =>
    ['hidden', 'password', 'submit', 'file', 'checkbox', 'radio'].includes(type) || SECRET.test(name)
      ? []
      : [[name, value] as const],
  )
  const typed: Typed = { path: pathNow(), form: nameOf(elt), values }
  sessionStorage.setItem(TYPED, JSON.stringify(typed))
})
document.addEventListener('htmx:afterRequest', (event) => {
  const { xhr } = (event as CustomEvent<{ xhr: XMLHttpRequest }>).detail
  if (xhr.getResponseHeader('HX-Redirect') === null) sessionStorage.removeItem(TYPED)
})

function restoreTyped(): void {
  const typed = JSON.parse(sessionStorage.getItem(TYPED) ?? 'null') as Typed | null
  if (typed?.path !== pathNow()) return
  const form = [...document.querySelectorAll('form')].find((each) => nameOf(each) === typed.form)
  if (!form) return
  sessionStorage.removeItem(TYPED)
  const values = new Map(typed.values)
  for (const field of fieldsOf(form)) {
    const value = values.get(field.name)
    if (value !== undefined && field.type !== 'hidden') field.value = value
  }
}
restoreTyped()

// A question keeps the focus while it is open, and gives it back to its button.
const DIALOG = '.popover[role="dialog"]'
const FOCUSABLE = 'a[href], button:not([disabled]), input:not([type="hidden"]), select, textarea'
document.addEventListener(
  'toggle',
  (event) => {
    const dialog = event.target
    if (!(dialog instanceof HTMLElement) || !dialog.matches(DIALOG)) return
    if (dialog.matches(':popover-open')) {
      const title = dialog.querySelector<HTMLElement>('h2') ?? dialog
      title.tabIndex = -1
      title.focus()
    } else if (document.activeElement === document.body)
      document.querySelector<HTMLElement>(`[popovertarget="${CSS.escape(dialog.id)}"]`)?.focus()
  },
  true,
)
document.addEventListener('keydown', (event) => {
  const dialog = event.key === 'Tab' ? document.querySelector(`${DIALOG}:popover-open`) : null
  if (!dialog) return
  const parts = [...dialog.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((part) => part.offsetParent !== null)
  const [first, last] = [parts[0], parts.at(-1)]
  const end = event.shiftKey ? first : last
  const isInside = document.activeElement !== null && dialog.contains(document.activeElement)
  const isOnTitle = !parts.includes(document.activeElement as HTMLElement)
  if (isInside && document.activeElement !== end && !(event.shiftKey && isOnTitle)) return
  event.preventDefault()
  ;(event.shiftKey ? last : first)?.focus()
})

// A swap keeps the focus on the same button or link, if the new part still has it. htmx does so only for ids.
const CONTROLS = 'a[href], button, summary'
const FEATURES = ['popovertarget', 'href', 'name', 'value', 'aria-label']
const likenessOf = (control: Element) => {
  const form = control.closest('form')
  return [control.tagName, form ? nameOf(form) : '', ...FEATURES.map((name) => control.getAttribute(name))].join('\n')
}
let focused: string | undefined
document.addEventListener('htmx:beforeSwap', () => {
  const control = document.activeElement
  focused = control?.matches(CONTROLS) ? likenessOf(control) : undefined
})
document.addEventListener('htmx:afterSettle', () => {
  if (focused === undefined || document.activeElement !== document.body) return
  const same = [...document.querySelectorAll<HTMLElement>(CONTROLS)].find((each) => likenessOf(each) === focused)
  // What was pressed is gone, for instance a task that is done: the keyboard goes on at the start of the content.
  const next = same ?? document.querySelector<HTMLElement>('#content')
  next?.focus({ preventScroll: true })
})

// After a rejected form, its reason is in view, and the cursor is in the first wrong field.
document.addEventListener('htmx:afterSettle', () => {
  document.querySelector('#page .notice[role="alert"]')?.scrollIntoView({ block: 'center' })
  const wrong = document.querySelector<HTMLElement>('[aria-invalid="true"]')
  if (wrong && document.activeElement?.hasAttribute('aria-invalid') !== true) wrong.focus()
})

export {}
