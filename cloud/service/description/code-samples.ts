import type { Operation } from '../../platform/operations/operation.ts'

/** A call in one language. */
interface CodeSample {
  readonly language: string
  readonly code: string
}

/** Placeholder for the reader's key. */
function keyOf({ callers }: Operation): string {
  if (callers.includes('secret')) return 'untag_test_sk_…'
  return callers.includes('admin') ? 'untag_live_ak_…' : '<access token of agentLogin>'
}

/** Samples of a call with curl, the client of this package, and Python's requests. */
export function codeSamples(operation: Operation, baseUrl: string): CodeSample[] {
  return [
    { language: 'curl', code: curl(operation, baseUrl) },
    { language: 'TypeScript', code: typescript(operation, baseUrl) },
    { language: 'Python', code: python(operation, baseUrl) },
  ]
}

function needsKey({ callers }: Operation): boolean {
  return !callers.includes('anyone')
}

function queryOf({ example }: Operation): string {
  return new URLSearchParams(
    Object.entries(example).map(([name, value]) => [name, String(value)] as [string, string]),
  ).toString()
}

/** Quotes a text for a shell. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function isFormOnly({ multipart }: Operation): boolean {
  return multipart?.alsoJson === false
}

function curl(operation: Operation, baseUrl: string): string {
  const { name, example, getOnly, multipart } = operation
  const key = needsKey(operation) ? ` \\\n  -H 'authorization: Bearer ${keyOf(operation)}'` : ''
  if (getOnly) return `curl -w '\\n' ${shellQuoted(`${baseUrl}/${name}?${queryOf(operation)}`)}${key}`
  if (multipart && isFormOnly(operation)) {
    const fields = [
      ...Object.entries(example)
        .filter(([field]) => field !== multipart.fileField)
        .map(([field, value]) => `${field}=${String(value)}`),
      `${multipart.fileField}=@FILE`,
    ]
    return `curl -w '\\n' ${baseUrl}/${name}${key}${fields.map((field) => ` \\\n  -F ${shellQuoted(field)}`).join('')}`
  }
  return `curl -w '\\n' ${baseUrl}/${name}${key} \\\n  -H 'content-type: application/json' \\\n  -d ${shellQuoted(JSON.stringify(example))}`
}

function typescript(operation: Operation, baseUrl: string): string {
  const key = needsKey(operation) ? `  key: '${keyOf(operation)}',\n` : ''
  const { name, example, multipart } = operation
  const file = multipart && isFormOnly(operation) ? { [multipart.fileField]: RAW_FILE } : {}
  const request = literal({ ...example, ...file }).replace(`'${RAW_FILE}'`, 'file')
  const opened = multipart && isFormOnly(operation) ? `const file = await openAsBlob('FILE') // node:fs\n` : ''
  return `import { createClient } from 'untag/client'\n\nconst untag = createClient({\n  baseUrl: '${baseUrl}',\n${key}})\n${opened}const answer = await untag.${name}(${request === '{}' ? '' : request})`
}

const RAW_FILE = '<file>'

/** Formats a value as a TypeScript literal. */
function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(
    ([name, field]) => `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name)}: ${literal(field)}`,
  )
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

function python(operation: Operation, baseUrl: string): string {
  const { name, example, getOnly, multipart } = operation
  const key = needsKey(operation) ? `,\n    headers={"Authorization": "Bearer ${keyOf(operation)}"}` : ''
  const called = `${getOnly ? 'get' : 'post'}(\n    "${baseUrl}/${name}"${key}`
  const sent = getOnly
    ? `params=${pythonLiteral(example)}`
    : multipart && isFormOnly(operation)
      ? `data=${pythonLiteral(withoutFile(operation))},\n    files={"${multipart.fileField}": open("FILE", "rb")}`
      : `json=${pythonLiteral(example)}`
  return `import requests\n\nanswer = requests.${called},\n    ${sent},\n    timeout=30,\n).json()`
}

function withoutFile({ example, multipart }: Operation): Record<string, unknown> {
  return Object.fromEntries(Object.entries(example).filter(([name]) => name !== multipart?.fileField))
}

function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, field]) => `${JSON.stringify(name)}: ${pythonLiteral(field)}`)
    .join(', ')}}`
}
