import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { tryTool } from '../verification/tools.ts'
import { afterAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/databases.ts'
import { pagesIn, ROOT } from './markdown-page.ts'
import {
  codeBlocksOf,
  faultsOfCall,
  inlineCodeOf,
  portsIn,
  programsIn,
  untagCallsIn,
  withPorts,
  type CodeBlock,
} from './page-commands.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { EXTENDED } from '../support/extended.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'

const PAGES = ['README.md', 'CONTRIBUTING.md', 'docs/reference/tests.md', ...pagesIn('docs')]
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

const blocks = PAGES.flatMap(codeBlocksOf)
const shellBlocks = blocks.filter(({ info }) => ['sh', 'sh untried', 'sh rehearsed'].includes(info))
const untried = shellBlocks.filter(({ info }) => info === 'sh untried')
const place = ({ page, line }: CodeBlock) => `${page}:${line}`

/** True for lines with an npm command. CI and test/bin run these commands; this file checks only that they exist. */
const isNpm = (line: string) => /^npm\b/.test(line) || line.trim() === ''
/** The `sh` blocks of each page, which are one session: a later block may use what an earlier one set. */
const sessions = PAGES.map((page) => ({
  page,
  text: shellBlocks
    .filter((block) => block.page === page && block.info === 'sh')
    .filter(({ text }) => !text.split('\n').every((line) => isNpm(line)))
    .map(({ text }) => text)
    .join(''),
})).filter(({ text }) => text !== '')

/** The sessions of CI: with those of most programs first, each that starts a program that no session before it starts. */
function sample(): typeof sessions {
  const started = new Set<string>()
  return sessions
    .map((session) => ({ ...session, programs: programsIn(session.text) }))
    .sort((a, b) => b.programs.length - a.programs.length)
    .filter(({ programs }) => {
      const isNew = programs.length === 0 || programs.some((program) => !started.has(program))
      for (const program of programs) started.add(program)
      return isNew
    })
}

/** Each session has a network of its own, in which all ports are free. */
const NETWORK = ['--map-root-user', '--net']
const canRun = tryTool('unshare', ...NETWORK, 'ip', 'link', 'set', 'lo', 'up').status === 0

/** Starts what a page expects its reader to have already: with a sandbox key in the page, a cloud that knows it. */
const PRELUDE = `
ip link set lo up
if grep -q untag_test_sk_… page.sh; then
  node bin/untag.js cloud > cloud.log &
  KEY=$(node bin/untag.js keys create --account reader)
  sed -i "s/untag_test_sk_…/$KEY/" page.sh
  until curl -sf -o /dev/null http://127.0.0.1:8080/healthz; do sleep 0.2; done
fi
bash -euo pipefail page.sh
`

/** A folder like a built checkout, in which \`npm run build\` and the build of \`npm start\` take no time. */
async function checkoutFor(page: string, text: string): Promise<string> {
  const folder = temporaryFolder('pages')
  for (const name of ['deploy', 'dist', 'node_modules', 'package.json'])
    symlinkSync(join(ROOT, name), join(folder, name))
  mkdirSync(join(folder, 'bin'))
  symlinkSync(await bundledCommand(), join(folder, 'bin/untag.js'))
  // Moves the ports that a page assigns to variables: a command that does not use them reaches the default port and fails.
  writeFileSync(
    join(folder, 'page.sh'),
    withPorts(text, (port) => port + 10_000),
  )
  // A program is the first `ts` block after the text that names its file.
  for (const [, name = ''] of text.matchAll(/\bnode (\w+\.mjs)/g)) {
    const program = codeBlocksOf(page).find(
      ({ info, introduction }) => info === 'ts' && introduction.includes(`\`${name}\``),
    )
    writeFileSync(join(folder, name), program?.text ?? '')
  }
  const npm = '#!/bin/sh\ncase "$1" in start) exec node bin/untag.js start ;; run) [ "$2" = build ] ;; esac\n'
  mkdirSync(join(folder, 'tools'))
  writeFileSync(join(folder, 'tools/npm'), npm)
  chmodSync(join(folder, 'tools/npm'), 0o755)
  return folder
}

const running = new Set<ChildProcess>()

/** Ends the whole process group, because a page may leave servers running in the background. */
function endGroup(shell: ChildProcess): void {
  running.delete(shell)
  try {
    if (shell.pid !== undefined) process.kill(-shell.pid, 'SIGKILL')
  } catch {
    // All processes have ended.
  }
}

async function runPage(page: string, text: string): Promise<{ code: number | null; said: string }> {
  const folder = await checkoutFor(page, text)
  const shell = spawn('unshare', [...NETWORK, 'bash', '-euo', 'pipefail', '-c', PRELUDE], {
    cwd: folder,
    env: { ...process.env, UNTAG_LOG_LEVEL: 'warn', PATH: `${folder}/tools:${process.env['PATH']}` },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(shell)
  let said = ''
  for (const stream of [shell.stdout, shell.stderr])
    stream.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  const [code] = (await once(shell, 'exit')) as [number | null]
  endGroup(shell)
  return { code, said }
}

describe('commands of the pages', () => {
  afterAll(() => {
    for (const shell of running) endGroup(shell)
  })

  it('are there', () => {
    expect(shellBlocks.length).toBeGreaterThan(20)
    expect(sessions.length).toBeGreaterThan(5)
  })

  it('call npm scripts and tests that exist', () => {
    for (const block of shellBlocks) {
      for (const line of block.text.split('\n').filter((l) => /^npm (?!install\b|pack\b)/.test(l))) {
        const [, verb = '', rest = ''] = /^npm (?:run )?(\S+)(.*)/.exec(line) ?? []
        expect(Object.keys(scripts), `${place(block)}: ${line}`).toContain(verb)
        const path = /(?:^|\s)(test\/\S+)/.exec(rest)?.[1]
        if (path !== undefined) expect(existsSync(join(ROOT, path)), `${place(block)}: ${line}`).toBe(true)
      }
    }
  })

  it('call commands of untag, with options that these have', () => {
    const calls = [
      ...shellBlocks.flatMap((block) => untagCallsIn(block.text).map((call) => ({ at: place(block), call }))),
      ...PAGES.filter((page) => page.startsWith('docs/guides/')).flatMap((page) =>
        inlineCodeOf(page).flatMap((code) => untagCallsIn(code).map((call) => ({ at: page, call }))),
      ),
    ]
    expect(calls.length).toBeGreaterThan(50)
    expect(calls.flatMap(({ at, call }) => faultsOfCall(call).map((fault) => `${at}: ${fault}`))).toEqual([])
  })

  it('name each port of the machine once, so that a reader whose port is taken changes one place', () => {
    const repeated = PAGES.flatMap((page) => {
      const text = shellBlocks
        .filter((block) => block.page === page && block.info !== 'sh untried')
        .map((block) => block.text)
      const ports = portsIn(text.join(''))
      return [...new Set(ports.filter((port, index) => ports.indexOf(port) !== index))].map(
        (port) => `${page}: ${port}`,
      )
    })
    expect(repeated, 'assign it to a variable such as CLOUD_PORT in the first block').toEqual([])
  })

  it('would be reported with a command or an option that does not exist', () => {
    const [call = ''] = untagCallsIn('KEY=$(node bin/untag.js keys create --acount shop)')
    expect(faultsOfCall(call)[0]).toMatch('untag keys create has no option --acount')
    expect(faultsOfCall('keys make')[0]).toMatch('there is no command: untag keys make')
  })

  it('have a language, so that no command of a guide stays unchecked', () => {
    const bare = blocks.filter(({ page, info }) => page.startsWith('docs/guides/') && info === '')
    expect(
      bare.map(place),
      'write ```sh for commands that the test runs, ```sh untried for commands that it parses, or another language such as ```text',
    ).toEqual([])
  })

  it('that are not run say why, in their section', () => {
    const reason = /\b(needs?|use (?:your|the id)|keeps running|takes|changes|writes|you type|there is no|examples)\b/i
    const silent = untried.filter(({ introduction }) => !reason.test(introduction))
    expect(silent.map(place), 'write before the block what it needs, such as “This needs root.”').toEqual([])
  })

  it('that another test runs name a page that a test in test/docs reads', () => {
    const tests = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.test.ts'))
    const read = tests.map((file) => readFileSync(join(import.meta.dirname, file), 'utf8')).join('')
    const pages = new Set(shellBlocks.filter(({ info }) => info === 'sh rehearsed').map(({ page }) => page))
    expect([...pages].filter((page) => !read.includes(basename(page)))).toEqual([])
  })

  it('that are not run are correct shell', EXTENDED, () => {
    const faults = shellBlocks
      .filter(({ info }) => info !== 'sh')
      .flatMap((block) => {
        const { status, stderr } = spawnSync('bash', ['-n'], { input: block.text, encoding: 'utf8' })
        return status === 0 ? [] : [`${place(block)}: ${stderr}`]
      })
    expect(faults).toEqual([])
  })

  const itRuns = canRun ? it.concurrent : it.skip
  // All pages run at once, each with several processes.
  const slow = { ...EXTENDED, timeout: 300_000 }
  itRuns.each(IS_FULL_SIZE ? sessions : sample())(
    'of $page run from the first to the last',
    slow,
    async ({ page, text }) => {
      const { code, said } = await runPage(page, text)
      expect(code, said).toBe(0)
      expect(said, said).not.toMatch(/"error"|"success":false/)
      if (text.includes('receiver.mjs')) expect(said).toContain('checkout.completed {')
      if (text.includes('till.mjs')) expect(said).toMatch(/"outcome":"confirmed"[^]*already_redeemed\nonline/)
    },
  )
})
