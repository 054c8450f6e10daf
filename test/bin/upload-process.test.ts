import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hostileFiles } from '../bench/catalogue/hostile-files.ts'
import { realPlatform } from '../../host/platform.ts'
import { uploadProcesses, type UploadProcesses } from '../../host/upload-process.ts'
import { READ_PRODUCTS } from '../../cloud/shop/catalogue/import/read-products.ts'
import { Failure } from '../../cloud/platform/foundation/failure.ts'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import { UPLOAD_JOBS } from '../../cloud/service/upload-jobs.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { temporaryFolder } from '../support/databases.ts'
import { EXTENDED } from '../support/extended.ts'

const SCRIPT = join(ROOT, 'dist/host/upload-child.js')
const CSV = Buffer.from('ean,name,price,vat\n4012345678901,Milch,1.99,7')
const JOB = { name: 'read-products', work: () => Promise.reject(new Error('runs in this process')) }

let uploads: UploadProcesses
const logged: [message: string, fields: object][] = []
const note = (fields: object, message: string) => void logged.push([message, fields])
const log: Log = { info: note, warn: note, error: note }
const open = (options: { script?: string; withinMs?: number } = {}) =>
  uploadProcesses({ platform: realPlatform(), log, script: SCRIPT, ...options })
/** Code of the failure and of its detail. */
const outcome = (work: Promise<unknown>) =>
  work.then(
    () => 'read',
    (error: unknown) => {
      if (!(error instanceof Failure)) throw error
      return [error.code, error.extras.details?.[0]?.path, error.extras.details?.[0]?.code].join(' ')
    },
  )
/** A program that takes the place of the reader. */
function program(code: string): string {
  const file = join(temporaryFolder('upload'), 'child.mjs')
  writeFileSync(file, `process.send({ kind: 'ready' })\nprocess.on('message', (message) => { ${code} })\n`)
  return file
}

beforeAll(() => {
  ensureBuilt()
  uploads = open()
})
afterAll(() => uploads.stop())

describe('the processes that read uploads', () => {
  it('read a file as this process does, and pass its failure on', async () => {
    expect(await uploads.run(JOB, CSV, 'file')).toEqual(await READ_PRODUCTS.work(CSV, 'file'))
    const broken = Buffer.from('ean,name\n1,2')
    const [here, there] = await Promise.all([
      READ_PRODUCTS.work(broken, 'file').catch((error: unknown) => error),
      uploads.run(JOB, broken, 'file').catch((error: unknown) => error),
    ])
    expect(there).toBeInstanceOf(Failure)
    expect(there).toEqual(here)
  })

  it('know each job by its name', async () => {
    for (const [name, load] of UPLOAD_JOBS) expect((await load()).name).toBe(name)
    const unknown = { name: 'unknown', work: JOB.work }
    await expect(uploads.run(unknown, CSV, 'file')).rejects.toThrow('there is no job unknown')
  })

  it('read files of several pieces, several at once, and an empty one', async () => {
    const rows = Array.from({ length: 9_000 }, (_, i) => `${4_000_000_000_000 + i},${'x'.repeat(40)},1,7`)
    const large = Buffer.from(['ean,name,price,vat', ...rows].join('\n'))
    const [first, second, empty] = await Promise.all([
      uploads.run(READ_PRODUCTS, large, 'file'),
      uploads.run(READ_PRODUCTS, CSV, 'file'),
      outcome(uploads.run(JOB, new Uint8Array(), 'file')),
    ])
    expect([first.products.length, second.products.length, empty]).toEqual([
      9_000,
      1,
      'invalid-argument file empty_file',
    ])
  })

  it.each([
    ['throws', 'throw new Error()'],
    ['exits', 'process.exit(0)'],
    ['aborts, as with a full heap', 'process.abort()'],
    ['closes its channel', 'process.disconnect()'],
  ])('cost one request if a file ends one: it %s', (_, code) => costsOneRequest(code))

  it('cost one request if a file ends one: it fills its heap with one array', EXTENDED, () =>
    costsOneRequest('const all = []; for (;;) all.push(new Array(1e6).fill(0.5))'),
  )

  async function costsOneRequest(code: string): Promise<void> {
    const broken = open({ script: program(code) })
    expect(await outcome(broken.run(JOB, CSV, 'snapshot'))).toBe('invalid-argument snapshot needs_too_much_memory')
    expect(await outcome(broken.run(JOB, Buffer.alloc(1_000_000), 'file'))).toBe(
      'invalid-argument file needs_too_much_memory',
    )
    broken.stop()
    expect(await outcome(uploads.run(JOB, CSV, 'file'))).toBe('read')
  }

  it('are killed at the time limit', async () => {
    const slow = open({ script: program('for (;;);'), withinMs: 300 })
    expect(await outcome(slow.run(JOB, CSV, 'file'))).toBe('invalid-argument file takes_too_long')
    slow.stop()
  })

  it('answer 503 and log it if they do not start', async () => {
    const missing = open({ script: '/nowhere/child.js' })
    expect(await outcome(missing.run(JOB, CSV, 'file'))).toBe('unavailable  ')
    expect(logged.at(-1)?.[0]).toContain('does not start')
    missing.stop()
  })

  it('are used again, and get none of the secrets of the environment', async () => {
    process.env['UNTAG_TEST_SECRET'] = 'secret of the cloud'
    const reply = `process.send({ kind: 'result', result: [process.pid, Object.values(process.env)] })`
    const same = open({ script: program(`if (!(message instanceof Uint8Array)) ${reply}`) })
    const job = { name: 'x', work: () => Promise.resolve<[number, string[]]>([0, []]) }
    const [first, second] = [await same.run(job, CSV, 'file'), await same.run(job, CSV, 'file')]
    delete process.env['UNTAG_TEST_SECRET']
    expect(second[0]).toBe(first[0])
    expect(first[0]).not.toBe(process.pid)
    expect(first[1]).not.toContain('secret of the cloud')
    same.stop()
  })

  it.each(Object.keys(hostileFiles()))('refuse or read in time: %s', EXTENDED, async (name) => {
    const file = hostileFiles({ short: true })[name]?.() ?? Buffer.alloc(0)
    expect(await outcome(uploads.run(JOB, file, 'file'))).toMatch(/^(?:read|invalid-argument file \w+)$/)
  })
})

describe('the command `untag cloud`', () => {
  it('reads uploads in such processes', () => {
    expect(readFileSync(join(ROOT, 'bin/commands/cloud.ts'), 'utf8')).toContain('uploads = uploadProcesses(')
  })
})
