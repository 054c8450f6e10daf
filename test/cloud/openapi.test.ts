import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, expect, it, describe } from 'vitest'
import { OPERATION_TABLE } from '../../cloud/operations/table.ts'
import { startTestCloud, type Json, type TestCloud } from '../support/cloud.ts'

describe('the description of the API', () => {
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
      expect([operation.name, form['x-minimum-package'], form.summary]).toEqual([operation.name, operation.minimumPackage, operation.summary])
      expect(Object.keys(form.responses)).toEqual(expect.arrayContaining(['200', '400', '401', '403', '404', '409', '429']))
      expect(path.get !== undefined).toBe(operation.getOnly || operation.get !== undefined)
    }
    expect(Object.keys(document.paths).length).toBe(OPERATION_TABLE.size)
  })

  it('has examples that the operations accept', () => {
    for (const operation of OPERATION_TABLE.values()) {
      expect([operation.name, operation.request.safeParse(operation.example).success]).toEqual([operation.name, true])
    }
  })

  it('is told to nobody’s surprise: no schema is a hole', () => {
    const holes: string[] = []
    const walk = (node: Json, path: string) => {
      if (typeof node !== 'object' || node === null) return
      if (node.type === 'object' && !node.properties && node.additionalProperties === undefined) holes.push(path)
      for (const [name, child] of Object.entries(node)) if (name !== 'example') walk(child, `${path}/${name}`)
    }
    walk(document.components.schemas, '')
    expect(holes).toEqual([])
  })

  it('has a reference page that names every operation and asks nobody else for anything', async () => {
    const { text, headers } = await cloud.get('/docs')
    for (const name of OPERATION_TABLE.keys()) expect(text).toContain(`id="${name}"`)
    const insertStore = text.slice(text.indexOf('id="insertStore"'), text.indexOf('id="updateStore"'))
    for (const field of ['registrationId', 'storeId']) expect(insertStore).toContain(`<code>${field}</code>`)
    expect(text).not.toMatch(/(src|href)="https?:/)
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  })
})
