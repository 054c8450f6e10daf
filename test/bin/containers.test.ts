import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { BlockList, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { missingTool } from '../verification/tools.ts'
import { DockerfileParser, JSONInstruction, type Instruction } from 'dockerfile-ast'
import { afterEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { COMMANDS } from '../../bin/command-table.ts'
import { listOptions, readOptions } from '../../host/options.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { EDGE_OPTIONS } from '../../host/settings/edge.ts'
import { codeBlocksOf, faultsOfCall } from '../docs/page-commands.ts'
import { ROOT } from '../support/built.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { freePort } from '../support/ports.ts'
import { EXTENDED, suiteWith } from '../support/extended.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** A service of a compose file, as far as the tests read it. */
interface Service {
  image?: string
  build?: { context?: string; target?: string }
  user?: string
  read_only?: boolean
  privileged?: boolean
  cap_drop?: string[]
  cap_add?: string[]
  security_opt?: string[]
  network_mode?: string
  environment?: Record<string, string>
  command?: string[]
  secrets?: string[]
  volumes?: (string | { source: string; target: string })[]
  ports?: string[]
  depends_on?: Record<string, { condition: string }>
}
interface Compose {
  services: Record<string, Service>
  volumes: Record<string, null>
  secrets?: Record<string, { file: string }>
}
const compose = (file: string) => parse(read(file), { merge: true }) as Compose
const cloud = compose('compose.yaml')
const edge = compose('compose.edge.yaml')
const services = Object.entries({ ...cloud.services, ...edge.services })
const ofImage = (image: string) => services.filter(([, service]) => service.image === image)

/** The stages of the Dockerfile by name. Each begins with the instructions of the stage that it continues. */
function stages(): Map<string, readonly Instruction[]> {
  const found = new Map<string, Instruction[]>()
  let current: Instruction[] = []
  for (const instruction of DockerfileParser.parse(read('Dockerfile')).getInstructions()) {
    const text = instruction.getArgumentsContent() ?? ''
    const [, base = '', name = ''] = /^(\S+) AS (\S+)$/.exec(text) ?? []
    if (instruction.getKeyword() === 'FROM') found.set(name, (current = [...(found.get(base) ?? [])]))
    else current.push(instruction)
  }
  return found
}
const last = (stage: string, keyword: string) =>
  stages()
    .get(stage)
    ?.findLast((instruction) => instruction.getKeyword() === keyword)
const words = (stage: string, keyword: string) => {
  const instruction = last(stage, keyword)
  if (!(instruction instanceof JSONInstruction)) throw new Error(`${stage}: ${keyword} must be a list`)
  return instruction.getJSONStrings().map((word) => word.getJSONValue())
}
const envOf = (stage: string) =>
  (stages().get(stage) ?? [])
    .filter((instruction) => instruction.getKeyword() === 'ENV')
    .flatMap((instruction) => (instruction.getArgumentsContent() ?? '').split(' ').map((pair) => pair.split('=')))

describe('Dockerfile', () => {
  it.each(['cloud', 'edge'])('runs %s without root, with the command of the same name', (target) => {
    expect(last(target, 'USER')?.getArgumentsContent()).toBe('10001:10001')
    expect(words(target, 'ENTRYPOINT')).toEqual(['node', '--max-semi-space-size=4', '/opt/untag/bin/untag.js'])
    expect(words(target, 'CMD')).toEqual([target])
    expect(COMMANDS.map((command) => command.words.join(' '))).toContain(target)
  })

  it.each([
    ['cloud', CLOUD_OPTIONS],
    ['edge', EDGE_OPTIONS],
  ] as const)('sets only variables that untag %s has, and checks the default port', (target, options) => {
    const variables = envOf(target).filter(([name = '']) => name.startsWith('UNTAG_'))
    expect(variables.length).toBeGreaterThan(0)
    const known = listOptions(options).map((option) => option.env)
    for (const [name = ''] of variables) expect(known).toContain(name)
    const settings = readOptions(options, [], Object.fromEntries(variables) as NodeJS.ProcessEnv)
    expect(settings.data).toBe('/data')
    const check = last(target, 'HEALTHCHECK')?.getArgumentsContent() ?? ''
    expect(check).toContain(`process.env.UNTAG_PORT || ${settings.port}}/healthz`)
  })

  it.each([
    [200, 0],
    [503, 1],
  ])('has a health check that turns %i of /healthz into the exit code %i', async (answer, exitCode) => {
    const [program, ...args] = JSON.parse(
      /CMD (\[.*\])/.exec(last('cloud', 'HEALTHCHECK')?.getArgumentsContent() ?? '')?.[1] ?? '',
    ) as string[]
    expect(program).toBe('node')
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/healthz' ? answer : 404).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const port = String((server.address() as AddressInfo).port)
    const check = spawn(process.execPath, args, { env: { ...process.env, UNTAG_PORT: port }, stdio: 'inherit' })
    expect((await once(check, 'exit'))[0]).toBe(exitCode)
    server.close()
  })

  it('installs packages before it copies the sources, and then works offline', () => {
    const steps = (stages().get('build') ?? []).map((step) => `${step.getKeyword()} ${step.getArgumentsContent()}`)
    const order = ['RUN npm ci', 'ENV npm_config_offline=true', 'COPY . .'].map((step) => steps.indexOf(step))
    expect(order.toSorted((a, b) => a - b)).toEqual(order)
    expect(order).not.toContain(-1)
  })

  it('gets only files of the checkout that the build needs', () => {
    const [first, ...allowed] = read('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    expect(first).toBe('*')
    for (const line of allowed) expect(line).toMatch(/^![\w./-]+$/)
    const paths = allowed.map((line) => line.slice(1))
    for (const path of paths) expect(existsSync(join(ROOT, path)), path).toBe(true)
    const copied = (stages().get('build') ?? [])
      .filter((step) => step.getKeyword() === 'COPY')
      .flatMap((step) => (step.getArgumentsContent() ?? '').split(' ').slice(0, -1))
    for (const path of copied.filter((each) => each !== '.')) expect(paths).toContain(path)
    const { include } = parse(read('tsconfig.json')) as { include: string[] }
    const covered = (path: string) => paths.some((allowed) => path === allowed || path.startsWith(`${allowed}/`))
    expect(include.filter((path) => !covered(path))).toEqual([])
  })
})

describe('Node.js of the packages', () => {
  interface Lock {
    packages: Record<string, { version?: string; integrity?: string; cpu?: string[]; resolved?: string }>
  }
  const { packages } = JSON.parse(read('packaging/node/package-lock.json')) as Lock
  const pinned = Object.entries(packages).filter(([path]) => path !== '')

  it('has one version, at least 24, for both kinds of processors, each with its hash', () => {
    expect(pinned.map(([path]) => path)).toEqual(['arm64', 'x64'].map((cpu) => `node_modules/node-linux-${cpu}`))
    for (const [, entry] of pinned) {
      expect(entry.version).toBe(pinned[0]?.[1].version)
      expect(Number.parseInt(entry.version ?? '', 10)).toBeGreaterThanOrEqual(24)
      expect(entry.integrity).toMatch(/^sha512-/)
      expect(entry.resolved).toBeUndefined()
    }
  })

  it('has the same major version in the images, and was tested', () => {
    const major = Number.parseInt(pinned[0]?.[1].version ?? '', 10)
    const images = [...read('Dockerfile').matchAll(/^ARG \w*BASE=.*\/node:(\d+)-/gm)].map(([, version]) =>
      Number(version),
    )
    expect(images).toEqual([major, major])
    expect((JSON.parse(read('package.json')) as { testedNode: number[] }).testedNode).toContain(major)
  })
})

describe('compose files', () => {
  it.each(services)('run %s without root and privileges, with a read-only root filesystem', (_, service) => {
    expect(service).toMatchObject({
      user: expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/),
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    })
    expect(service.privileged).toBeUndefined()
    expect(service.cap_add ?? []).toEqual(service === cloud.services['proxy'] ? ['NET_BIND_SERVICE'] : [])
  })

  it('publish only the ports of Caddy and of the broker', () => {
    const published = services.flatMap(([name, { ports = [] }]) => ports.map((port) => `${name} ${port}`))
    expect(published).toEqual(['proxy 80:8080', 'proxy 443:8443', 'broker 8883:8883'])
    expect(read('deploy/containers/Caddyfile')).toMatch(/http_port 8080\n\s*https_port 8443\n/)
    expect(read('deploy/containers/mosquitto.conf')).toContain('listener 8883\n')
    expect(read('deploy/containers/Caddyfile')).toContain('reverse_proxy cloud:8080 ')
    const hosts = services.filter(([, { network_mode: mode }]) => mode === 'host').map(([name]) => name)
    expect(hosts).toEqual(['edge'])
  })

  it('keep the fixed address of the proxy, which the cloud trusts, out of the range of the other addresses', () => {
    const { networks } = parse(read('compose.yaml'), { merge: true }) as Record<string, Json>
    const [{ subnet, ip_range: range }] = networks.front.ipam.config
    const proxy = cloud.services['proxy'] as Json
    const { ipv4_address: address } = proxy['networks'].front
    expect(cloud.services['cloud']?.environment?.['UNTAG_TRUSTED_PROXIES']).toBe(address)
    const covers = (cidr: string) => {
      const [base = '', bits] = cidr.split('/')
      const list = new BlockList()
      list.addSubnet(base, Number(bits))
      return list.check(address)
    }
    expect([covers(subnet), covers(range)]).toEqual([true, false])
  })

  it.each([...ofImage('untag-cloud'), ...ofImage('untag-edge')])('call untag in %s as it is', (_, service) => {
    const target = service.image === 'untag-edge' ? 'edge' : 'cloud'
    const call = (service.command ?? words(target, 'CMD')).join(' ')
    expect(faultsOfCall(call)).toEqual([])
    const command = COMMANDS.findLast(({ words: w }) => `${call} `.startsWith(`${w.join(' ')} `))
    const known = listOptions(command?.options ?? {}).map((option) => option.env)
    const used = Object.keys(service.environment ?? {}).filter((name) => name.startsWith('UNTAG_'))
    for (const name of used) expect(known, call).toContain(name)
  })

  it('mount volumes only where an image has a folder of its user', () => {
    const folders = /install -d -o 10001 -g 10001 -m 700 (.*)/.exec(read('Dockerfile'))?.[1]?.split(' ')
    const named = [...ofImage('untag-cloud'), ...ofImage('untag-edge')]
      .flatMap(([, { volumes = [] }]) => volumes)
      .filter((volume) => typeof volume === 'string' && !volume.startsWith('/') && !volume.startsWith('.'))
      .map((volume) => String(volume).split(':'))
    expect(named.length).toBeGreaterThan(5)
    for (const [name = '', target = ''] of named) {
      expect(folders).toContain(target)
      expect({ ...cloud.volumes, ...edge.volumes }).toHaveProperty(name)
    }
  })

  it('start the cloud after the database is healthy, and everything else after the cloud', () => {
    const waits = Object.entries(cloud.services).map(([name, { depends_on: before = {} }]) => [
      name,
      ...Object.entries(before).map(([other, { condition }]) => `${other}: ${condition}`),
    ])
    expect(waits).toEqual([
      ['cloud', 'database: service_healthy'],
      ['database'],
      ['proxy', 'cloud: service_healthy'],
      ['backup', 'cloud: service_healthy'],
      ['broker', 'broker-rights: service_completed_successfully'],
      ['broker-rights', 'cloud: service_healthy'],
    ])
  })

  it('have the services and commands that the guide calls', () => {
    const calls = codeBlocksOf('docs/guides/containers.md').flatMap(({ text }) =>
      [...text.matchAll(/docker compose (-f compose\.edge\.yaml )?run --rm (?:--no-TTY )?(\S+) ?([^)\n]*)/g)].map(
        ([, file, service = '', call = '']) => ({ file: file ? edge : cloud, service, call }),
      ),
    )
    expect(calls.length).toBeGreaterThan(3)
    for (const { file, service, call } of calls.filter((each) => each.service !== '--entrypoint')) {
      expect(file.services).toHaveProperty(service)
      if (call !== '') expect(faultsOfCall(call)).toEqual([])
    }
  })

  it('mount files of the checkout that exist', () => {
    const own = services
      .flatMap(([, { volumes = [] }]) => volumes)
      .filter((volume) => typeof volume === 'string' && volume.startsWith('./'))
    expect(own.length).toBe(2)
    for (const volume of own) expect(existsSync(join(ROOT, String(volume).split(':')[0] ?? ''))).toBe(true)
  })
})

describe('deploy/containers/prepare', () => {
  const prepare = (folder: string, ...args: string[]) =>
    spawnSync(join(ROOT, 'deploy/containers/prepare'), args, { cwd: folder, encoding: 'utf8' })
  let stop: (() => Promise<void>) | undefined
  afterEach(async () => {
    await stop?.()
    stop = undefined
  })

  it.skipIf(missingTool('openssl'))(
    'writes the secrets and variables of compose.yaml, and keeps secrets the next time',
    EXTENDED,
    () => {
      const folder = temporaryFolder('containers')
      expect(prepare(folder, 'shop.example')).toMatchObject({ status: 0, stderr: '' })
      for (const [name, { file }] of Object.entries(cloud.secrets ?? {})) {
        expect(file).toBe(`secrets/${name}`)
        expect(statSync(join(folder, file)).mode & 0o777, file).toBe(0o644)
      }
      expect(statSync(join(folder, 'secrets')).mode & 0o777).toBe(0o700)
      expect(readFileSync(join(folder, '.env'), 'utf8')).toBe('UNTAG_DOMAIN=shop.example\n')
      const secrets = () => readFileSync(join(folder, 'secrets/database-url'), 'utf8')
      const before = secrets()
      prepare(folder, 'shop.example', 'broker')
      expect(secrets()).toBe(before)
      const variables = readFileSync(join(folder, '.env'), 'utf8').trim().split('\n')
      const used = [...read('compose.yaml').matchAll(/(?<!\$)\$\{(\w+)/g)].map((match) => match[1])
      for (const name of used) expect(variables.map((line) => line.split('=')[0])).toContain(name)
      const env = Object.fromEntries(variables.map((line) => line.split('=')))
      delete env['UNTAG_MQTT_URL_FILE']
      expect(readOptions(CLOUD_OPTIONS, [], env).publicMqttUrl).toBe('mqtts://shop.example:8883')
    },
  )

  it.each([
    [['https://shop.example'], /DOMAIN must be a host name/],
    [['shop.example', 'mosquitto'], /must be broker, not mosquitto/],
  ])('rejects %s', (args, message) => {
    const folder = temporaryFolder('containers')
    const { status, stderr } = prepare(folder, ...args)
    expect([status, stderr]).toEqual([2, expect.stringMatching(message)])
    expect(existsSync(join(folder, '.env'))).toBe(false)
  })

  it.skipIf(missingTool('mosquitto'))(
    'makes a certificate with which mosquitto.conf serves TLS as the broker and as the domain',
    EXTENDED,
    async () => {
      const folder = temporaryFolder('containers')
      prepare(folder, 'shop.example', 'broker')
      // Root starts Mosquitto here, and it would change to a user that cannot read the folder.
      const port = await freePort()
      const lines = read('deploy/containers/mosquitto.conf')
        .replace('listener 8883', `user root\nlistener ${port} 127.0.0.1`)
        .replaceAll('/run/secrets/', `${folder}/secrets/`)
        .replaceAll('/broker/', `${folder}/`)
        .replace('/usr/lib/mosquitto_dynamic', '/usr/lib/x86_64-linux-gnu/mosquitto_dynamic')
      writeFileSync(join(folder, 'mosquitto.conf'), lines)
      writeFileSync(join(folder, 'untag.json'), '{"defaultACLAccess":{},"clients":[],"groups":[],"roles":[]}')
      chmodSync(join(folder, 'untag.json'), 0o600)
      const broker = spawn('mosquitto', ['-c', join(folder, 'mosquitto.conf')], { stdio: ['ignore', 'ignore', 'pipe'] })
      let errors = ''
      broker.stderr.on('data', (chunk: Buffer) => void (errors += chunk.toString()))
      stop = async () => {
        broker.kill('SIGTERM')
        if (broker.exitCode === null) await once(broker, 'exit')
      }
      const ca = readFileSync(join(folder, 'secrets/broker-ca.pem'))
      for (const servername of ['broker', 'shop.example']) {
        const greeting = async (): Promise<boolean> => {
          if (broker.exitCode !== null) throw new Error(`mosquitto ended: ${errors}`)
          const socket = connect({ port, host: '127.0.0.1', ca, servername })
          const [error] = await Promise.race([
            once(socket, 'secureConnect').then(() => [undefined]),
            once(socket, 'error') as Promise<[{ code: string }]>,
          ]).finally(() => socket.destroy())
          if (error && error.code !== 'ECONNREFUSED') throw error
          return error === undefined
        }
        while (!(await greeting()));
      }
    },
  )
})

suiteWith(missingTool('caddy'), 'deploy/containers/Caddyfile', () => {
  it('is valid', () => {
    const file = join(ROOT, 'deploy/containers/Caddyfile')
    const folder = temporaryFolder('containers')
    const env = { ...process.env, UNTAG_DOMAIN: 'shop.example', HOME: folder, XDG_DATA_HOME: folder }
    const { status, stderr } = spawnSync('caddy', ['validate', '--adapter=caddyfile', '--config', file], {
      env,
      encoding: 'utf8',
    })
    expect(status, stderr).toBe(0)
  })
})
