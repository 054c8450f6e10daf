import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { serviceManager } from '../../host/service/service-manager.ts'
import { serviceFiles } from '../../host/service/units.ts'
import { ensureBuilt } from '../support/built.ts'
import { newMigratedPostgres, temporaryFolder } from '../support/databases.ts'
import { NO_NOTIFY_SOCKET, openNotifySocket, type NotifySocket } from '../support/notify-socket.ts'
import { runCommand } from '../support/commands.ts'
import { startProcess, type RunningProcess } from '../support/processes.ts'
import { EXTENDED, suiteWith } from '../support/extended.ts'

const SERVICES = ['cloud', 'edge'] as const

beforeAll(ensureBuilt)

describe('untag service', () => {
  async function install(name: 'cloud' | 'edge', out: string, ...args: string[]) {
    const keys = name === 'cloud' ? ['--keys-dir', join(out, 'keys')] : []
    const { code, stdout } = await runCommand(['service', 'install', name, '--out', out, ...keys, ...args])
    expect(code).toBe(0)
    return stdout
  }

  it.each(SERVICES)('install %s writes a public unit and a user, and remove deletes both', async (name) => {
    const out = temporaryFolder('service')
    const { written } = JSON.parse(await install(name, out, '--json')) as { written: string[] }
    expect(written).toEqual([
      join(out, `systemd/system/untag-${name}.service`),
      join(out, `sysusers.d/untag-${name}.conf`),
    ])
    for (const file of written) expect(statSync(file).mode & 0o777).toBe(0o644)
    expect(statSync(join(out, 'systemd/system')).mode & 0o777).toBe(0o755)
    const removed = await runCommand(['service', 'remove', name, '--out', out])
    expect(removed.stdout).toBe(written.map((file) => `removed ${file}\n`).join(''))
    expect(written.filter((file) => existsSync(file))).toEqual([])
  })

  it('install cloud creates the keys for their owner only, and keeps them the next time', async () => {
    const out = temporaryFolder('service')
    await install('cloud', out)
    const root = join(out, 'keys/root.json')
    const key = readFileSync(root, 'utf8')
    expect(statSync(root).mode & 0o777).toBe(0o600)
    await install('cloud', out)
    expect(readFileSync(root, 'utf8')).toBe(key)
  })

  it('install --print writes no file and no key', async () => {
    const out = temporaryFolder('service')
    expect(await install('cloud', out, '--print')).toMatch(/^LoadCredential=root\.json:/m)
    expect(existsSync(join(out, 'keys'))).toBe(false)
    expect(existsSync(join(out, 'systemd'))).toBe(false)
  })

  it('install passes the TLS key of --tls-key as credential', EXTENDED, async () => {
    const printed = await install(
      'edge',
      temporaryFolder('service'),
      '--print',
      '--tls-cert=/a.crt',
      '--tls-key=/a.key',
    )
    expect(printed).toMatch(/^LoadCredential=tls\.key:\/a\.key$/m)
    expect(printed).toContain('Environment=UNTAG_TLS_CERT=%d/tls.crt UNTAG_TLS_KEY=%d/tls.key\n')
  })

  it('escapes paths with spaces, quotes and percent signs', () => {
    const places = { node: '/opt/my node/bin/node', program: '/opt/a%b/"x"/untag.js', keysDir: '/etc/$keys' }
    const [unit] = serviceFiles('cloud', places)
    expect(unit?.text).toContain(
      'ExecStart="/opt/my node/bin/node" --max-semi-space-size=4 "/opt/a%%b/\\"x\\"/untag.js" cloud\n',
    )
    expect(unit?.text).toContain('LoadCredential=master.key:/etc/$keys/master.key\n')
  })

  suiteWith(NO_NOTIFY_SOCKET, 'units', () => {
    it.each([
      ['cloud', 13],
      ['edge', 17],
    ] as const)('of %s are valid, have an exposure of at most %i tenths, and a user', async (name, tenths) => {
      const out = temporaryFolder('service')
      await install(name, out, '--tls-cert', join(out, 'tls.crt'), '--tls-key', join(out, 'tls.key'))
      const unit = join(out, `systemd/system/untag-${name}.service`)
      const analyze = (...args: string[]) => spawnSync('systemd-analyze', [...args, unit], { encoding: 'utf8' })
      const { status, stderr } = analyze('verify')
      expect([status, stderr]).toEqual([0, ''])
      const checked = analyze('security', '--offline=true', `--threshold=${tenths}`)
      expect(checked.status, checked.stdout).toBe(0)
      const user = spawnSync('systemd-sysusers', ['--dry-run', join(out, `sysusers.d/untag-${name}.conf`)])
      expect(user.stderr.toString()).toContain(`Creating user 'untag-${name}'`)
    })
  })
})

describe('the service manager', () => {
  function manager(env: NodeJS.ProcessEnv, answers: readonly boolean[]) {
    const sent: string[] = []
    const tasks: { ms: number; task: () => void }[] = []
    const left = [...answers]
    const service = serviceManager({
      env,
      pid: 7,
      warn: () => undefined,
      timers: { after: (ms, task) => (tasks.push({ ms, task }), () => undefined) },
      send: (assignments) => (sent.push(assignments.join(' ')), Promise.resolve()),
      isAlive: () => Promise.resolve(left.shift() ?? true),
    })
    /** Runs the next timer, and returns its delay. */
    const tick = async () => {
      const next = tasks.shift()
      next?.task()
      await setImmediate()
      return next?.ms
    }
    return { service, sent, tick }
  }
  const SOCKET = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '60000000' }

  it('sends four pings in a period, and none while the process does not answer', async () => {
    const { service, sent, tick } = manager(SOCKET, [true, false, true])
    service.ready()
    await setImmediate()
    expect([await tick(), await tick(), await tick()]).toEqual([15_000, 15_000, 15_000])
    expect(sent).toEqual(['READY=1', 'READY=1 WATCHDOG=1', 'READY=1 WATCHDOG=1'])
    await service.reportStop(() => Promise.resolve())()
    await tick()
    expect([sent.at(-1), await tick()]).toEqual(['STOPPING=1', undefined])
  })

  it.each([
    ['without a socket', { WATCHDOG_USEC: '60000000' }, []],
    ['for a watchdog of another process', { ...SOCKET, WATCHDOG_PID: '8' }, ['READY=1']],
    ['without a period', { NOTIFY_SOCKET: '/run/notify' }, ['READY=1']],
    ['with a period that is no number', { ...SOCKET, WATCHDOG_USEC: 'soon' }, ['READY=1']],
  ])('sends no ping %s', async (_case, env, messages) => {
    const { service, sent, tick } = manager(env, [])
    service.ready()
    await setImmediate()
    expect([await tick(), sent]).toEqual([undefined, messages])
  })
})

suiteWith(NO_NOTIFY_SOCKET, 'reports to systemd', () => {
  /** systemd expects a ping in each period; the program sends four. */
  const PERIOD_MS = 1_200
  let socket: NotifySocket
  const running: RunningProcess[] = []

  afterEach(async () => {
    for (const each of running.splice(0).reverse()) await each.kill()
    socket?.close()
  })

  async function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<RunningProcess> {
    const started = await startProcess([...args, '--port=0'], { env })
    running.push(started)
    return started
  }
  const startCloud = (data: string, env?: NodeJS.ProcessEnv, ...args: string[]) =>
    start(['cloud', '--mqtt-port=0', `--data=${data}`, ...args], env)

  async function pingsOnlyWhileRunning({ child }: RunningProcess, { next, silence, messages }: NotifySocket) {
    await next('WATCHDOG=1', 2)
    child.kill('SIGSTOP')
    await silence(PERIOD_MS)
    child.kill('SIGCONT')
    await next('WATCHDOG=1')
    child.kill('SIGTERM')
    await next('STOPPING=1')
    expect(messages[0]).toBe('READY=1')
    expect(new Set(messages)).toEqual(new Set(['READY=1', 'READY=1 WATCHDOG=1', 'STOPPING=1']))
    expect(messages.at(-1)).toBe('STOPPING=1')
  }

  it('come from cloud and agent: ready, pings unless they hang, and their stop', async () => {
    const cloudSocket = await openNotifySocket()
    socket = await openNotifySocket()
    const [cloudData, data] = [temporaryFolder('service'), temporaryFolder('service')]
    const cloud = await startCloud(cloudData, cloudSocket.env(PERIOD_MS))
    const api = String(cloud.ready['baseUrl'])
    const made = await runCommand(['keys', 'create', `--data=${cloudData}`, '--account=shop', '--json'])
    const { key } = JSON.parse(made.stdout) as { key: string }
    const call = async (operation: string, body: object) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const response = await fetch(`${api}/${operation}`, { method: 'POST', headers, body: JSON.stringify(body) })
      return (await response.json()) as { stores: { storeId: string }[]; code: string }
    }
    const { stores } = await call('fetchStores', {})
    const { code } = await call('createEnrolmentCode', { storeId: stores[0]?.storeId, name: 'Till 1' })
    await runCommand(['edge', 'enrol', `--cloud=${api}`, `--code=${code}`, `--data=${data}`])
    const agent = await start(['edge', `--data=${data}`], socket.env(PERIOD_MS))
    await Promise.all([pingsOnlyWhileRunning(cloud, cloudSocket), pingsOnlyWhileRunning(agent, socket)])
    cloudSocket.close()
  })

  const hasPostgres = inject('postgresUrl') !== ''
  it.skipIf(!hasPostgres)('continue from workers whose database is lost, and end when all workers hang', async () => {
    socket = await openNotifySocket()
    const database = await newMigratedPostgres()
    const cloud = await startCloud(
      temporaryFolder('service'),
      socket.env(PERIOD_MS),
      `--database-url=${database.url}`,
      '--workers=2',
    )
    await database.remove()
    const origin = new URL(String(cloud.ready['baseUrl'])).origin
    expect((await fetch(`${origin}/readyz`)).status).toBe(503)
    await socket.next('WATCHDOG=1', 4)
    const { pid } = cloud.child
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
    // Another child may be systemd-notify, which ends by itself, perhaps just now.
    const isWorker = (child: string) => {
      try {
        return readFileSync(`/proc/${child}/comm`, 'utf8').startsWith('node')
      } catch {
        return false
      }
    }
    const workers = children.filter(isWorker).map(Number)
    expect(workers).toHaveLength(2)
    for (const worker of workers) process.kill(worker, 'SIGSTOP')
    await socket.silence(PERIOD_MS)
    for (const worker of workers) process.kill(worker, 'SIGCONT')
    await socket.next('WATCHDOG=1')
  })

  it('never end the cloud, even if systemd-notify does not work', async () => {
    const env = { NOTIFY_SOCKET: join(temporaryFolder('service'), 'missing'), WATCHDOG_USEC: '1000000' }
    const cloud = await startCloud(temporaryFolder('service'), env)
    await expect.poll(() => cloud.stderr()).toMatch(/systemd was not notified/)
    expect(cloud.child.exitCode).toBe(null)
  })
})
