import type { Field } from '../../description/fields.ts'

/** Fields with type, limits and meaning. */
export function FieldList({ fields, bases }: { fields: readonly Field[]; bases: readonly string[] }) {
  if (fields.length === 0 && bases.length === 0) return <p class="meta">No fields.</p>
  return (
    <ul class="fields">
      {bases.map((base) => (
        <li>
          Everything of <a href={`#${schemaId(base)}`}>{base}</a>
        </li>
      ))}
      {fields.map((field) => (
        <FieldRow field={field} />
      ))}
    </ul>
  )
}

function FieldRow({ field: { name, type, refersTo, required, limits, description } }: { field: Field }) {
  return (
    <li>
      <code>{name}</code> <i>{refersTo === undefined ? type : <a href={`#${schemaId(refersTo)}`}>{type}</a>}</i>
      {limits === '' ? null : <small> {limits}</small>}
      {required ? <em> required</em> : null}
      {description === '' ? null : <div>{description}</div>}
    </li>
  )
}

/** Where a shared schema stands on the page. */
export function schemaId(name: string): string {
  return `schema-${name}`
}
