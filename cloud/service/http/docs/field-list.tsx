import type { Field } from '../../description/fields.ts'
import { raw } from 'hono/html'
import {
  DENIAL_TEXTS,
  DETAIL_TEXTS,
  EXCEPTION_TEXTS,
  REASON_TEXTS,
  ROW_TEXTS,
  type CodeText,
} from '../../description/codes.ts'

/** Text in which parts between backticks are code. */
export function Inline({ text }: { text: string }) {
  return <>{text.split('`').map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</>
}

/** A paragraph of text in which parts between backticks are code. */
export function Prose({ text }: { text: string }) {
  return (
    <p>
      <Inline text={text} />
    </p>
  )
}

/** A code block. Only `&`, `<` and `>` are escaped, because escaped quotes would double the size of the page. */
export function Code({ text }: { text: string }) {
  return (
    <pre>
      <code>{raw(text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'))}</code>
    </pre>
  )
}

interface Parts {
  fields: readonly Field[]
  bases: readonly string[]
  /** Marks required fields in requests and optional fields in responses. */
  mark: 'required' | 'optional'
}

/** Fields with type, limits and meaning. */
export function FieldList({ fields, bases, mark }: Parts) {
  if (fields.length === 0 && bases.length === 0) return <p class="meta">No fields.</p>
  return (
    <ul class="fields">
      {bases.map((base) => (
        <li>
          Everything of <a href={`#${schemaId(base)}`}>{base}</a>
        </li>
      ))}
      {fields.map((field) => (
        <FieldRow field={field} mark={mark} />
      ))}
    </ul>
  )
}

function FieldRow({
  field: { name, type, refersTo, required, limits, description },
  mark,
}: {
  field: Field
  mark: Parts['mark']
}) {
  return (
    <li>
      <code>{name}</code> <i>{refersTo === undefined ? type : <a href={`#${schemaId(refersTo)}`}>{type}</a>}</i>
      {limits === '' ? null : <small> {limits}</small>}
      {required && mark === 'required' ? <em> required</em> : null}
      {required || mark === 'required' ? null : <small> optional</small>}
      {description === '' ? null : (
        <div>
          <Inline text={description} />
        </div>
      )}
    </li>
  )
}

/** Element id of a shared schema. */
export function schemaId(name: string): string {
  return `schema-${name}`
}

type Group = 'reason' | 'detail' | 'row' | 'denial' | 'exception'

const GROUPS: readonly { group: Group; title: string; codes: readonly CodeText[] }[] = [
  { group: 'reason', title: 'Reasons of errors: `reason`', codes: REASON_TEXTS },
  { group: 'detail', title: 'Fields with errors: `details[].code`', codes: DETAIL_TEXTS },
  { group: 'row', title: 'Rows and files of imports, records of pushes: `errors[].code`', codes: ROW_TEXTS },
  { group: 'denial', title: 'Reasons of denials: `reason` of `verifyProtectedItem` and devices', codes: DENIAL_TEXTS },
  {
    group: 'exception',
    title: 'Exceptions: `reason` of `protection.exception.raised`',
    codes: EXCEPTION_TEXTS,
  },
]

/** Element id of a code. It includes the group, because `already_redeemed` is a reason of errors and of denials. */
export function codeId(group: Group, code: string): string {
  return `${group}-${code}`
}

/** Lists every code with its cause and the next step. */
export function CodeLists() {
  return (
    <section>
      <h2 id="codes">Codes</h2>
      {GROUPS.map(({ group, title, codes }) => (
        <>
          <h3 id={`codes-${group}`}>
            <Inline text={title} />
          </h3>
          <ul class="codes">
            {codes.map(({ code, text }) => (
              <li id={codeId(group, code)}>
                <code>{code}</code>{' '}
                <span>
                  <Inline text={text} />
                </span>
              </li>
            ))}
          </ul>
        </>
      ))}
    </section>
  )
}
