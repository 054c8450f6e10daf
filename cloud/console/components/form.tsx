import type { Child } from 'hono/jsx'
import { hashOfBytes } from '../../platform/operations/idempotency.ts'
import { FRAME_FIELDS, type FormFields } from '../frame/form.ts'
import type { ViewContext } from '../frame/page.ts'
import { WAITING_COUNTS } from './live.tsx'
import { Notice } from './notice.tsx'

/**
 * A form that calls an action of the page. It works without scripts: the server answers with a redirect. With scripts,
 * htmx replaces the content without a scroll, and the address by that of the redirect: a question in the address would ask
 * for the same again after a reload. `about` are hidden fields, which also tell apart forms of one action. `upload`:
 * the form contains a file. `download`: the answer is a file, which
 * the browser asks for itself, once the cloud has answered (service/http/browser/connection.ts).
 */
export function ActionForm({
  at,
  action,
  about = {},
  upload = false,
  download = false,
  children,
}: {
  at: ViewContext
  action: string
  about?: Readonly<Record<string, string>>
  upload?: boolean
  download?: boolean
  children?: Child
}) {
  const id = formId(action, about)
  const isRejected = at.form.id === id
  const hidden = {
    [FRAME_FIELDS.csrf]: at.csrfToken,
    [FRAME_FIELDS.key]: at.newKey(),
    [FRAME_FIELDS.action]: action,
    [FRAME_FIELDS.form]: id,
    [FRAME_FIELDS.mode]: at.mode,
    [FRAME_FIELDS.store]: at.store?.storeId ?? 'all',
    ...about,
  }
  const { length } = [...at.query]
  return (
    <form
      class="stack"
      data-rejected={isRejected ? '' : undefined}
      method="post"
      enctype={upload ? 'multipart/form-data' : undefined}
      action={length === 0 ? at.path : `${at.path}?${at.query}`}
      {...(download
        ? { 'data-guarded': true }
        : {
            'hx-boost': 'true',
            'hx-target': '#page',
            'hx-select': '#page',
            'hx-select-oob': `#toasts,${WAITING_COUNTS}`,
            'hx-swap': 'outerHTML show:none',
            'hx-replace-url': 'true',
          })}
    >
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {isRejected && at.form.message !== undefined ? (
        <Notice tone="warn" title={at.form.title ?? at.texts.errors.form} isUrgent>
          {at.form.message}
        </Notice>
      ) : null}
      {children}
    </form>
  )
}

/** The id of a form, from its action and its hidden fields. */
export function formId(action: string, about: Readonly<Record<string, string>>): string {
  return [action, ...Object.values(about)].join(' ')
}

/** The button that sends a form. */
export function Submit({ children, main = true, wide = false }: { children?: Child; main?: boolean; wide?: boolean }) {
  return (
    <button type="submit" class={['button', main ? 'main' : '', wide ? 'wide' : ''].join(' ').trim()}>
      {children}
    </button>
  )
}

/** A form of one button. */
export function ActionButton({
  at,
  action,
  about,
  main = false,
  children,
}: {
  at: ViewContext
  action: string
  about?: Readonly<Record<string, string>>
  main?: boolean
  children?: Child
}) {
  return (
    <ActionForm at={at} action={action} {...(about && { about })}>
      <Submit main={main}>{children}</Submit>
    </ActionForm>
  )
}

/**
 * A button that asks before it acts. The question is a popover of the browser, so it works without scripts. `children`
 * may add fields. After a rejection the page shows the question and its error again.
 */
export function Confirm({
  at,
  action,
  about = {},
  label,
  question,
  explanation,
  confirm,
  main = false,
  children,
}: {
  at: ViewContext
  action: string
  about?: Readonly<Record<string, string>>
  label: string
  question: string
  explanation: string
  confirm: string
  /** True if the button is the usual next step. */
  main?: boolean
  children?: Child
}) {
  const form = formId(action, about)
  const { length } = [...at.query]
  const id = `confirm-${form.replaceAll(/[^\w-]/g, '-')}`
  if (at.form.id === form)
    return (
      <ActionForm at={at} action={action} about={about}>
        <strong>{question}</strong>
        <p>{explanation}</p>
        {children}
        <div class="form-foot">
          <Submit>{confirm}</Submit>
          <a class="button" href={length === 0 ? at.path : `${at.path}?${at.query}`}>
            {at.texts.frame.cancel}
          </a>
        </div>
      </ActionForm>
    )
  return (
    <>
      <button type="button" class={main ? 'button main' : 'button'} popovertarget={id}>
        {label}
      </button>
      <div id={id} class="popover confirm" popover="auto" role="dialog" aria-labelledby={`${id}-title`}>
        <h2 id={`${id}-title`}>{question}</h2>
        <p>{explanation}</p>
        <ActionForm at={at} action={action} about={about}>
          {children}
          <div class="form-foot">
            <Submit>{confirm}</Submit>
            <button type="button" class="button" popovertarget={id} popovertargetaction="hide">
              {at.texts.frame.cancel}
            </button>
          </div>
        </ActionForm>
      </div>
    </>
  )
}

const BEFORE = 'before-'

/** Hidden fields by which `isChanged` finds what people changed. They hold hashes, because texts may be long. */
export function Before({ values }: { values: Readonly<Record<string, string>> }) {
  return (
    <>
      {Object.entries(values).map(([name, value]) => (
        <input type="hidden" name={`${BEFORE}${name}`} value={markOf(value)} />
      ))}
    </>
  )
}

/** True if the field differs from what the form showed (`Before`). */
export function isChanged(form: FormFields, name: string): boolean {
  return form.text(`${BEFORE}${name}`) !== markOf(form.text(name) ?? '')
}

const markOf = (text: string) => hashOfBytes(new TextEncoder().encode(text.trim())).slice(0, 16)
