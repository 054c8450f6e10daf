import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requestOfArguments } from '../../bin/api/request-of-arguments.ts'
import type { JsonSchema } from '../../policy/json-schema.ts'
import { isPrintable } from '../../policy/printable.ts'
import { describeApi } from '../../cloud/service/description/openapi.ts'
import { OPERATION_TABLE } from '../../cloud/service/operation-table.ts'
import { readSources } from '../house/sources.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { EXTENDED } from '../support/extended.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'

describe('arguments of untag api', () => {
  const schema: JsonSchema = {
    type: 'object',
    required: ['name'],
    properties: {
      name: { type: 'string', maxLength: 5 },
      price: { type: 'number' },
      count: { type: 'integer' },
      on: { type: 'boolean' },
      vat: { type: 'number', enum: [7, 19] },
      tags: { type: 'array', items: { type: 'string' } },
      address: { $ref: '#/components/schemas/Address' },
      lines: {
        type: 'array',
        items: { type: 'object', properties: { ean: { type: 'string' }, quantity: { type: 'integer' } } },
      },
      prices: { type: 'object', additionalProperties: { type: 'object', properties: { value: { type: 'number' } } } },
      limit: { anyOf: [{ type: 'number' }, { type: 'string', enum: ['all'] }] },
      gone: { type: 'string', nullable: true },
      file: { type: 'string', format: 'binary' },
    },
  }
  const components = { Address: { type: 'object', properties: { city: { type: 'string' } } } }
  const read = (...args: string[]) => requestOfArguments(['--name', 'x', ...args], schema, components)
  const faults = (...args: string[]): string[] => {
    try {
      read(...args)
    } catch (error) {
      return [...(error as { faults: string[] }).faults]
    }
    return []
  }

  it('are parsed by the schema of the operation', () => {
    expect(read('--price', '-1.5', '--count=3', '--on', '--vat', '19', '--gone', 'null')).toEqual({
      name: 'x',
      price: -1.5,
      count: 3,
      on: true,
      vat: 19,
      gone: null,
    })
    expect(read('--on', 'false', '--name', '007')).toEqual({ name: '007', on: false })
    expect(read('--tags', 'a', '--tags', 'b', '--address.city', 'Berlin', '--prices.st_1.value', '2')).toEqual({
      name: 'x',
      tags: ['a', 'b'],
      address: { city: 'Berlin' },
      prices: { st_1: { value: 2 } },
    })
    expect(read('--lines', '{"ean":"1"}', '--lines', '{"ean":"2"}').lines).toEqual([{ ean: '1' }, { ean: '2' }])
    expect(read('--lines.0.ean', '1', '--lines.1.ean', '2', '--lines.0.quantity', '4').lines).toEqual([
      { ean: '1', quantity: 4 },
      { ean: '2' },
    ])
    expect(read('--lines', '[{"ean":"1"}]', '--limit', 'all').lines).toEqual([{ ean: '1' }])
    expect([read('--limit', '5').limit, read('--limit', 'all').limit]).toEqual([5, 'all'])
  })

  it('override the JSON of --json, inline or from a file', () => {
    const folder = temporaryFolder('json')
    writeFileSync(join(folder, 'a.json'), '{"count":1,"price":2}')
    expect(read('--json', `@${join(folder, 'a.json')}`, '--price', '3')).toEqual({ name: 'x', count: 1, price: 3 })
    expect(requestOfArguments(['--json', '{"name":"y"}'], schema, components)).toEqual({ name: 'y' })
    const { file } = read('--file', `@${join(folder, 'a.json')}`) as { file: File }
    expect([file.name, file.size]).toEqual(['a.json', 21])
  })

  it('are rejected with all faults in one error', () => {
    expect(
      faults('--price', 'much', '--count', '1.5', '--vat', '8', '--nme', 'x', 'stray', '--json', '[]', '--name'),
    ).toEqual([
      '"stray" is not a field: fields start with --',
      '--json must be a JSON object',
      '--price must be a number, not "much"',
      '--count must be a whole number, not "1.5"',
      '--vat must be one of 7, 19, not "8"',
      'there is no field --nme; did you mean --name?',
      '--name needs a value',
    ])
    expect(faults('--file', '@/nowhere')).toEqual(['--file must be a file: /nowhere cannot be read: ENOENT'])
    expect(faults('--prices.__proto__.value', '1')).toEqual(['there is no field --prices.__proto__.value'])
    expect(faults('--lines.9999.ean', '1')).toHaveLength(1)
    expect(() => requestOfArguments([], schema, components)).toThrow('--name is needed')
    // A wrong field is not missing as well.
    expect(() => requestOfArguments(['--name'], schema, components)).toThrow(/^--name needs a value$/)
  })
})

it('untag api loads only one file without imports from the cloud', () => {
  const sources = new Map(
    readSources(['bin', 'host', 'clients', 'cloud', 'policy']).map((source) => [source.path, source]),
  )
  const loaded = new Set<string>()
  const visit = (path: string) => {
    if (loaded.has(path)) return
    loaded.add(path)
    for (const next of sources.get(path)?.imports ?? []) if (!next.isType) visit(next.path)
  }
  visit('bin/commands/api.ts')
  expect([...loaded].filter((path) => path.startsWith('cloud/')).sort()).toEqual([
    'cloud/service/description/fields.ts',
  ])
})

describe('untag api', () => {
  let cloud: RunningProcess
  let env: NodeJS.ProcessEnv
  let folder: string
  const api = (...args: string[]) => runProcess(['api', ...args], env)

  beforeAll(async () => {
    folder = temporaryFolder('api-command')
    cloud = await startProcess(['cloud', '--port', '0', '--mqtt-port', '0', '--data', folder])
    const { stdout } = await runProcess(['keys', 'create', '--account', 'reader', '--data', folder])
    env = { UNTAG_KEY: stdout.trim(), UNTAG_API: String(cloud.ready['baseUrl']) }
  })
  afterAll(() => cloud.stop())

  it('lists and describes every operation without a network', EXTENDED, async () => {
    const nobody = { UNTAG_API: 'http://127.0.0.1:9/api/v1', UNTAG_KEY: '' }
    const { code, stdout } = await runProcess(['api', '--list'], nobody)
    expect(code).toBe(0)
    for (const { name, summary } of OPERATION_TABLE.values())
      expect(stdout).toMatch(
        new RegExp(`^  ${name} +${summary.slice(0, 12).replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`, 'm'),
      )
    const help = await runProcess(['api', 'verifyProtectedItem', '--help'], nobody)
    expect(help).toMatchObject({ code: 0, stderr: '' })
    for (const line of [
      /--deviceId ID +needed/,
      /--explain BOOLEAN/,
      /Package GROW; called with a secret key, an agent’s login/,
      /authorized: boolean/,
      /--base-url URL/,
    ])
      expect(help.stdout).toMatch(line)
    expect(await runProcess(['api', '--help'], nobody)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('untag api OPERATION --field value'),
    })
  })

  it('calls operations and prints their responses', async () => {
    const { stores } = JSON.parse((await api('fetchStores', '--city', 'hamburg')).stdout) as Json
    expect(stores[0].address.city).toBe('Hamburg')
    const device = JSON.parse(
      (
        await api(
          'registerDevice',
          '--storeId',
          stores[0].storeId,
          '--deviceType',
          'exit_gate',
          '--name',
          'Tor 3',
          '--supportedTechnologies',
          'am',
          '--supportedTechnologies',
          'rf',
        )
      ).stdout,
    ) as Json
    expect(device).toMatchObject({ name: 'Tor 3', supportedTechnologies: ['am', 'rf'] })
    const session = JSON.parse((await api('checkIn', '--storeId', stores[0].storeId)).stdout) as Json
    const { products } = JSON.parse(
      (await api('fetchProducts', '--storeId', stores[0].storeId, '--limit', '2')).stdout,
    ) as Json
    expect(products.length).toBe(2)
    const bought = await api(
      'startCheckout',
      '--sessionId',
      session.sessionId,
      '--items.0.ean',
      products[0].ean,
      '--items.0.quantity',
      '2',
    )
    expect(JSON.parse(bought.stdout)).toMatchObject({ success: true, total: Math.round(products[0].price * 200) / 100 })
  })

  it('repeats an operation with the same --idempotency-key', EXTENDED, async () => {
    const { stores } = JSON.parse((await api('fetchStores')).stdout) as Json
    const args = ['--storeId', stores[0].storeId, '--idempotency-key', 'once']
    const [first, again] = [await api('checkIn', ...args), await api('checkIn', ...args)]
    expect(again.stdout).toBe(first.stdout)
  })

  it('prints API errors on stderr with exit code 1, and wrong usage with 2', async () => {
    expect(await api('fetchStore', '--storeId', 'nobody')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^no such store \(404, not-found\)\n {2}request req_/),
    })
    expect(await api('fetchStore')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/--storeId is needed\nuntag api fetchStore --help shows the fields/),
    })
    expect((await api('fetchStore', '--storeId', 'x', '--foo', '1')).stderr).toMatch(
      /^there is no field --foo\nuntag api fetchStore --help shows the fields/,
    )
    expect((await api('fetchStore', '--help')).stdout).toMatch(/--storeId ID +needed/)
  })

  it('escapes what the cloud repeats in an error', async () => {
    const { stderr } = await api('fetchStore', '--json', '{"storeId":"st_1","x\\u001b[2J\\u202e":1}')
    expect(stderr).toContain('unknown field \\"x\\u001b[2J\\u202e\\"')
    expect(stderr.split('\n').filter((line) => !isPrintable(line))).toEqual([])
  })

  it('prints errors of keys, of fields and of names', EXTENDED, async () => {
    expect(await api('fetchStores', '--key', 'untag_test_sk_no')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('401, unauthenticated'),
    })
    expect(await api('fetchStores', '--radius', '0')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('radius: '),
    })
    expect(await api('fetchStoer')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no operation fetchStoer'),
    })
    expect(await api('Stores')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean fetchStores or'),
    })
    expect(await api()).toMatchObject({ code: 2 })
  })

  it('has no option with the name of a field of an operation', () => {
    const { operations } = describeApi(OPERATION_TABLE, 'https://shop.example/api/v1')
    const own = new Set(['key', 'base-url', 'idempotency-key', 'json', 'help', 'list'])
    expect(
      operations.flatMap(({ operation, request }) =>
        Object.keys(request.properties ?? {})
          .filter((name) => own.has(name))
          .map((name) => `${operation.name}.${name}`),
      ),
    ).toEqual([])
  })
})
