import { describe, expect, it } from 'vitest'
import type { JsonSchema } from '../../policy/json-schema.ts'
import {
  breakingChanges,
  undeclaredChanges,
  unnamedAdditions,
  type ContractDocument,
} from '../../scripts/generate/breaking-changes.ts'

const TEXT: JsonSchema = { type: 'string' }
const NUMBER: JsonSchema = { type: 'number' }

function object(properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema {
  return { type: 'object', properties, required }
}

interface Sketch {
  name?: string
  request?: JsonSchema
  response?: JsonSchema
  event?: JsonSchema
  schemas?: Record<string, JsonSchema>
  callers?: string[]
  minimumPackage?: string
  requestTypes?: string[]
}

/** Creates a document with one operation and one event. */
function documentOf(sketch: Sketch): ContractDocument {
  const { name = 'order', request = object({}), response = object({}), event = object({}), schemas = {} } = sketch
  const json = (schema: JsonSchema) => ({ 'application/json': { schema } })
  return {
    paths: {
      [`/${name}`]: {
        post: {
          requestBody: {
            content: Object.fromEntries(
              (sketch.requestTypes ?? ['application/json']).map((type) => [
                type,
                { schema: { $ref: '#/components/schemas/OrderRequest' } },
              ]),
            ),
          },
          responses: { '200': { content: json(response) } },
          'x-callers': sketch.callers ?? ['secret'],
          'x-minimum-package': sketch.minimumPackage ?? 'GO',
        },
      },
    },
    components: { schemas: { OrderRequest: request, ...schemas } },
    'x-webhooks': { 'order.sent': { post: { requestBody: { content: json(event) } } } },
  }
}

const between = (before: Sketch, after: Sketch) => breakingChanges(documentOf(before), documentOf(after))
const inRequest = (before: JsonSchema, after: JsonSchema) => between({ request: before }, { request: after })
const inResponse = (before: JsonSchema, after: JsonSchema) => between({ response: before }, { response: after })

describe('breaking changes', () => {
  it('finds none between equal documents, whatever their order', () => {
    const fields = object({ a: TEXT, b: NUMBER }, ['a', 'b'])
    expect(inRequest(fields, object({ b: NUMBER, a: TEXT }, ['b', 'a']))).toEqual([])
    expect(inResponse(fields, fields)).toEqual([])
  })

  it('finds none if the contract only becomes more permissive', () => {
    expect(inRequest(object({ a: TEXT }, ['a']), object({ a: { ...TEXT, nullable: true }, b: NUMBER }))).toEqual([])
    expect(inResponse(object({ a: TEXT }), object({ a: TEXT, b: NUMBER }, ['a', 'b']))).toEqual([])
    expect(inRequest(object({ a: { ...TEXT, enum: ['x'] } }), object({ a: { ...TEXT, enum: ['x', 'y'] } }))).toEqual([])
    expect(inRequest(object({ a: { ...TEXT, maxLength: 5 } }), object({ a: { ...TEXT, maxLength: 6 } }))).toEqual([])
    expect(inRequest(object({ a: { type: 'integer' } }), object({ a: NUMBER }))).toEqual([])
    expect(inResponse(object({ a: NUMBER }), object({ a: { type: 'integer' } }))).toEqual([])
  })

  it('finds none if a new optional field contains required fields', () => {
    expect(inRequest(object({}), object({ a: object({ b: TEXT }, ['b']) }))).toEqual([])
  })

  it('names an operation that was removed or renamed, without its fields', () => {
    expect(between({ request: object({ a: TEXT }) }, { name: 'orderNow' })).toEqual(['`order` was removed'])
  })

  it('names callers that an operation no longer accepts, and a higher package', () => {
    expect(between({ callers: ['secret', 'publishable'] }, { callers: ['secret', 'admin'] })).toEqual([
      '`order` no longer accepts callers of the kind publishable',
    ])
    expect(between({ minimumPackage: 'GO' }, { minimumPackage: 'PRIME' })).toEqual([
      '`order` needs the package PRIME now',
    ])
    expect(between({ minimumPackage: 'PRIME' }, { minimumPackage: 'GO' })).toEqual([])
  })

  it('names a content type that a request may no longer have', () => {
    const both = ['application/json', 'multipart/form-data']
    expect(between({ requestTypes: both }, {})).toEqual(['`order` no longer takes multipart/form-data'])
  })

  it('names a removed field by its whole path, without the fields inside it', () => {
    const list = (fields: JsonSchema) => object({ items: { type: 'array', items: fields } })
    const before = list(object({ ean: TEXT, price: object({ euros: NUMBER }) }))
    expect(inRequest(before, list(object({ ean: TEXT })))).toEqual(['`order` request `items[].price` was removed'])
    expect(inResponse(before, list(object({ ean: TEXT })))).toEqual(['`order` response `items[].price` was removed'])
  })

  it('names a removed field of an event, and a removed event', () => {
    const event = object({ orderId: TEXT }, ['orderId'])
    expect(between({ event }, {})).toEqual(['`order.sent` event `orderId` was removed'])
    const { 'x-webhooks': _events, ...rest } = documentOf({})
    expect(breakingChanges(documentOf({ event }), { ...rest, 'x-webhooks': {} })).toEqual([
      '`order.sent` event was removed',
    ])
  })

  it('names a new required field of a request only', () => {
    expect(inRequest(object({}), object({ a: TEXT }, ['a']))).toEqual(['`order` request `a` is new and required'])
    expect(inResponse(object({}), object({ a: TEXT }, ['a']))).toEqual([])
  })

  it('names a field that a request now requires, or that a response may now omit', () => {
    const [optional, required] = [object({ a: TEXT }), object({ a: TEXT }, ['a'])]
    expect(inRequest(optional, required)).toEqual(['`order` request `a` is required now'])
    expect(inRequest(required, optional)).toEqual([])
    expect(inResponse(required, optional)).toEqual(['`order` response `a` may be missing now'])
    expect(inResponse(optional, required)).toEqual([])
  })

  it('names a changed type of a request and of a response', () => {
    const [text, number] = [object({ a: TEXT }), object({ a: NUMBER })]
    expect(inRequest(text, number)).toEqual(['`order` request `a` no longer takes string'])
    expect(inResponse(text, number)).toEqual(['`order` response `a` may be number now'])
    expect(inRequest(number, object({ a: { type: 'integer' } }))).toEqual([
      '`order` request `a` no longer takes number',
    ])
    expect(inResponse(text, object({ a: {} }))).toEqual(['`order` response `a` may be any type now'])
  })

  it('names null if a request no longer accepts it or a response may now contain it', () => {
    const [plain, nullable] = [object({ a: TEXT }), object({ a: { ...TEXT, nullable: true } })]
    expect(inRequest(nullable, plain)).toEqual(['`order` request `a` no longer takes null'])
    expect(inResponse(plain, nullable)).toEqual(['`order` response `a` may be null now'])
    expect([...inRequest(plain, nullable), ...inResponse(nullable, plain)]).toEqual([])
  })

  it('names each removed value of an enum, and a new enum in a request', () => {
    const some = object({ a: { ...TEXT, enum: ['x', 'y'] } })
    const fewer = object({ a: { ...TEXT, enum: ['x'] } })
    expect(inRequest(some, fewer)).toEqual(['`order` request `a` no longer has the value `y`'])
    expect(inResponse(some, fewer)).toEqual(['`order` response `a` no longer has the value `y`'])
    expect(inRequest(object({ a: TEXT }), fewer)).toEqual(['`order` request `a` takes only `x` now'])
    expect(inResponse(object({ a: TEXT }), fewer)).toEqual([])
  })

  it('names narrower bounds of a request', () => {
    const before = object({ a: { ...TEXT, minLength: 1, maxLength: 9 }, n: NUMBER })
    const after = object({ a: { ...TEXT, minLength: 2, maxLength: 8, pattern: '^x' }, n: { ...NUMBER, maximum: 5 } })
    expect(inRequest(before, after)).toEqual([
      '`order` request `a` has the maxLength 8 now',
      '`order` request `a` has the minLength 2 now',
      '`order` request `a` must have the form `^x` now',
      '`order` request `n` has the maximum 5 now',
    ])
    expect(inResponse(before, after)).toEqual([])
    expect(inRequest(after, before)).toEqual([])
  })

  it('names a shared schema once, by its own name', () => {
    const line = { $ref: '#/components/schemas/Line' }
    const using = { response: object({ first: line, rest: { type: 'array', items: line } }) }
    const before = { ...using, schemas: { Line: object({ ean: TEXT, note: TEXT }) } }
    expect(between(before, { ...using, schemas: { Line: object({ ean: TEXT }) } })).toEqual([
      '`Line` response `note` was removed',
    ])
    const written = object({ ean: TEXT, note: TEXT })
    const inline = { response: object({ first: written, rest: { type: 'array', items: written } }) }
    expect(between(before, inline)).toEqual([])
  })

  it('follows allOf, unions, maps and recursive schemas', () => {
    const parts = (b: JsonSchema) => ({ allOf: [object({ a: TEXT }, ['a']), b] })
    expect(inResponse(parts(object({ b: TEXT })), parts({}))).toEqual(['`order` response `b` was removed'])
    const union = (...variants: JsonSchema[]) => object({ way: { anyOf: variants } })
    const [byCode, byPlace] = [object({ code: TEXT }, ['code']), object({ lat: NUMBER }, ['lat'])]
    expect(inRequest(union(byCode, byPlace), union(byCode))).toEqual([
      '`order` request `way.code` is required now',
      '`order` request `way.lat` was removed',
    ])
    expect(inRequest(union(TEXT, NUMBER), union(TEXT))).toEqual(['`order` request `way` no longer takes number'])
    const map = (of: JsonSchema) => object({ prices: { type: 'object', additionalProperties: of } })
    expect(inResponse(map(NUMBER), map(TEXT))).toEqual(['`order` response `prices.*` may be string now'])
    const tree = object({ name: TEXT, parts: { type: 'array', items: { $ref: '#/components/schemas/Tree' } } })
    const root = { response: { $ref: '#/components/schemas/Tree' }, schemas: { Tree: tree } }
    expect(between(root, root)).toEqual([])
  })
})

describe('declarations in the changelog', () => {
  const change = '`order` request `a` was removed'
  const changelog = (line: string) =>
    `# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Add b.\n${line}\n\n## [1.0]\n\n- Old.\n`

  it('accepts a change whose line may have text after it', () => {
    expect(undeclaredChanges([change], changelog(`- Breaking: ${change}. Send \`b\`.`))).toEqual([])
  })

  it('names the missing line', () => {
    for (const line of ['', `- ${change}.`, `- Breaking: \`order\` request \`aa\` was removed.`])
      expect(undeclaredChanges([change], changelog(line))).toEqual([`- Breaking: ${change}.`])
  })

  it('names new operations and events that the changelog does not name', () => {
    const before = { ...documentOf({ name: 'pay' }), 'x-webhooks': {} }
    const added = unnamedAdditions(before, documentOf({}), changelog('- Add `order.send`.'))
    expect(added).toEqual(['order', 'order.sent'])
    expect(unnamedAdditions(before, documentOf({}), changelog('- Add `order` and `order.sent`.'))).toEqual([])
  })

  it('ignores declarations of earlier releases', () => {
    expect(undeclaredChanges([change], `## [Unreleased]\n\n## [1.0]\n\n- Breaking: ${change}.\n`)).toHaveLength(1)
  })
})
