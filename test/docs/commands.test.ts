import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/databases.ts'
import { freePort } from '../support/ports.ts'
import { startProcess, type RunningProcess } from '../support/processes.ts'
import { pagesIn, ROOT } from './markdown-page.ts'

const PAGES = ['README.md', 'CONTRIBUTING.md', 'verification/README.md', ...pagesIn('docs')]
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }

/** The code blocks of a page in one language. */
function blocksOf(page: string, language: 'sh' | 'ts'): string[] {
  const blocks = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm')
  return [...readFileSync(join(ROOT, page), 'utf8').matchAll(blocks)].map((m) => m[1] ?? '')
}

const blocks = PAGES.flatMap((page) => blocksOf(page, 'sh').map((text) => ({ page, text })))
/** True for lines with an npm command. CI and test/bin run these commands; this file checks only that they exist. */
const isNpm = (line: string) => /^npm\b/.test(line) || line.trim() === ''
const runnable = blocks.filter(({ text }) => !text.split('\n').every((line) => isNpm(line)))

describe('commands of the pages', () => {
  let shell: ChildProcess | undefined
  let cloud: RunningProcess | undefined
  afterEach(async () => {
    // Ends the whole process group, because a block may leave servers running in the background.
    if (shell?.pid !== undefined) {
      try {
        process.kill(-shell.pid, 'SIGKILL')
      } catch {
        // All processes have ended.
      }
    }
    await cloud?.stop()
    shell = undefined
    cloud = undefined
  })

  it('are there', () => {
    expect(blocks.length).toBeGreaterThan(4)
    expect(runnable.length).toBeGreaterThan(1)
  })

  it('call npm scripts and tests that exist', () => {
    for (const { page, text } of blocks) {
      for (const line of text.split('\n').filter((l) => /^npm\b/.test(l))) {
        const [, verb = '', rest = ''] = /^npm (?:run )?(\S+)(.*)/.exec(line) ?? []
        expect(Object.keys(scripts), `${page}: ${line}`).toContain(verb)
        const path = /(?:^|\s)(test\/\S+)/.exec(rest)?.[1]
        if (path !== undefined) expect(existsSync(join(ROOT, path)), `${page}: ${line}`).toBe(true)
      }
    }
  })

  it.each(runnable)('of $page run: $text', async ({ page, text }) => {
    const folder = temporaryFolder('pages')
    for (const name of ['bin', 'dist', 'node_modules', 'package.json'])
      symlinkSync(join(ROOT, name), join(folder, name))
    const port = String(await freePort())
    const env: NodeJS.ProcessEnv = { ...process.env, UNTAG_LOG_LEVEL: 'warn' }
    let script = text
    if (text.includes('untag_test_sk_…')) {
      cloud = await startProcess(['cloud', '--port', port, '--mqtt-port', '0', '--data', join(folder, 'var/cloud')])
      const made = spawn(
        process.execPath,
        ['bin/untag.js', 'keys', 'create', '--account', 'reader', '--data', 'var/cloud'],
        { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
      )
      let key = ''
      made.stdout.on('data', (chunk: Buffer) => void (key += chunk.toString()))
      await once(made, 'close')
      script = script.replace('untag_test_sk_…', key.trim())
    }
    if (text.includes('till.mjs')) writeFileSync(join(folder, 'till.mjs'), blocksOf(page, 'ts').join('\n'))
    // Uses free ports, because other tests may use the ports of the page.
    const [mqttPort, edgePort] = [String(await freePort()), String(await freePort())]
    script = script
      .replaceAll('npm run build', 'true')
      .replaceAll(':8080', `:${port}`)
      .replaceAll('untag.js cloud', `untag.js cloud --port ${port} --mqtt-port ${mqttPort}`)
      .replace('npm start', `node bin/untag.js start --port ${port} --mqtt-port ${mqttPort} --edge-port ${edgePort}`)
      .replace(/untag\.js edge &/, `untag.js edge --port ${edgePort} &`)
    shell = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: folder,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [shell.stdout, shell.stderr])
      stream?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    const [code] = (await once(shell, 'exit')) as [number | null]
    expect(code, said).toBe(0)
    expect(said, said).not.toMatch(/"error"|"success":false/)
    if (text.includes('till.mjs')) expect(said).toMatch(/"outcome":"confirmed"[^]*already_redeemed\nonline/)
  })
})
