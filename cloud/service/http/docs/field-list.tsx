import { Inline } from './prose.tsx'
import type { Field } from '../../description/fields.ts'

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
