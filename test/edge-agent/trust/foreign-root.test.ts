import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { enrolAgent } from '../../../bin/commands/edge-enrol.ts'
import { realPlatform } from '../../../host/platform.ts'
import type { Json } from '../../support/cloud.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../support/test-agent.ts'

/** The server is an attacker between agent and cloud, or has taken over the cloud's name. It may answer anything. */
describe('enrolment at a cloud that did not create the code', () => {
  let genuine: { shop: Shop; agent: TestAgent }
  let foreign: { shop: Shop; agent: TestAgent }
  let server: Server
  let answer: Json
  let asked: string[]
  let data: string

  beforeAll(async () => {
    const cloudWithAgent = async () => {
      const shop = await openShop('sqlite')
      return { shop, agent: await enrolTestAgent(shop) }
    }
    genuine = await cloudWithAgent()
    foreign = await cloudWithAgent()
    server = createServer((request, response) => {
      asked.push(request.url ?? '')
      request.resume()
      request.on('end', () =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer)),
      )
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
  })
  afterAll(async () => {
    server.close()
    await genuine.shop.stop()
    await foreign.shop.stop()
  })
  beforeEach(() => {
    data = temporaryFolder('foreign-root')
    asked = []
  })
  afterEach(() => rmSync(data, { recursive: true, force: true }))

  const enrolWith = async (body: Json) => {
    answer = body
    const { code } = await genuine.shop.ok('createEnrolmentCode', { storeId: genuine.shop.storeId })
    const { port } = server.address() as AddressInfo
    return enrolAgent({ code, cloud: `http://127.0.0.1:${port}/api/v1`, data }, realPlatform())
  }
  /** Returns the content of all files in the data folder. */
  const stored = () =>
    readdirSync(data, { recursive: true, encoding: 'utf8' })
      .map((file) => readFileSync(join(data, file), 'latin1'))
      .join('\n')

  const NO_CASES: [string, () => Json, RegExp][] = [
    ['its own root and documents', () => foreign.agent.enrolment, /did not create this code/],
    [
      'its own root beside documents of the genuine cloud',
      () => ({ ...genuine.agent.enrolment, root: foreign.agent.enrolment['root'] }),
      /did not create this code/,
    ],
    [
      'the genuine root beside its own documents',
      () => ({ ...foreign.agent.enrolment, root: genuine.agent.enrolment['root'] }),
      /not signed by its root/,
    ],
    [
      'the genuine root and no documents',
      () => ({ ...genuine.agent.enrolment, documents: [] }),
      /not signed by its root/,
    ],
    ['no root', () => ({ ...genuine.agent.enrolment, root: undefined }), /sent no enrolment/],
    ['a root that is no key', () => ({ ...genuine.agent.enrolment, root: { x: 7 } }), /sent no enrolment/],
    ['documents that are no list', () => ({ ...genuine.agent.enrolment, documents: 'x' }), /sent no enrolment/],
    ['a text that is no answer', () => 'hello', /no answer from/],
  ]

  it.each(NO_CASES)(
    'fails with a clear error and stores nothing if the cloud answers with %s',
    async (_, body, why) => {
      await expect(enrolWith(body())).rejects.toThrow(why)
      expect(asked).toEqual(['/api/v1/enrolEdgeAgent'])
      expect(existsSync(join(data, 'agent.json'))).toBe(false)
      expect(existsSync(join(data, 'ledger.db'))).toBe(false)
      for (const { agent } of [genuine, foreign]) expect(stored()).not.toContain(agent.enrolment['root'].x)
    },
  )

  it('stores no document of a foreign cloud that is mixed with genuine ones', async () => {
    const documents = [...foreign.agent.enrolment['documents'], ...genuine.agent.enrolment['documents']]
    const identity = await enrolWith({ ...genuine.agent.enrolment, documents })
    expect(identity.rootX).toBe(genuine.agent.enrolment['root'].x)
    const db = new Sqlite(join(data, 'ledger.db'), { readonly: true })
    const kept = db.prepare('SELECT jws FROM document').pluck().all() as string[]
    db.close()
    expect(kept.length).toBeGreaterThan(1)
    expect(kept.filter((jws) => !genuine.agent.enrolment['documents'].includes(jws))).toEqual([])
    for (const jws of foreign.agent.enrolment['documents']) expect(stored()).not.toContain(jws)
  })
})
