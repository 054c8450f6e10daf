import { mayChange } from '../../clients/typescript/exchange.ts'

/** A part of the OpenAPI document that becomes a Python type. */
interface Schema {
  $ref?: string
  type?: string | readonly string[]
  enum?: readonly unknown[]
  format?: string
  properties?: Record<string, Schema>
  required?: readonly string[]
  items?: Schema
  additionalProperties?: Schema | boolean
  anyOf?: readonly Schema[]
  oneOf?: readonly Schema[]
  allOf?: readonly Schema[]
}

interface Operation {
  operationId: string
  summary: string
  parameters?: readonly { name?: string; in?: string; required?: boolean; schema?: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

/** The parts of the OpenAPI document that the Python client needs. */
export interface ApiDocument {
  paths: Record<string, { get?: Operation; post?: Operation }>
  components: { schemas: Record<string, Schema> }
}

const HEAD = `# Written by npm run generate from docs/reference/openapi.json. Do not edit.
"""Types and methods of all operations."""
from typing import Any, Dict, List, Literal, Mapping, NotRequired, Optional, TypedDict, Union, cast
`

/** Writes clients/python/untag_client/operations.py. */
export function pythonOperations(document: ApiDocument): string {
  const types = new PythonTypes(document.components.schemas)
  const operations = Object.values(document.paths)
    .flatMap(({ get, post }) => post ?? get ?? [])
    .map((operation) => ({
      name: operation.operationId,
      summary: operation.summary,
      request: types.named(requestOf(operation), `${capital(operation.operationId)}Request`),
      response: types.named(responseOf(operation), `${capital(operation.operationId)}Response`),
      isOptional: (types.resolve(requestOf(operation)).required ?? []).length === 0,
      isGet: operation.requestBody === undefined,
    }))
  const methods = (isAsync: boolean) => operations.map((operation) => methodOf(operation, isAsync)).join('\n')
  const names = (list: readonly { name: string }[]) => list.map(({ name }) => `    "${name}",\n`).join('')
  return `${HEAD}
${types.text()}
#: Operations that may change something: the client sends an Idempotency-Key with them.
CHANGING = frozenset((
${names(operations.filter(({ name }) => mayChange(name)))}))
#: Operations that use GET.
READ_BY_GET = frozenset((
${names(operations.filter(({ isGet }) => isGet))}))


class SyncOperations:
    """A method for every operation."""

    def call(self, operation: str, request: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Any:
        raise NotImplementedError

${methods(false)}

class AsyncOperations:
    """A coroutine for every operation."""

    async def call(self, operation: str, request: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Any:
        raise NotImplementedError

${methods(true)}`
}

function methodOf(
  {
    name,
    summary,
    request,
    response,
    isOptional,
  }: Record<'name' | 'summary' | 'request' | 'response', string> & {
    isOptional: boolean
  },
  isAsync: boolean,
): string {
  const [start, wait] = isAsync ? ['async def', 'await '] : ['def', '']
  return `    ${start} ${name}(
        self, request: ${isOptional ? `${request} = {}` : request}, *, idempotency_key: Optional[str] = None
    ) -> ${response}:
        ${JSON.stringify(summary)}
        return cast(
            ${response},
            ${wait}self.call("${name}", request, idempotency_key=idempotency_key),
        )
`
}

function requestOf({ parameters = [], requestBody }: Operation): Schema {
  const content = Object.values(requestBody?.content ?? {})[0]
  if (content) return content.schema
  const query = parameters.filter((parameter) => parameter.in === 'query')
  return {
    type: 'object',
    properties: Object.fromEntries(query.map(({ name = '', schema = {} }) => [name, schema])),
    required: query.filter(({ required }) => required).map(({ name = '' }) => name),
  }
}

function responseOf({ responses }: Operation): Schema {
  return responses['200']?.content?.['application/json']?.schema ?? { type: 'object' }
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Converts schemas to Python types. Objects become a `TypedDict` each. */
class PythonTypes {
  readonly #schemas: Record<string, Schema>
  readonly #written = new Map<string, string>()

  constructor(schemas: Record<string, Schema>) {
    this.#schemas = schemas
    for (const [name, schema] of Object.entries(schemas)) this.named(schema, name)
  }

  text(): string {
    return [...this.#written.values()].join('\n')
  }

  /** The schema without references and `allOf`. */
  resolve(schema: Schema): Schema {
    if (schema.$ref !== undefined) return this.resolve(this.#schemas[nameIn(schema.$ref)] ?? {})
    if (!schema.allOf) return schema
    const parts = [...schema.allOf.map((part) => this.resolve(part)), { ...schema, allOf: [] }]
    return {
      type: 'object',
      properties: Object.assign({}, ...parts.map(({ properties }) => properties)) as Record<string, Schema>,
      required: parts.flatMap(({ required = [] }) => required),
    }
  }

  /** The Python type of a schema. `name`: name of the type, if it needs one. */
  named(schema: Schema, name: string): string {
    if (schema.$ref !== undefined) {
      const target = this.#schemas[nameIn(schema.$ref)] ?? {}
      const isNamed = target.$ref === undefined && this.resolve(target).properties !== undefined
      return isNamed ? `"${nameIn(schema.$ref)}"` : this.named(target, name)
    }
    const { enum: values, anyOf, oneOf, type, items, ...rest } = schema.allOf ? this.resolve(schema) : schema
    if (values) return `Literal[${values.map(literal).join(', ')}]`
    const choices = anyOf ?? oneOf
    if (choices) return union(choices.map((choice, i) => this.named(choice, `${name}${i + 1}`)))
    if (Array.isArray(type)) return union(type.map((each: string) => this.named({ ...schema, type: each }, name)))
    if (type === 'array') return `List[${items ? this.named(items, `${name}Item`) : 'Any'}]`
    if (type === 'object') return this.#object(rest, name)
    return SIMPLE[schema.format === 'binary' ? 'binary' : String(type)] ?? 'Any'
  }

  #object({ properties, required = [], additionalProperties }: Schema, name: string): string {
    if (!properties || Object.keys(properties).length === 0) {
      if (typeof additionalProperties === 'object')
        return `Dict[str, ${this.named(additionalProperties, `${name}Value`)}]`
      if (!properties) return 'Dict[str, Any]'
    }
    const fields = Object.entries(properties ?? {}).map(([field, schema]) => {
      const type = this.named(schema, name + capital(field.replaceAll(/\W/g, '')))
      return `        "${field}": ${required.includes(field) ? type : `NotRequired[${type}]`},\n`
    })
    this.#written.set(name, `${name} = TypedDict(\n    "${name}",\n    {\n${fields.join('')}    },\n)\n`)
    return `"${name}"`
  }
}

const SIMPLE: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
  binary: 'bytes',
}

function literal(value: unknown): string {
  if (value === null) return 'None'
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)
}

function union(types: readonly string[]): string {
  const unique = [...new Set(types)]
  return unique.length === 1 ? (unique[0] ?? 'Any') : `Union[${unique.join(', ')}]`
}

function nameIn(reference: string): string {
  return reference.split('/').at(-1) ?? ''
}
