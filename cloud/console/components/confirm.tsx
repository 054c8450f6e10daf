import type { Child } from 'hono/jsx'
import type { ViewContext } from '../frame/page.ts'
import { ActionForm, formId, Submit } from './form.tsx'

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
  const id = `confirm-${form.replaceAll(/[^\w-]/g, '-')}`
  if (at.form.id === form)
    return (
      <ActionForm at={at} action={action} about={about}>
        <strong>{question}</strong>
        {children}
        <Submit>{confirm}</Submit>
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
