// @module-tag extended
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { ensureBuilt } from '../support/built.ts'
import { temporaryFolder } from '../support/databases.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { freePort } from '../support/ports.ts'
import { ROOT } from './markdown-page.ts'
import { withPorts } from './page-commands.ts'

beforeAll(ensureBuilt)

/** The command blocks of the guide, in the order of the page. */
const BLOCKS = [
  ...readFileSync(join(ROOT, 'docs/guides/keys.md'), 'utf8').matchAll(/^```sh rehearsed\n([\s\S]*?)^```/gm),
].map((match) => match[1] ?? '')

/** All blocks take a quarter of a minute. CI runs the first two, which make the keys and check a copy of them. */
const RUN = IS_FULL_SIZE ? BLOCKS : BLOCKS.slice(0, 2)
const CHECKS = RUN.join('').match(/^untag keys check/gm)

it('each command of docs/guides/keys.md works, in the order of the page', async () => {
  expect(BLOCKS.length).toBe(11)
  const folder = temporaryFolder('keys-guide')
  const program = join(folder, 'bin')
  mkdirSync(program)
  writeFileSync(join(program, 'untag'), `#!/bin/sh\nexec ${process.execPath} ${join(ROOT, 'bin/untag.js')} "$@"\n`, {
    mode: 0o755,
  })
  // Uses free ports, because other tests may use the ports of the page.
  const ports = [await freePort(), await freePort(), await freePort()]
  const script = withPorts(
    [...RUN, ...(IS_FULL_SIZE ? [] : ['kill %1', 'wait'])].join('\n'),
    (port) => ports.shift() ?? port,
  )
  const shell = spawn('bash', ['-meuo', 'pipefail', '-c', script], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: `${program}:${process.env['PATH'] ?? ''}`,
      UNTAG_LOG_LEVEL: 'warn',
    },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => void (printed += chunk))
  const [code] = (await once(shell, 'exit')) as [number | null]
  expect(code, printed).toBe(0)
  expect(printed.match(/belong to this database/g)).toHaveLength(CHECKS?.length ?? 0)
  expect(faultsIn(printed)).toEqual([])
})

/**
 * Lines that report a failure: answers of the API, and log entries of level error (50) or fatal (60). Warnings may
 * contain the word "error": an agent warns when it loses the cloud, as at the end of the guide, where both stop.
 */
function faultsIn(printed: string): string[] {
  return printed.split('\n').filter((line) => /"level":[56]0\b|"success": ?false|"error":/.test(line))
}

it('finds failures in what the commands print, and ignores warnings', () => {
  const warning = '{"level":40,"part":"edge","why":"socket error","msg":"the cloud is offline"}'
  const faults = ['{"level":50,"msg":"the link failed"}', '{"success":false,"error":"store not found"}']
  expect(faultsIn([warning, ...faults, 'ready {}'].join('\n'))).toEqual(faults)
})
