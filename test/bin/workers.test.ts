import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { restarts } from '../../host/workers/primary.ts'
import { ensureBuilt } from '../support/built.ts'
import { PROXIES } from '../support/proxies.ts'
import { newMigratedPostgres, temporaryFolder } from '../support/databases.ts'
import { runCommand } from '../support/commands.ts'
import { asNode, runProcess, startProcess, type RunningProcess } from '../support/processes.ts'
import { EXTENDED } from '../support/extended.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'

/** Calls at a time, at each address. */
const CALLERS = IS_FULL_SIZE ? 3 : 1
const hasPostgres = inject('postgresUrl') !== ''

describe('untag cloud --workers without PostgreSQL', () => {
  beforeAll(ensureBuilt)

  it('is refused in one sentence that names the fix', async () => {
    const { code, stdout, stderr } = await runProcess(['cloud', '--workers=2', `--data=${temporaryFolder('workers')}`])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr.split('\n')[0]).toBe(
      '--workers 2 needs PostgreSQL, because only one process can use SQLite: name the database with --database-url, or start one process with --workers 1',
    )
  })
})

describe('the replacement of dead workers', () => {
  it('is immediate at first, then slower, and ends after 20 deaths within ten minutes', () => {
    const policy = restarts()
    const delays = Array.from({ length: 21 }, (_, n) => policy.afterDeath(n * 1_000))
    expect(delays.slice(0, 5)).toEqual([0, 250, 500, 1_000, 2_000])
    expect(delays.slice(9, 20)).toEqual(Array.from({ length: 11 }, () => 30_000))
    expect(delays[20]).toBe(undefined)
  })

  it('is immediate again after ten quiet minutes', () => {
    const policy = restarts()
    for (let n = 0; n < 20; n++) policy.afterDeath(n)
    expect(policy.afterDeath(700_000)).toBe(0)
  })
})

/** Process ids of the workers, oldest first. */
function workersOf({ child }: RunningProcess): number[] {
  const list = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  return list.trim().split(' ').map(Number)
}

describe.skipIf(!hasPostgres)(
  `a cloud of several workers${hasPostgres ? '' : ' (skipped: install the package postgresql)'}`,
  EXTENDED,
  () => {
    let cloud: RunningProcess
    let key: string
    let remove: () => Promise<void>

    beforeAll(async () => {
      ensureBuilt()
      const database = await newMigratedPostgres()
      remove = database.remove
      const place = [`--data=${temporaryFolder('workers')}`, `--database-url=${database.url}`]
      const args = ['cloud', '--workers=2', '--port=0', '--mqtt-port=0', '--rate-limit=0', ...place]
      cloud = await startProcess(args, { env: asNode('27.1.0') })
      const made = await runCommand(['keys', 'create', ...place, '--account=Shop', '--mode=test', '--json'])
      key = (JSON.parse(made.stdout) as { key: string }).key
    })
    afterAll(async () => {
      await cloud?.stop()
      await remove?.()
    })

    const fetchStores = (baseUrl = cloud.ready['baseUrl']) =>
      fetch(`${baseUrl}/fetchStores`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '{}',
      })

    /** Waits for a response. A killed worker resets its connections. */
    const anyAnswer = () =>
      fetchStores().then(
        (response) => response.text(),
        () => undefined,
      )

    /** Calls the cloud without pause until `end` resolves. Resolves to the number of good responses, and to every other outcome. */
    async function load(end: Promise<unknown>, baseUrl?: string): Promise<{ good: number; bad: unknown[] }> {
      let isOver = false
      void end.finally(() => (isOver = true))
      const bad: unknown[] = []
      let good = 0
      const caller = async () => {
        while (!isOver) {
          const status = await fetchStores(baseUrl).then(
            async (response) => (await response.text(), response.status),
            (error: unknown) => error,
          )
          if (status === 200) good++
          else bad.push(status)
        }
      }
      await Promise.all(Array.from({ length: CALLERS }, caller))
      return { good, bad }
    }

    /** Resolves when the log contains this text so many times. */
    async function logged(text: string, times = 1): Promise<void> {
      while (cloud.stderr().split(text).length <= times) await anyAnswer()
    }

    /** Resolves when the broker accepts a connection. */
    async function brokerListens(): Promise<void> {
      const { hostname, port } = new URL(cloud.ready['mqttUrl'] ?? '')
      for (;;) {
        const socket = connect(Number(port), hostname)
        const isOpen = await once(socket, 'connect').then(
          () => true,
          () => false,
        )
        socket.destroy()
        if (isOpen) return
        await anyAnswer()
      }
    }

    it('prints one ready line with the same fields as one process', () => {
      expect(Object.keys(cloud.ready)).toEqual(['baseUrl', 'mqttUrl'])
      expect(workersOf(cloud)).toHaveLength(2)
    })

    const without = PROXIES.flatMap(({ why }) => why ?? [])
    const through = `also behind Caddy and nginx${without.length === 0 ? '' : ` (skipped: ${without.join(', ')})`}`
    it(`restarts its workers in turn at SIGHUP without a failed request, ${through}`, async () => {
      const former = workersOf(cloud)
      const { host } = new URL(cloud.ready['baseUrl'] ?? '')
      const proxies = await Promise.all(PROXIES.filter(({ why }) => why === undefined).map(({ start }) => start(host)))
      try {
        cloud.child.kill('SIGHUP')
        const end = logged('the workers were restarted')
        for (const { good, bad } of await Promise.all([
          load(end),
          ...proxies.map(({ origin }) => load(end, `${origin}/api/v1`)),
        ])) {
          expect(bad).toEqual([])
          expect(good).toBeGreaterThan(20)
        }
      } finally {
        for (const proxy of proxies) await proxy.stop()
      }
      expect(workersOf(cloud).filter((pid) => former.includes(pid))).toEqual([])
      await brokerListens()
    })

    it('replaces a killed worker, and the broker moves to another one', async () => {
      for (const [n, pid] of workersOf(cloud).entries()) {
        process.kill(pid, 'SIGKILL')
        await logged('a new worker serves', n + 1)
        await brokerListens()
      }
      const ready = await fetch(new URL('/readyz', cloud.ready['baseUrl']))
      expect(await ready.json()).toEqual({ ready: true, unready: [] })
    })

    it('notes only once that its version of Node.js was not tested', () => {
      expect(cloud.stderr().match(/untag was not tested with Node\.js/g)).toHaveLength(1)
    })

    it('ends all workers at SIGTERM', async () => {
      const workers = workersOf(cloud)
      expect(await cloud.stop()).toBe(0)
      for (const pid of workers) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    })
  },
)
