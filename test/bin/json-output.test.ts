// @module-tag extended
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { spawn } from 'node:child_process'
import { runProcess } from '../support/processes.ts'
import { ROOT } from '../house/sources.ts'

const jsonLines = (text: string): Json[] => text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))

describe('--json', () => {
  it('is an option of every command, and of the list of commands', async () => {
    const { code, stdout } = await runProcess(['--help', '--json'])
    const { commands } = JSON.parse(stdout) as Json
    expect(code).toBe(0)
    expect(commands.length).toBeGreaterThan(30)
    const without = commands.filter((c: Json) => !c.options.some((o: Json) => o.option === '--json'))
    // `untag api` parses --json itself, because with a value it is the request.
    expect(without.map((c: Json) => c.command)).toEqual(['untag api'])
  })

  it.each([
    ['an unknown command', ['nonsense', '--json'], 2, 'wrong-usage', /no command "nonsense"/],
    ['a group', ['keys', '--json'], 2, 'wrong-usage', /second word/],
    ['a missing option', ['keys', 'create', '--json'], 2, 'wrong-usage', /--account/],
    ['an unknown option of a server', ['cloud', '--json', '--bogus'], 2, 'wrong-usage', /no option --bogus/],
    ['a missing word', ['trigger', '--json'], 2, 'wrong-usage', /EVENT is missing/],
    ['an unknown operation', ['api', 'fetchStore5', '--json'], 2, 'wrong-usage', /fetchStore5/],
    [
      'a folder without data',
      ['edge', 'link', '--data', join(temporaryFolder('none'), 'x'), '--json'],
      1,
      'failed',
      /agent/,
    ],
    [
      'a cloud that does not answer',
      ['api', 'fetchStores', '--json', '--key', 'k', '--base-url', 'http://127.0.0.1:1/api/v1'],
      1,
      /.+/,
      /./,
    ],
  ] as const)('writes the error as JSON to stderr: %s', async (_name, args, exit, code, error) => {
    const ended = await runProcess([...args])
    expect([ended.code, ended.stdout]).toEqual([exit, ''])
    expect(jsonLines(ended.stderr)).toEqual([
      expect.objectContaining({ code: expect.stringMatching(code), error: expect.stringMatching(error) }),
    ])
  })

  it('prints each line of a long-running command as an object', async () => {
    const child = spawn(process.execPath, [join(ROOT, 'bin/untag.js'), 'simulate', 'relay-board', '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const first = await new Promise<string>((resolve) => child.stdout.once('data', (bytes) => resolve(String(bytes))))
    child.kill('SIGTERM')
    expect(jsonLines(first)).toEqual([{ ready: { tcp: expect.stringMatching(/^127\.0\.0\.1:\d+$/) } }])
  })
})
