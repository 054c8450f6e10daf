/**
 * What the page does while the cloud does not answer. Only answers with the header of untag's pages are shown: a proxy or
 * a guest network answers instead of a cloud that is gone, and its page would replace open alarms. The page keeps what
 * it shows and what was typed, says since when it is old, and tries again.
 */

const PAGE_HEADER = 'untag-page'
/** Time without an answer after which the page says so, ms. */
const SLOW_MS = 2_000
const RETRY_MS = 5_000

/** An event of htmx about a request. */
interface RequestEvent extends Event {
  readonly detail: {
    readonly xhr: XMLHttpRequest
    readonly elt: Element
    readonly requestConfig?: { readonly verb: string }
  }
}

let readAt = new Date()
let retry: ReturnType<typeof setTimeout> | undefined

/** What was sent without an answer: what a person typed or chose, or only a press of a button. */
type Sent = 'entry' | 'press'
const NO_ENTRY = new Set(['hidden', 'submit', 'button'])

/** What the form sends. A field that the person never saw is no entry. */
function sentBy(form: Element | null): Sent {
  const fields = [...(form?.querySelectorAll<HTMLInputElement>('input, textarea, select') ?? [])]
  const isEntry = ({ type, value, checked, defaultChecked }: HTMLInputElement) =>
    type === 'checkbox' || type === 'radio' ? checked !== defaultChecked : !NO_ENTRY.has(type) && value !== ''
  return fields.some(isEntry) ? 'entry' : 'press'
}

/** Says that nothing is confirmed. `sent`: by a form. */
function lose(sent?: Sent): void {
  const box = document.getElementById('connection')
  if (!box) return
  document.documentElement.classList.add('is-lost')
  const zone = { timeZone: box.dataset['zone'] ?? 'UTC', hourCycle: 'h23' as const }
  const time = readAt.toLocaleTimeString(document.documentElement.lang, zone)
  const text = box.dataset['old']?.replace('{time}', time) ?? ''
  const part = box.querySelector('[data-text]')
  if (part && part.textContent !== text) part.textContent = text
  if (sent) for (const each of sentParts(box)) each.hidden = each.dataset['sent'] !== sent
  box.hidden = false
  retry ??= setTimeout(() => void tryAgain(), RETRY_MS)
}

const sentParts = (box: Element) => [...box.querySelectorAll<HTMLElement>('[data-sent]')]

function find(): void {
  readAt = new Date()
  clearTimeout(retry)
  retry = undefined
  const box = document.getElementById('connection')
  if (!box || box.hidden) return
  document.documentElement.classList.remove('is-lost')
  box.hidden = true
  for (const part of sentParts(box)) part.hidden = true
  for (const part of document.querySelectorAll('[data-live]')) part.dispatchEvent(new Event('sse:changed'))
}

/** True if the cloud answers, but cannot serve the request now: it is overloaded, or this caller asks too often. */
const isRefusedForNow = (status: number) => status === 429 || status >= 500

/** Asks for the page. Returns true if the cloud answered. */
async function tryAgain(): Promise<boolean> {
  clearTimeout(retry)
  retry = undefined
  const options = { cache: 'no-store' as const, signal: AbortSignal.timeout(RETRY_MS) }
  const answer = await fetch(location.href, options).catch(() => undefined)
  const isBack = answer?.headers.has(PAGE_HEADER) === true && !isRefusedForNow(answer.status)
  if (isBack) find()
  else lose()
  return isBack
}

const isForm = ({ requestConfig }: RequestEvent['detail']) => requestConfig?.verb === 'post'
const sentOf = (detail: RequestEvent['detail']) => (isForm(detail) ? sentBy(detail.elt.closest('form')) : undefined)

function listenTo(name: string, handle: (detail: RequestEvent['detail'], event: Event) => void): void {
  document.addEventListener(name, (event) => handle((event as RequestEvent).detail, event))
}

listenTo('htmx:beforeSend', (detail) => {
  const late = setTimeout(() => lose(sentOf(detail)), SLOW_MS)
  // Not an event of htmx: those of a part that was replaced meanwhile never reach the document.
  detail.xhr.addEventListener('loadend', () => clearTimeout(late))
})
listenTo('htmx:beforeSwap', (detail, event) => {
  const isOurs = detail.xhr.getResponseHeader(PAGE_HEADER) !== null
  // A form shows why it was refused. A list would be replaced by a refusal.
  if (isOurs && (isForm(detail) || !isRefusedForNow(detail.xhr.status))) return find()
  event.preventDefault()
  lose(sentOf(detail))
})
// A page that swaps no errors shows the refusal of a form as the browser does without scripts.
listenTo('htmx:responseError', (detail) => {
  if (isForm(detail) && detail.elt instanceof HTMLFormElement && detail.xhr.getResponseHeader(PAGE_HEADER) !== null)
    detail.elt.submit()
})
listenTo('htmx:sendError', (detail) => lose(sentOf(detail)))
// The cloud restarts, or a proxy lost it. The stream connects again by itself.
listenTo('htmx:sseError', () => void tryAgain())
/**
 * A form without htmx (`data-guarded`, or one that leads to another page): the browser would replace the page, and what was
 * typed, by its own error page or a page of a proxy. So the form is sent once the cloud has answered.
 */
const GUARDED = '[data-guarded], [method="get"]:not([hx-get])'
document.addEventListener('submit', (event) => {
  const form = event.target
  if (!(form instanceof HTMLFormElement) || !form.matches(GUARDED) || event.defaultPrevented) return
  event.preventDefault()
  const { submitter } = event
  const sent = form.method === 'get' ? undefined : sentBy(form)
  const late = setTimeout(() => lose(sent), SLOW_MS)
  void tryAgain().then((isBack) => {
    clearTimeout(late)
    if (!isBack) return lose(sent)
    // The submission of a script names no button.
    if (submitter instanceof HTMLButtonElement && submitter.name !== '') {
      const pressed = document.createElement('input')
      Object.assign(pressed, { type: 'hidden', name: submitter.name, value: submitter.value })
      form.append(pressed)
    }
    form.submit()
  })
})
window.addEventListener('offline', () => lose())
window.addEventListener('online', () => void tryAgain())

/** The download that the cloud may answer now. */
let allowed: HTMLAnchorElement | undefined

// The browser would replace the page by its own page about the lost connection, and by an answer that is no file.
document.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href]') : null
  const box = document.getElementById('connection')
  if (!link || !box || link.origin !== location.origin || link.getAttribute('href')?.startsWith('#')) return
  const isFile = link.hasAttribute('download')
  if (link === allowed || (box.hidden && !isFile)) return
  event.preventDefault()
  // A link sends nothing.
  for (const part of sentParts(box)) part.hidden = true
  const late = setTimeout(() => lose(), SLOW_MS)
  void tryAgain().then((isBack) => {
    clearTimeout(late)
    if (!isBack) return
    if (!isFile) return location.assign(link.href)
    allowed = link
    link.click()
    allowed = undefined
  })
})

export {}
