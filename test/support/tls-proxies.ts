import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { join } from 'node:path'
import { findTool, missingTool } from '../verification/tools.ts'
import { ROOT } from './built.ts'
import { temporaryFolder } from './databases.ts'
import { freePort } from './ports.ts'

/** Ports and files for a proxy of docs/guides/tls.md. */
export interface TlsProxyPlaces {
  https: number
  mqtts: number
  api: number
  broker: number
  cert: string
  key: string
}

/** A proxy of the guide, with a reason if it is not installed. */
export interface TlsProxy {
  readonly name: string
  readonly why: string | undefined
  /** True if the proxy serves MQTTS too. Otherwise the cloud does, with `--tls-on mqtt`. */
  readonly servesMqtts: boolean
  start(places: TlsProxyPlaces): Promise<{ stop(): Promise<void> }>
}

const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so'

export const TLS_PROXIES: readonly TlsProxy[] = [
  {
    name: 'Caddy',
    why: missingTool('caddy'),
    servesMqtts: false,
    start: (places) => {
      const site = blockOf('caddyfile', places).replace('shop.example', `https://127.0.0.1:${places.https}`)
      return run(places, 'caddy', `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`, (file) => [
        'run',
        '--adapter=caddyfile',
        `--config=${file}`,
      ])
    },
  },
  {
    name: 'nginx',
    why: findTool(STREAM_MODULE) ? undefined : 'install the packages nginx and libnginx-mod-stream',
    servesMqtts: true,
    start: (places) => {
      const folder = temporaryFolder('nginx')
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((n) => `${n}_temp_path ${folder}/${n};`)
      const head = `load_module ${STREAM_MODULE}; daemon off; pid ${folder}/pid; error_log stderr; events {}`
      const http = `http { access_log off; ${paths.join(' ')}\n${blockOf('nginx', places)} }`
      const text = `${head}\n${http}\n${blockOf('nginx-stream', places)}`
      return run(places, 'nginx', text, (file) => ['-c', file, '-e', 'stderr'])
    },
  },
]

/** A block of the guide with the ports and files of the test. */
function blockOf(language: string, { https, mqtts, api, broker, cert, key }: TlsProxyPlaces): string {
  const page = readFileSync(join(ROOT, 'docs/guides/tls.md'), 'utf8')
  const block = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(page)?.[1]
  if (block === undefined) throw new Error(`docs/guides/tls.md has no block ${language}`)
  return block
    .replaceAll('/etc/untag/tls.crt', cert)
    .replaceAll('/etc/untag/tls.key', key)
    .replace('listen 443', `listen 127.0.0.1:${https}`)
    .replace('listen 8883', `listen 127.0.0.1:${mqtts}`)
    .replace('127.0.0.1:8080', `127.0.0.1:${api}`)
    .replace('127.0.0.1:1883', `127.0.0.1:${broker}`)
}

async function run(
  { https }: TlsProxyPlaces,
  program: string,
  config: string,
  args: (file: string) => string[],
): Promise<{ stop(): Promise<void> }> {
  const folder = temporaryFolder(program)
  const file = join(folder, 'config')
  writeFileSync(file, config)
  const child = spawn(program, args(file), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-5_000)))
  while (!(await accepts(https))) if (child.exitCode !== null) throw new Error(`${program} ended: ${errors}`)
  return {
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

/** True if a TLS server accepts connections on this port. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => setImmediate(resolve, false))
  })
}

/** Free ports for a proxy and the cloud behind it. */
export async function proxyPorts(): Promise<Pick<TlsProxyPlaces, 'https' | 'mqtts' | 'api' | 'broker'>> {
  const [https, mqtts, api, broker] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  return { https, mqtts, api, broker }
}
