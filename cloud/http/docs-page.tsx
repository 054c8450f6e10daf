import type { Operation } from '../operations/operation.ts'
import { API_VERSION } from '../operations/openapi.ts'
import { UploadedFile } from '../operations/uploaded-file.ts'
import { Page } from './page.tsx'

interface Field {
  name: string
  type: string
  required: boolean
  description: string
}

interface JsonSchema {
  type?: string
  enum?: unknown[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  description?: string
  nullable?: boolean
  format?: string
  anyOf?: JsonSchema[]
}

interface Document {
  components: { schemas: Record<string, JsonSchema> }
}

/** The reference of the API, out of the same table that serves it. */
export function DocsPage({ operations, document, baseUrl }: { operations: ReadonlyMap<string, Operation>; document: Document; baseUrl: string }) {
  const areas = [...new Set([...operations.values()].map((o) => o.area))]
  return (
    <Page title="untag API" language="en">
      <h1>untag API</h1>
      <p>
        Version {API_VERSION}. Every operation is <code>POST {baseUrl}/operationName</code> with a JSON body and <code>Authorization: Bearer untag_test_sk_…</code>.
        The machine-readable description is at <a href="/openapi.json">/openapi.json</a>, the keys that tokens are verified with at{' '}
        <a href="/.well-known/jwks.json">/.well-known/jwks.json</a>.
      </p>
      <p class="soft">
        Errors have the form <code>{'{"error", "code", "reason", "details", "requestId"}'}</code>. Operations that change something take an <code>Idempotency-Key</code>:
        the same key with the same body within 24 hours gets the same answer.
      </p>
      {areas.map((area) => (
        <section>
          <h2>{area.charAt(0).toUpperCase() + area.slice(1)}</h2>
          {[...operations.values()].filter((o) => o.area === area).map((o) => (
            <OperationEntry operation={o} document={document} baseUrl={baseUrl} />
          ))}
        </section>
      ))}
    </Page>
  )
}

function OperationEntry({ operation, document, baseUrl }: { operation: Operation; document: Document; baseUrl: string }) {
  const name = operation.name.charAt(0).toUpperCase() + operation.name.slice(1)
  const request = document.components.schemas[`${name}Request`] ?? {}
  const response = document.components.schemas[`${name}Response`] ?? {}
  return (
    <details id={operation.name}>
      <summary>
        <code>{operation.name}</code> {operation.summary} <span class="tag">{operation.minimumPackage}</span>
      </summary>
      {operation.description === operation.summary ? null : <p>{operation.description}</p>}
      <p class="soft">
        Called with: {operation.callers.map((c) => (c === 'anyone' ? 'no key' : c === 'agent' ? 'an agent’s login' : `${c} key`)).join(', ')}
        {operation.get ? '; GET answers the older listing form' : ''}
        {operation.emits.length > 0 ? `; emits ${operation.emits.join(', ')}` : ''}
      </p>
      <FieldTable title="Request" fields={fieldsOf(request)} />
      <FieldTable title="Answer" fields={fieldsOf(response)} />
      <pre>{curl(operation, baseUrl)}</pre>
    </details>
  )
}

function FieldTable({ title, fields }: { title: string; fields: Field[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th>{title}</th>
          <th>Type</th>
          <th>Notes</th>
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => (
          <tr>
            <td>
              <code>{field.name}</code>
            </td>
            <td>{field.type}</td>
            <td>
              {field.required ? '' : 'optional. '}
              {field.description}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Answers of several forms as one table: required is what all of them have. */
function mergeForms(schema: JsonSchema): JsonSchema {
  const forms = schema.anyOf ?? []
  if (schema.properties || forms.length === 0) return schema
  const properties: Record<string, JsonSchema> = Object.assign({}, ...forms.map((form) => form.properties))
  return { properties, required: Object.keys(properties).filter((name) => forms.every((form) => form.required?.includes(name))) }
}

function fieldsOf(of: JsonSchema, prefix = '', depth = 0): Field[] {
  const schema = depth === 0 ? mergeForms(of) : of
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const path = `${prefix}${name}`
    const own: Field = { name: path, type: typeOf(child), required: schema.required?.includes(name) ?? false, description: child.description ?? '' }
    const inner = child.type === 'array' ? child.items : child
    const below = inner?.properties && depth < 2 ? fieldsOf(inner, `${path}${child.type === 'array' ? '[]' : ''}.`, depth + 1) : []
    return [own, ...below]
  })
}

function typeOf(schema: JsonSchema): string {
  const base = schema.enum
    ? schema.enum.map(String).join(' · ')
    : schema.type === 'array'
      ? `${schema.items ? typeOf(schema.items) : 'any'}[]`
      : (schema.format ?? schema.type ?? (schema.anyOf ? schema.anyOf.map(typeOf).join(' or ') : 'any'))
  return schema.nullable ? `${base} or null` : base
}

function curl(operation: Operation, baseUrl: string): string {
  const key = operation.callers.includes('anyone') ? '' : ` -H 'authorization: Bearer ${operation.callers.includes('secret') ? 'untag_test_sk' : 'untag_live_ak'}_…'`
  if (operation.getOnly) {
    const query = new URLSearchParams(operation.example as Record<string, string>)
    return `curl -s '${baseUrl}/${operation.name}?${query.toString()}'${key}`
  }
  const fields = Object.entries(operation.example)
  if (fields.some(([, value]) => value instanceof UploadedFile)) {
    const form = fields.map(([name, value]) => ` -F ${name}=${value instanceof UploadedFile ? `@${value.name}` : String(value)}`)
    return `curl -s ${baseUrl}/${operation.name}${key}${form.join('')}`
  }
  return `curl -s ${baseUrl}/${operation.name}${key} -H 'content-type: application/json' -d '${JSON.stringify(operation.example)}'`
}
