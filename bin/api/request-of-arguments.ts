import { spellingHint } from '../../policy/fold-text.ts'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { resolveReference, type JsonSchema } from '../../policy/json-schema.ts'
import { WrongUsage } from '../../host/options.ts'

type Components = Readonly<Record<string, JsonSchema>>
type Values = Record<string, unknown>

/** Maximum depth of a path, and maximum number of list entries. */
const DEPTH_LIMIT = 8
const ENTRIES_LIMIT = 500

/**
 * Builds a request from `--field value`, `--a.b value`, `--list x --list y`, `--list.0.field value` and `--json '{…}'`
 * or `--json @file`. Single fields override the JSON. Values are converted to the types of the schema. Throws
 * `WrongUsage` with all faults, which names the help of `operation`.
 */
export function requestOfArguments(
  args: readonly string[],
  schema: JsonSchema,
  components: Components,
  operation?: string,
): Values {
  const faults: string[] = []
  const request: Values = {}
  const fields: { path: string; value: string | undefined }[] = []
  for (const { name, value } of optionsIn(args, schema, components, faults)) {
    if (name === 'json') Object.assign(request, jsonObject(value, faults))
    else fields.push({ path: name, value })
  }
  for (const { path, value } of fields) setValue(request, path.split('.'), value, schema, components, path, faults)
  for (const name of resolveReference(schema, components).required ?? [])
    if (!(name in request) && !fields.some(({ path }) => path.split('.')[0] === name))
      faults.push(`--${name} is needed`)
  if (faults.length > 0) throw new WrongUsage(faults, operation === undefined ? undefined : `api ${operation}`)
  return request
}

function optionsIn(
  args: readonly string[],
  schema: JsonSchema,
  components: Components,
  faults: string[],
): { name: string; value: string | undefined }[] {
  const read: { name: string; value: string | undefined }[] = []
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? ''
    if (!arg.startsWith('--')) {
      faults.push(`"${arg}" is not a field: fields start with --`)
      continue
    }
    const [name = '', inline] = splitOnce(arg.slice(2))
    const next = args[i + 1]
    const isSwitch =
      isBoolean(schemaAt(schema, name.split('.'), components), components) && !['true', 'false'].includes(next ?? '')
    if (inline !== undefined) read.push({ name, value: inline })
    else if (isSwitch || next === undefined || next.startsWith('--')) read.push({ name, value: undefined })
    else {
      read.push({ name, value: next })
      i++
    }
  }
  return read
}

function splitOnce(text: string): [string, string | undefined] {
  const at = text.indexOf('=')
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function jsonObject(value: string | undefined, faults: string[]): Values {
  const text = value?.startsWith('@') === true ? readFile(value.slice(1), faults)?.toString('utf8') : value
  if (text === undefined) {
    if (value === undefined) faults.push("--json needs a value: --json '{…}' or --json @file")
    return {}
  }
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Values
  } catch {
    // The error below reports the fault.
  }
  faults.push('--json must be a JSON object')
  return {}
}

function readFile(path: string, faults: string[]): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    faults.push(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`)
    return undefined
  }
}

/** The schema at the end of a path; undefined if there is none. */
function schemaAt(schema: JsonSchema, path: readonly string[], components: Components): JsonSchema | undefined {
  let node: JsonSchema | undefined = resolveReference(schema, components)
  for (const step of path.slice(0, DEPTH_LIMIT)) {
    const more: JsonSchema['additionalProperties'] = node?.additionalProperties
    const next: JsonSchema | undefined =
      node?.type === 'array' && /^\d+$/.test(step)
        ? node.items
        : (own(node?.properties, step) ?? (typeof more === 'object' ? more : undefined))
    if (!next) return undefined
    node = resolveReference(next, components)
  }
  return node
}

/** Suggests fields at the same level of the request whose names are similar to the last part of the path. */
function suggestion(name: string, schema: JsonSchema, components: Components): string {
  const path = name.split('.')
  const last = path.pop() ?? ''
  const known = Object.keys(schemaAt(schema, path, components)?.properties ?? {})
  return spellingHint(last, known).replaceAll(
    /(mean | or )/g,
    (text) => `${text}--${path.map((step) => `${step}.`).join('')}`,
  )
}

function own(properties: Readonly<Record<string, JsonSchema>> | undefined, name: string): JsonSchema | undefined {
  return properties && Object.hasOwn(properties, name) ? properties[name] : undefined
}

function isBoolean(schema: JsonSchema | undefined, components: Components): boolean {
  return (
    schema !== undefined &&
    (schema.type === 'boolean' ||
      (schema.anyOf ?? []).some((option) => isBoolean(resolveReference(option, components), components)))
  )
}

function setValue(
  request: Values,
  path: readonly string[],
  value: string | undefined,
  schema: JsonSchema,
  components: Components,
  name: string,
  faults: string[],
): void {
  const node = schemaAt(schema, path, components)
  if (!node || path.length > DEPTH_LIMIT || path.includes('__proto__'))
    return void faults.push(`there is no field --${name}${suggestion(name, schema, components)}`)
  const isList = node.type === 'array' && !(value?.trimStart().startsWith('[') ?? false)
  const read = readValue(value, isList ? resolveReference(node.items ?? {}, components) : node, components)
  if ('fault' in read) return void faults.push(`--${name} ${read.fault}`)
  let at: Values = request
  for (const [i, step] of path.slice(0, -1).entries()) {
    if (Array.isArray(at) && Number(step) >= ENTRIES_LIMIT)
      return void faults.push(
        `--${name}: a list on the command line has at most ${ENTRIES_LIMIT} entries; use --json for more`,
      )
    const existing = at[step]
    const below =
      typeof existing === 'object' && existing !== null
        ? existing
        : schemaAt(schema, path.slice(0, i + 1), components)?.type === 'array'
          ? []
          : {}
    at[step] = below
    at = below as Values
  }
  const last = path.at(-1) ?? ''
  if (!isList) at[last] = read.value
  else at[last] = [...((at[last] as unknown[] | undefined) ?? []), read.value]
}

function readValue(
  text: string | undefined,
  schema: JsonSchema,
  components: Components,
): { value: unknown } | { fault: string } {
  const kinds = (schema.anyOf ?? schema.oneOf ?? [schema]).map((option) => resolveReference(option, components))
  if (text === undefined) return isBoolean(schema, components) ? { value: true } : { fault: 'needs a value' }
  if (schema.nullable === true && text === 'null') return { value: null }
  const choices = kinds.flatMap((kind) => kind.enum ?? [])
  if (choices.length > 0 && kinds.every((kind) => kind.enum)) {
    const chosen = choices.find((choice) => String(choice) === text)
    return chosen === undefined ? { fault: `must be one of ${choices.join(', ')}, not "${text}"` } : { value: chosen }
  }
  const faults: string[] = []
  for (const kind of kinds) {
    const read = readAs(text, kind)
    if ('value' in read) return read
    faults.push(read.fault)
  }
  return { fault: faults.join(', or ') }
}

function readAs(text: string, { type, format }: JsonSchema): { value: unknown } | { fault: string } {
  if (format === 'binary') return fileOf(text)
  if (type === 'integer' || type === 'number') {
    const number = text.trim() === '' ? Number.NaN : Number(text)
    const fits = type === 'integer' ? Number.isSafeInteger(number) : Number.isFinite(number)
    return fits ? { value: number } : { fault: `must be a ${type === 'integer' ? 'whole ' : ''}number, not "${text}"` }
  }
  if (type === 'boolean')
    return text === 'true' || text === 'false'
      ? { value: text === 'true' }
      : { fault: `must be true or false, not "${text}"` }
  if (type === 'string') return { value: text }
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { fault: 'must be JSON' }
  }
}

function fileOf(text: string): { value: unknown } | { fault: string } {
  const faults: string[] = []
  const path = text.startsWith('@') ? text.slice(1) : text
  const bytes = readFile(path, faults)
  return bytes
    ? { value: new File([new Uint8Array(bytes)], basename(path)) }
    : { fault: `must be a file: ${faults.join('; ')}` }
}
