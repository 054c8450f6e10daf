// @module-tag extended
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureBuilt, ROOT } from '../../support/built.ts'
import { startTestCloud, type TestCloud } from '../../support/cloud.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { docstringExamples } from './docstring-examples.ts'

const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const STRICT = [
  '--strict',
  '--target',
  'es2022',
  '--module',
  'nodenext',
  '--moduleResolution',
  'nodenext',
  '--types',
  'node',
]

const PROGRAM = `
import { createClient, UntagError } from 'untag/client'
const api = createClient({ baseUrl: process.env['API'] ?? '', key: process.env['KEY'] })
const { stores } = await api.fetchStores({ city: 'Hamburg' })
const names: string[] = []
for await (const product of api.pages('fetchProducts', { storeId: stores[0]?.storeId, limit: 50 })) names.push(product.name)
const refused = await api.fetchStore({ storeId: 'st_nobody' }).catch((error: unknown) => error)
console.log(JSON.stringify({ stores: stores.length, many: names.length > 50, code: refused instanceof UntagError && refused.code }))
`
/** All TypeScript examples of a page, from top to bottom. */
const onPage = (page: string) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```/gm)].map((m) => m[1] ?? '').join('\n')
/** The examples of `untag/agent-client`; test/clients/typescript/agent-client.test.ts runs them. */
const AGENT_EXAMPLES = [
  "import { AgentError, createAgentClient } from 'untag/agent-client'",
  "const [credential = '', deviceId = '', operatorId = '', pin = '', receipt = ''] = process.argv",
  "const agent = createAgentClient({ baseUrl: '', credential })",
  ...docstringExamples('clients/typescript/agent-client.ts').map(({ code }) => `{\n${code}\n}`),
].join('\n')
const WRONG = `
import { createAgentClient } from 'untag/agent-client'
import { createClient } from 'untag/client'
const api = createClient({ baseUrl: '' })
await api.fetchStores({ citty: 'Hamburg' })
await api.fetchStore({})
await api.noSuchOperation({})
const price: string = (await api.fetchProduct({ barcode: '4012345678901' })).price
const agent = createAgentClient({ baseUrl: '' })
await agent.authorize({ deviceId: 'dev_1', protectionAction: 'fly' })
const outcome: string = (await agent.authorize({ deviceId: 'dev_1', protectionAction: 'detach_hard_tag' })).outcome
`

describe('untag as a package', () => {
  let cloud: TestCloud
  let server: Server
  let key: string
  let folder: string
  let api: string

  beforeAll(async () => {
    ensureBuilt()
    cloud = await startTestCloud('sqlite')
    key = await cloud.key('secret')
    server = createServer(getRequestListener(cloud.cloud.app.fetch))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    api = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`
    folder = temporaryFolder('package')
    mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
    symlinkSync(ROOT, join(folder, 'node_modules/untag'))
    symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'))
    symlinkSync(join(ROOT, 'node_modules/undici-types'), join(folder, 'node_modules/undici-types'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  })
  afterAll(async () => {
    server.closeAllConnections()
    server.close()
    await cloud.stop()
  })

  /** Runs in another process, so that this process can answer its requests. */
  const run = (file: string) =>
    new Promise<string>((resolve, reject) => {
      execFile(
        process.execPath,
        [file],
        { cwd: folder, env: { ...process.env, API: api, KEY: key } },
        (error, stdout, stderr) => (error ? reject(new Error(stderr)) : resolve(stdout)),
      )
    })
  const compile = (file: string, ...more: string[]) =>
    spawnSync(process.execPath, [TSC, ...STRICT, ...more, file], { cwd: folder, encoding: 'utf8' }).stdout

  it('compiles in another project without skipLibCheck, rejects wrong calls, and runs', async () => {
    writeFileSync(join(folder, 'program.ts'), PROGRAM)
    writeFileSync(join(folder, 'page.ts'), onPage('docs/guides/api.md'))
    writeFileSync(join(folder, 'receiver.ts'), onPage('docs/guides/webhooks.md'))
    writeFileSync(join(folder, 'agent.ts'), AGENT_EXAMPLES)
    writeFileSync(join(folder, 'till.ts'), onPage('docs/guides/agent-api.md'))
    expect(onPage('docs/guides/api.md')).toContain('createClient')
    writeFileSync(join(folder, 'wrong.ts'), WRONG)
    const faults = compile('program.ts', 'page.ts', 'receiver.ts', 'agent.ts', 'till.ts', 'wrong.ts')
    expect(faults.match(/^\S+\.ts\(\d+/gm)).toEqual([5, 6, 7, 8, 10, 11].map((line) => `wrong.ts(${line}`))
    expect(JSON.parse(await run('program.js'))).toEqual({ stores: 1, many: true, code: 'not-found' })
  })

  it('installs from a checkout with npm, and runs the program of the page as written', async () => {
    const project = temporaryFolder('shop')
    writeFileSync(join(project, 'package.json'), '{}')
    writeFileSync(join(project, 'shop.mjs'), onPage('docs/guides/api.md'))
    execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', ROOT], { cwd: project, stdio: 'pipe' })
    const said = await new Promise<string>((resolve, reject) => {
      const env = { ...process.env, UNTAG_API: api, UNTAG_KEY: key }
      execFile(process.execPath, ['shop.mjs'], { cwd: project, env }, (error, stdout, stderr) =>
        error || stderr !== '' ? reject(new Error(stderr)) : resolve(stdout),
      )
    })
    expect(said).toMatch(/^.+ \d+(?:\.\d+)?$/m)
  })

  it('has an OpenAPI document from which a generator creates a working client', async () => {
    const document = join(folder, 'openapi.json')
    const { openapi, servers, ...rest } = (await cloud.get('/openapi.json')).body
    writeFileSync(document, JSON.stringify({ openapi, ...rest, servers: [{ url: api }] }))
    expect(servers).toEqual([{ url: 'https://shop.example/api/v1' }])
    execFileSync(
      process.execPath,
      [
        join(ROOT, 'node_modules/swagger-typescript-api/dist/cli.mjs'),
        'generate',
        '-p',
        document,
        '-o',
        folder,
        '-n',
        'generated.ts',
        '--extract-request-body',
        '--silent',
      ],
      { cwd: folder, encoding: 'utf8' },
    )
    writeFileSync(
      join(folder, 'outside.ts'),
      `import { Api } from './generated.js'
const api = new Api({ baseUrl: process.env['API'] ?? '', baseApiParams: { headers: { authorization: 'Bearer ' + process.env['KEY'] } } })
const { data: { stores } } = await api.fetchStores.fetchStores({ city: 'Hamburg' })
const { data: { products } } = await api.fetchProducts.fetchProducts({ storeId: stores[0]?.storeId ?? '', limit: 3 })
const { data: session } = await api.checkIn.checkIn({ storeId: stores[0]?.storeId ?? '' })
const { data: purchase } = await api.startCheckout.startCheckout({ sessionId: session.sessionId, items: [{ ean: products[0]?.ean ?? '', quantity: 1 }] })
const older = await api.fetchStores.fetchStoresOlder({ city: 'Hamburg' })
console.log(JSON.stringify({ total: purchase.total === products[0]?.price, currency: purchase.receipt.currency, older: older.data.data.length }))
`,
    )
    expect(compile('outside.ts', '--lib', 'es2022,dom,dom.iterable')).toBe('')
    expect(JSON.parse(await run('outside.js'))).toEqual({ total: true, currency: 'EUR', older: 1 })
  })
})
