import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, expect, it, describe } from 'vitest'
import { ERROR_STATUS, type ErrorCode } from '../../../../cloud/platform/foundation/failure.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { ROOT } from '../../../support/built.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'

describe('the OpenAPI description', () => {
  let cloud: TestCloud
  let document: Json
  beforeAll(async () => {
    cloud = await startTestCloud('sqlite')
    document = (await cloud.get('/openapi.json')).body
  })
  afterAll(() => cloud.stop())

  it('is valid OpenAPI 3.0.3 of version 1.7.0, by an independent validator', async () => {
    expect(document.openapi).toBe('3.0.3')
    expect(document.info.version).toBe('1.7.0')
    const result = await new Validator().validate(structuredClone(document))
    expect(result.errors ?? []).toEqual([])
    expect(result.valid).toBe(true)
  })

  it('lists every operation with its package, summary, example and errors', () => {
    for (const operation of OPERATION_TABLE.values()) {
      const path = document.paths[`/${operation.name}`]
      const form = operation.getOnly ? path.get : path.post
      expect([operation.name, form['x-minimum-package'], form.summary]).toEqual([
        operation.name,
        operation.minimumPackage,
        operation.summary,
      ])
      expect(form.description.length).toBeGreaterThan(0)
      expect(form['x-callers']).toEqual(operation.callers)
      expect(form['x-emits'] ?? []).toEqual(operation.emits)
      const always = ['200', '400', '429', '500', '503', ...(operation.callers.includes('anyone') ? [] : ['401'])]
      expect(Object.keys(form.responses)).toEqual(expect.arrayContaining(always))
      expect(form.responses['200'].content['application/json'].example).toMatchObject({ success: true })
      expect(Object.keys(form.responses['200'].content)).toEqual([
        'application/json',
        ...operation.formats.map((other) => other.contentType),
      ])
      expect(path.get !== undefined).toBe(operation.getOnly || operation.get !== undefined)
    }
    expect(Object.keys(document.paths).length).toBe(OPERATION_TABLE.size)
  })

  it('lists the other content types that exports really return', async () => {
    const key = await cloud.key('secret', 'test', { package: 'PRIME' })
    const { stores } = await cloud.ok(key, 'fetchStores')
    const forms = [...OPERATION_TABLE.values()].flatMap((operation) =>
      operation.formats.map((form) => ({ operation, ...form })),
    )
    expect(forms.map(({ operation, format }) => [operation.name, format])).toEqual(
      expect.arrayContaining([
        ['exportSalesData', 'csv'],
        ['exportEpcisEvents', 'ndjson'],
      ]),
    )
    for (const { operation, format, contentType } of forms) {
      const { storeId } = stores.find((store: Json) => store.package === 'PRIME')
      const answer = await cloud.call(key, operation.name, { ...operation.example, storeId, format })
      expect([operation.name, answer.status, answer.headers.get('content-type')?.split(';')[0]]).toEqual([
        operation.name,
        200,
        contentType,
      ])
    }
  })

  it('has examples that the operations accept', () => {
    for (const operation of OPERATION_TABLE.values()) {
      expect([operation.name, operation.request.safeParse(operation.example).success]).toEqual([operation.name, true])
    }
  })

  it('has example responses that match their schema', () => {
    const wrong = [...OPERATION_TABLE.values()].flatMap((operation) => {
      const path = document.paths[`/${operation.name}`]
      const answers = [
        [operation.response, (operation.getOnly ? path.get : path.post).responses['200']],
        ...(operation.get ? [[operation.get.response, path.get.responses['200']]] : []),
      ] as Json[]
      return answers.flatMap(([schema, { content }]) => {
        const parsed = schema.safeParse(content['application/json'].example)
        return parsed.success
          ? []
          : [
              `${operation.name}: ${JSON.stringify(parsed.error.issues)} in ${JSON.stringify(content['application/json'].example)}`,
            ]
      })
    })
    expect(wrong).toEqual([])
  })

  it('contains an example body of each error', () => {
    const cases = (Object.values(document.paths) as Json[])
      .flatMap((path) => Object.values(path))
      .flatMap((form: Json) => Object.entries(form.responses))
    const bodies = cases
      .filter(([status]) => status !== '200')
      .map(([status, response]) => [
        status,
        (response as Json).$ref ? document.components.responses[(response as Json).$ref.split('/').at(-1)] : response,
      ])
    for (const [status, { content }] of bodies as [string, Json][]) {
      const examples = Object.values(content['application/json'].examples) as Json[]
      expect(examples.length).toBeGreaterThan(0)
      for (const { value } of examples)
        expect([status, ERROR_STATUS[value.code as ErrorCode], typeof value.error, typeof value.requestId]).toEqual([
          status,
          Number(status),
          'string',
          'string',
        ])
    }
  })

  it('lists only refusal reasons that docs/reference/errors.md explains', () => {
    const page = readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8')
    const { content } = document.paths['/startCheckout'].post.responses['409']
    expect(Object.keys(content['application/json'].examples)).toEqual(
      expect.arrayContaining(['price_changed', 'item_mismatch']),
    )
    const unknown = [...OPERATION_TABLE.values()].flatMap(({ name, refusals }) =>
      refusals.filter((reason) => !page.includes(`\`${reason}\``)).map((reason) => `${name}: ${reason}`),
    )
    expect(unknown).toEqual([])
  })

  it('defines shared schemas once', () => {
    const answers = (name: string) => document.components.schemas[`${name}Response`]
    expect(answers('FetchProducts').properties.products.items).toEqual({ $ref: '#/components/schemas/Product' })
    expect(answers('FetchProduct').allOf[0]).toEqual({ $ref: '#/components/schemas/Product' })
    expect(answers('StartCheckout').allOf[0]).toEqual({ $ref: '#/components/schemas/Purchase' })
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(['Store', 'Product', 'Purchase', 'TransactionData', 'Error']),
    )
  })

  it('has no schema without a type', () => {
    const holes: string[] = []
    const hasType = (field: object) => ['type', '$ref', 'enum', 'allOf', 'anyOf', 'oneOf'].some((key) => key in field)
    const walk = (node: Json, path: string) => {
      if (typeof node !== 'object' || node === null) return
      if (node.type === 'object' && !node.properties && node.additionalProperties === undefined) holes.push(path)
      for (const [name, field] of Object.entries(node.properties ?? {}))
        if (!hasType(field as object)) holes.push(`${path}/${name}`)
      for (const [name, child] of Object.entries(node)) if (name !== 'example') walk(child, `${path}/${name}`)
    }
    walk(document.components.schemas, '')
    expect(holes, 'describe the fields, or a type: `Id` is one of requests only, answers have z.string()').toEqual([])
  })

  it('has a reference page that names every operation and loads nothing else', async () => {
    const { text, headers } = await cloud.get('/docs')
    for (const name of OPERATION_TABLE.keys()) expect(text).toContain(`id="${name}"`)
    const insertStore = text.slice(text.indexOf('id="insertStore"'), text.indexOf('id="updateStore"'))
    for (const field of ['registrationId', 'storeId']) expect(insertStore).toContain(`<code>${field}</code>`)
    expect(text).not.toMatch(/(src|href)="https?:/)
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  })
})
