import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { chooseOutput, printFailure, printReady, printTable } from '../../host/output.ts'
import { cloudLines, edgeLines, listenLines } from '../../host/ready-lines.ts'

let written = ''
const isTerminal = process.stdout.isTTY

beforeEach(() => {
  written = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    written += String(text)
    return true
  })
})
afterEach(() => {
  vi.restoreAllMocks()
  chooseOutput([], {})
  process.stdout.isTTY = isTerminal
})

const READY = { baseUrl: 'http://127.0.0.1:8080/api/v1', mqttUrl: 'mqtt://127.0.0.1:1883' }
const printCloud = () =>
  printReady(
    READY,
    cloudLines(
      { ...READY, consoleUrl: 'http://localhost:8080/console' },
      { data: 'var/cloud', databaseUrl: undefined },
    ),
  )

describe('a command that serves', () => {
  it('prints addresses and next steps in a terminal', () => {
    process.stdout.isTTY = true
    printCloud()
    expect(written).toMatch(/^ {2}API +http:\/\/127\.0\.0\.1:8080\/api\/v1$/m)
    expect(written).toMatch(/^ {2}Console +http:\/\/localhost:8080\/console$/m)
    expect(written).toContain('untag keys create --data var/cloud --account NAME')
    expect(written).not.toContain('ready {')
  })

  it('prints the same line as before for programs: without a terminal, and with --json', () => {
    process.stdout.isTTY = false
    printCloud()
    expect(written).toBe(`ready ${JSON.stringify(READY)}\n`)
    written = ''
    process.stdout.isTTY = true
    chooseOutput(['--json'], {})
    printCloud()
    expect(written).toBe(`${JSON.stringify({ ready: READY })}\n`)
  })

  it('names the pages of an agent, and the secret that a receiver needs', () => {
    const agent = edgeLines({ url: 'http://127.0.0.1:8090', agentId: 'agt_1', storeId: 'st_1' }, 'var/edge')
    expect(agent.join('\n')).toMatch(/Agent agt_1 of store st_1[^]*8090\/station[^]*edge link --data var\/edge/)
    expect(listenLines('http://127.0.0.1:4242/', 'whsec_x', '*').join('\n')).toMatch(
      /all events to http:\/\/127\.0\.0\.1:4242\/[^]*export WEBHOOK_SECRET=whsec_x[^]*untag trigger/,
    )
    const database = { data: 'var/cloud', databaseUrl: 'postgres://untag:hunter2@db/untag' }
    expect(cloudLines({ ...READY, consoleUrl: '' }, database).join('\n')).not.toContain('hunter2')
  })
})

describe('a list', () => {
  const table = {
    head: ['ID', 'STATE', 'NAME'],
    rows: [
      ['key_1', 'active', 'till'],
      ['key_22', 'revoked', 'active \u001b[2J'],
    ],
    empty: 'there are no keys',
  }

  it('has a head and coloured states in a terminal', () => {
    process.stdout.isTTY = true
    vi.stubEnv('FORCE_COLOR', '1')
    printTable(false, {}, table)
    vi.unstubAllEnvs()
    expect(stripVTControlCharacters(written).split('\n')[0]).toBe('ID      STATE    NAME')
    expect(written).toContain('\u001b[31mrevoked\u001b[39m')
    expect(written).not.toContain('\u001b[2J')
  })

  it('has only rows for programs, and is JSON with --json', () => {
    process.stdout.isTTY = false
    printTable(false, {}, table)
    expect(written.split('\n')[0]).toBe('key_1   active   till')
    written = ''
    printTable(true, { keys: [] }, table)
    expect(written).toBe('{"keys":[]}\n')
    written = ''
    printTable(false, {}, { ...table, rows: [] })
    expect(written).toBe('there are no keys\n')
  })
})

describe('a command that fails because the disk is full', () => {
  it.each([
    [Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' }), 'the disk is full: free space'],
    [
      Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', path: '/data/agent.json' }),
      'the disk is full (/data/agent.json could not be written): free space',
    ],
    [
      new Error('the ledger cannot be opened', { cause: Object.assign(new Error('x'), { code: 'SQLITE_FULL' }) }),
      'the disk is full: free space',
    ],
  ])('says what to do: %#', (error, expected) => {
    let failed = ''
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      failed += String(text)
      return true
    })
    printFailure(error)
    expect(failed).toBe(`${expected} on the disk of the data folder (--data), then run the command again\n`)
    failed = ''
    chooseOutput(['--json'], {})
    printFailure(error)
    expect(JSON.parse(failed)).toMatchObject({ code: 'failed', error: expect.stringContaining(expected) })
  })
})
