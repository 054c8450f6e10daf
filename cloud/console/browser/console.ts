/** Small additions to htmx. The pages also work without this script. */

/** An event of htmx about a request. */
interface RequestEvent extends Event {
  readonly detail: { readonly elt: Element }
}

/** An event of htmx about an answer. */
interface SwapEvent extends Event {
  readonly detail: { readonly elt: Element; readonly serverResponse: string }
}

/** True while a refresh of the part would disturb the user. */
function isBusy(part: Element): boolean {
  return part.querySelector(':popover-open, :is(input, textarea, select):focus') !== null
}

/** The open question about an alarm in this part. */
function openAlarm(part: Element): HTMLElement | null {
  return part.querySelector<HTMLElement>('[data-meanwhile]:popover-open')
}

/** The decision that the person saw when the question was drawn. */
const seenIn = (question: Element) => question.querySelector<HTMLInputElement>('input[name="seen"]')?.value

/**
 * A colleague may dispose of an alarm while its question is open. Says so above its form, with the decision and its
 * person if the part shows them. The question stays, because another alarm would take its place under the pointer.
 */
function noteDecision(question: HTMLElement, part: Element, response: string): void {
  const next = new DOMParser().parseFromString(response, 'text/html').getElementById(part.id)
  const same = next?.querySelector(`#${CSS.escape(question.id)}`)
  if (!next || (same && seenIn(same) === seenIn(question))) return
  const note = question.querySelector<HTMLElement>('[data-note]')
  const decided = same?.querySelector('[data-decided]')?.textContent ?? ''
  const text = `${question.dataset['meanwhile'] ?? ''} ${decided}`.trim()
  if (note && note.textContent !== text) note.textContent = text
}

/** True if the page is hidden. A part with alarms refreshes nevertheless, because a new alarm sounds. */
function isUnseen(part: Element): boolean {
  return document.hidden && part.querySelector('[data-alarms]') === null
}

// A live part is not replaced while the user types in it or has a menu of it open. It refreshes at the next message.
document.addEventListener('htmx:beforeRequest', (event) => {
  const { elt } = (event as RequestEvent).detail
  if (!elt.hasAttribute('data-live')) return
  if (isUnseen(elt) || (isBusy(elt) && !openAlarm(elt))) event.preventDefault()
})
document.addEventListener('htmx:beforeSwap', (event) => {
  const { elt, serverResponse } = (event as SwapEvent).detail
  if (!elt.hasAttribute('data-live') || !isBusy(elt)) return
  const question = openAlarm(elt)
  if (question) noteDecision(question, elt, serverResponse)
  event.preventDefault()
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

const nameOf = (form: HTMLFormElement) => form.querySelector<HTMLInputElement>('input[name="_form"]')?.value ?? ''

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
    } else {
      if (document.activeElement === document.body)
        document.querySelector<HTMLElement>(`[popovertarget="${CSS.escape(dialog.id)}"]`)?.focus()
      // The decision of a colleague was waiting for it.
      if ((dialog.querySelector('[data-note]')?.textContent ?? '') !== '')
        dialog.closest('[data-live]')?.dispatchEvent(new Event('sse:changed'))
    }
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

// A swap keeps the focus on the same control, if the same part of the page still has it. htmx does so only for ids. If
// the control went with its task, the keyboard goes on at the next task of the list, or at the heading of the list.
const CONTROLS = 'a[href], button, summary'
const FIELDS = 'input, textarea, select'
const PLACES = `${CONTROLS}, ${FIELDS}, [tabindex="-1"]`
const FEATURES = ['popovertarget', 'href', 'name', 'value', 'aria-label']
const TASK = 'article, li, tr, .card'
/** Maximum number of tasks of a list that are remembered. */
const TASKS_LIMIT = 100
const likenessOf = (place: Element) => {
  const form = place.closest('form')
  const names = FEATURES.map((name) => place.getAttribute(name))
  return [place.tagName, form ? nameOf(form) : '', place.matches('h1, h2, h3') ? place.textContent : '', ...names].join(
    '\n',
  )
}
const shown = (part: ParentNode, selector: string) =>
  [...part.querySelectorAll<HTMLElement>(selector)].filter((each) => each.checkVisibility())

/** Where the focus was: the id of its part of the page, and the likenesses of places that may follow, the best first. */
interface Focused {
  readonly part: string
  readonly places: readonly string[]
}
let focused: Focused | undefined

function focusOf(control: Element): Focused {
  const dialog = control.closest(DIALOG)
  const place = (dialog && document.querySelector(`[popovertarget="${CSS.escape(dialog.id)}"]`)) ?? control
  const part = place.closest('[data-live]') ?? document.querySelector('#page')
  const places: string[] = [likenessOf(place)]
  for (let each: Element | null = place; each && each !== part; each = each.parentElement) {
    if (!each.matches(TASK)) continue
    const siblings = [...(each.parentElement?.children ?? [])]
    const index = siblings.indexOf(each)
    for (const sibling of [...siblings.slice(index + 1), ...siblings.slice(0, index).toReversed()].slice(
      0,
      TASKS_LIMIT,
    )) {
      const first = shown(sibling, CONTROLS).find((other) => other.getAttribute('aria-current') === null)
      if (first) places.push(likenessOf(first))
    }
  }
  return { part: part?.id ?? '', places }
}

document.addEventListener('htmx:beforeSwap', () => {
  const control = document.activeElement
  if (control && control !== document.body) focused = control.matches(PLACES) ? focusOf(control) : undefined
})
// In the task of the swap: htmx settles some 20 ms later, and a key that is pressed meanwhile would go to the page.
document.addEventListener('htmx:afterSwap', () => {
  const before = focused
  focused = undefined
  const active = document.activeElement
  if (!before || (active !== null && active !== document.body && active.checkVisibility())) return
  const part = document.getElementById(before.part) ?? document
  const there = new Map(
    shown(part, PLACES)
      .toReversed()
      .map((each) => [likenessOf(each), each]),
  )
  const next = before.places.map((likeness) => there.get(likeness)).find((each) => each !== undefined)
  if (next) return next.focus({ preventScroll: true })
  const heading = [...shown(part, 'h1, h2, h3'), ...shown(document, '#content h1')][0]
  if (!heading) return
  heading.tabIndex = -1
  heading.focus()
})

// After a rejected form, its reason is in view, and the cursor is in the first wrong field.
document.addEventListener('htmx:afterSettle', () => {
  document.querySelector('#page .notice[role="alert"]')?.scrollIntoView({ block: 'center' })
  const wrong = document.querySelector<HTMLElement>('[aria-invalid="true"]')
  if (wrong && document.activeElement?.hasAttribute('aria-invalid') !== true) wrong.focus()
})

export {}
