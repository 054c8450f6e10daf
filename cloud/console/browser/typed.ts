/**
 * Keeps what a person types into the forms of a page, until the cloud has answered the form or the person leaves the
 * page. If the session ends meanwhile, the sign-in page says so and leads back, and the forms have their text again.
 * Passwords, PINs and codes are not kept. The text stays in this tab, and only its user gets it back.
 */

/** Name of the typed text in the storage of the tab. */
const TYPED = 'untag-typed'
/** Name of the mark that this browser was signed in. */
const SIGNED_IN = 'untag-signed-in'
/** Header of the pages of untag. An answer without it is of a proxy, and answers no form. */
const PAGE_HEADER = 'untag-page'
/** Fields that are not kept, besides those of the type password. */
const SECRET = /\bpin|Pin|[Pp]assword|[Ss]ecret|[Tt]oken|[Cc]redential|[Cc]ode/
const NOT_TYPED = new Set(['hidden', 'password', 'submit', 'file'])
/** Maximum number of forms of a page whose text is kept. */
const FORMS_LIMIT = 50

type Field = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement
type Value = readonly [name: string, value: string, isChosen: boolean]

interface Typed {
  readonly user: string
  readonly path: string
  /** Values of the fields, by the name of the form. */
  readonly forms: Readonly<Record<string, readonly Value[]>>
  /** True if the sign-in page came since. */
  readonly isEnded: boolean
}

/** The user of the page; undefined if nobody is signed in. */
const user = document.body.dataset['user']
const pathNow = () => `${location.pathname}${location.search}`
const nameOf = (form: HTMLFormElement) => form.querySelector<HTMLInputElement>('input[name="_form"]')?.value ?? ''
const isChoice = (field: Field): field is HTMLInputElement => field.type === 'checkbox' || field.type === 'radio'
const fieldsOf = (form: HTMLFormElement) =>
  [...form.querySelectorAll<Field>('input, textarea, select')].filter(
    ({ name, type }) => !NOT_TYPED.has(type) && !SECRET.test(name),
  )

function read(): Typed | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(TYPED) ?? 'null') as Typed | null) ?? undefined
  } catch {
    return undefined
  }
}

function write(typed: Typed | undefined): void {
  try {
    if (typed) sessionStorage.setItem(TYPED, JSON.stringify(typed))
    else sessionStorage.removeItem(TYPED)
  } catch {
    // A browser without storage, or with a full one, keeps nothing.
  }
}

/** True if the person changed the field. A field that another one changed meanwhile keeps that value. */
function isChanged(field: Field): boolean {
  if (isChoice(field)) return field.checked !== field.defaultChecked
  if (!(field instanceof HTMLSelectElement)) return field.value !== field.defaultValue
  const first = [...field.options].find(({ defaultSelected }) => defaultSelected) ?? field.options[0]
  return field.value !== first?.value
}

/** Keeps what was typed into a form. */
function keep(form: HTMLFormElement): void {
  if (user === undefined || form.method !== 'post' || nameOf(form) === '') return
  const values = fieldsOf(form)
    .filter(isChanged)
    .map((field): Value => [field.name, field.value, !isChoice(field) || field.checked])
  const before = read()
  const path = pathNow()
  const { [nameOf(form)]: _, ...others } = before?.path === path ? before.forms : {}
  const forms = Object.fromEntries([...Object.entries(others), [nameOf(form), values] as const].slice(-FORMS_LIMIT))
  write({ user, path, forms, isEnded: false })
}

/** Forgets a form that the cloud has answered. A rejected form is on the page again, and its text is kept. */
function forget(form: string): void {
  const typed = read()
  if (!typed) return
  const { [form]: _, ...forms } = typed.forms
  write(Object.keys(forms).length > 0 ? { ...typed, forms } : undefined)
}

/** Types the text again. Opens the question of a form. */
function restore(typed: Typed): void {
  for (const form of document.querySelectorAll('form')) {
    const values = typed.forms[nameOf(form)]
    if (!values) continue
    const question = form.closest<HTMLElement>('[popover]')
    if (question && !question.matches(':popover-open')) question.showPopover()
    for (const field of fieldsOf(form))
      for (const [name, value, isChosen] of values) {
        if (name !== field.name) continue
        if (!isChoice(field)) field.value = value
        else if (value === field.value) field.checked = isChosen
      }
  }
}

/** A page of a user: returns the text after a sign-in. Without one, the person left the form. */
function atPage(): void {
  localStorage.setItem(SIGNED_IN, 'yes')
  const typed = read()
  write(undefined)
  if (typed?.isEnded && typed.user === user && typed.path === pathNow()) restore(typed)
}

/** The sign-in page: says that the session has ended, also if the cookie is gone, and leads back to the form. */
function atSignIn(): void {
  const reason = document.querySelector<HTMLTemplateElement>('template[data-ended]')
  if (reason && location.pathname !== '/console/sign-in' && localStorage.getItem(SIGNED_IN) !== null)
    reason.replaceWith(reason.content)
  const typed = read()
  if (!typed) return
  write({ ...typed, isEnded: true })
  for (const to of document.querySelectorAll<HTMLInputElement>('form input[name="to"]')) to.value = typed.path
  const provider = document.querySelector<HTMLAnchorElement>('a[href^="/console/sign-in/openid-connect"]')
  if (!provider) return
  const url = new URL(provider.href)
  url.searchParams.set('to', typed.path)
  provider.href = url.href
}

for (const name of ['input', 'change'])
  document.addEventListener(name, ({ target }) => {
    const form = target instanceof Element ? target.closest('form') : null
    if (form) keep(form)
  })
document.addEventListener('htmx:afterRequest', (event) => {
  const { xhr, elt } = (event as CustomEvent<{ xhr: XMLHttpRequest; elt: Element }>).detail
  if (!(elt instanceof HTMLFormElement) || elt.method !== 'post') return
  if (xhr.getResponseHeader(PAGE_HEADER) !== null && xhr.getResponseHeader('HX-Redirect') === null) forget(nameOf(elt))
})
document.addEventListener('htmx:afterSettle', () => {
  const rejected = document.querySelector<HTMLFormElement>('form[data-rejected]')
  if (rejected) keep(rejected)
})
document.addEventListener('submit', ({ target }) => {
  if (!(target instanceof HTMLFormElement) || target.getAttribute('action') !== '/console/sign-out') return
  localStorage.removeItem(SIGNED_IN)
  write(undefined)
})

if (user === undefined) atSignIn()
else atPage()

export {}
