import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingTool } from '../verification/tools.ts'
import { ROOT } from './built.ts'
import { temporaryFolder } from './databases.ts'
import { freePort } from './ports.ts'

/** A proxy in front of a cloud. */
export interface Proxy {
  origin: string
  stop(): Promise<void>
}

/** The servers of docs/guides/many-processes.md, with the configuration of that page. */
export const PROXIES: readonly { name: string; why: string | undefined; start(...hosts: string[]): Promise<Proxy> }[] =
  [
    {
      name: 'caddy',
      why: missingTool('caddy'),
      async start(...hosts) {
        const port = await freePort()
        const site = configOf('caddyfile', hosts).replace('shop.example', `http://127.0.0.1:${port}`)
        return run('caddy', `{\n\tadmin off\n}\n${site}`, port, (file) => [
          'run',
          '--adapter=caddyfile',
          `--config=${file}`,
        ])
      },
    },
    {
      name: 'nginx',
      why: missingTool('nginx'),
      async start(...hosts) {
        const port = await freePort()
        const http = configOf('nginx', hosts).replace('listen 80;', `listen 127.0.0.1:${port};`)
        const folder = temporaryFolder('nginx')
        const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((n) => `${n}_temp_path ${folder}/${n};`)
        const text = `daemon off; pid ${folder}/pid; error_log stderr; events {}\nhttp { access_log off; ${paths.join(' ')}\n${http} }`
        return run('nginx', text, port, (file) => ['-c', file, '-e', 'stderr'])
      },
    },
  ]

/** The configuration of the guide, with one or two clouds (host and port) instead of its machines. */
function configOf(language: string, [host = '', other]: readonly string[]): string {
  const page = readFileSync(join(ROOT, 'docs/guides/many-processes.md'), 'utf8')
  const block = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(page)?.[1] ?? ''
  const second = other
    ? block.replace('10.0.0.12:8080', other)
    : block.replace(/^ *server 10\.0\.0\.12:8080.*\n/m, '').replace(' 10.0.0.12:8080', '')
  return second.replace('10.0.0.11:8080', host)
}

async function run(program: string, config: string, port: number, args: (file: string) => string[]): Promise<Proxy> {
  const folder = temporaryFolder(program)
  const file = join(folder, 'config')
  writeFileSync(file, config)
  const child = spawn(program, args(file), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-5_000)))
  const origin = `http://127.0.0.1:${port}`
  const hasEnded = () => child.exitCode !== null
  while (
    !(await fetch(`${origin}/healthz`, { headers: { host: 'shop.example' } }).then(
      ({ status }) => status === 200,
      () => false,
    ))
  )
    if (hasEnded()) throw new Error(`${program} ended: ${errors}`)
  return {
    origin,
    async stop() {
      child.kill('SIGTERM')
      if (!hasEnded()) await once(child, 'exit')
    },
  }
}
