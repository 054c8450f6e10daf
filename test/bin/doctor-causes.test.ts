import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkStore, type DoctorParts } from '../../bin/commands/doctor.ts'
import { lockDataDir } from '../../host/data-dir-lock.ts'
import { CAUSES, findingLines, type Cause, type Finding } from '../../bin/doctor/finding.ts'
import { CONFIG_IN_USE, configInUse } from '../../host/config-file.ts'
import { backupName } from '../../host/backup/retention.ts'
import type { FindingCode } from '../../device-drivers/kit/device.ts'
import { localApp } from '../../edge-agent/http/local-app.ts'
import { pushPort } from '../../device-drivers/transports/memory.ts'
import { parseTopic } from '../../policy/mqtt-topics.ts'
import { CREDENTIAL } from '../support/credential.ts'
import { fakeDevice, type FakeDevice } from '../support/fake-device.ts'
import { temporaryFolder } from '../support/databases.ts'
import { cutLine, memoryBroker } from '../support/memory-broker.ts'
import { openStore, type TestStore } from '../support/store.ts'

const HOST = '127.0.0.1:8090'
const DAY_MS = 86_400_000
const GIB = 1_073_741_824

/** Columns of a row of the table of causes in troubleshooting.md. “–” is left out. */
const rows = new Map(
  readFileSync('docs/guides/troubleshooting.md', 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, cause, page, log, todo] = /^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$/.exec(line) ?? []
      const shown = (text = '') => (text === '–' ? undefined : text)
      return cause === undefined || todo === undefined ? [] : [[cause, { page: shown(page), log: shown(log), todo }]]
    }),
)

it('troubleshooting.md explains each cause', () => {
  expect(CAUSES.filter((cause) => !rows.has(cause))).toEqual([])
})

describe('sixteen faults, broken one after the other', () => {
  let store: TestStore
  let pad: FakeDevice
  let panel: FakeDevice
  let station: string
  let log: string[]
  /** What the tests break. */
  let now: {
    agentAnswers: boolean
    brokerIsUp: boolean
    certificate: string | undefined
    cloudMs: number
    freeBytes: number
    backup: string | undefined
  }

  const PIN = '471108'
  let operatorId = ''
  beforeAll(async () => {
    log = []
    const note = (fields: object, message: string) => void log.push(`${message} ${JSON.stringify(fields)}`)
    now = {
      agentAnswers: true,
      brokerIsUp: true,
      certificate: undefined,
      cloudMs: 0,
      freeBytes: GIB,
      backup: undefined,
    }
    let openLine: ReturnType<typeof memoryBroker> | undefined
    store = await openStore({
      broker: true,
      parts: {
        log: { info: note, warn: note, error: note },
        openLine: (options, limitMs) => {
          if (!now.brokerIsUp) return Promise.reject(new Error('the port is closed'))
          const { storeId = '' } = parseTopic(options.will.topic) ?? {}
          openLine ??= memoryBroker(cloud(), { agentId: options.clientId, storeId })
          return openLine(options, limitMs)
        },
      },
      extra: async (shop, world) => {
        opened = shop.cloud.cloud
        station = shop.devices.pos_deactivator
        const made = await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Petersen', pin: PIN })
        operatorId = made.operatorId as string
        pad = fakeDevice(() => world.clock.elapsed())
        panel = fakeDevice(() => world.clock.elapsed())
        const tcp = (n: number) => ({ tcp: `10.0.0.${n}:502` })
        return {
          entries: [
            { deviceId: 'pad', driver: 'llrp', link: tcp(20), feeds: station },
            {
              deviceId: shop.devices.self_checkout_detacher,
              driver: 'modbus',
              link: tcp(21),
              output: 0,
              opensInEmergency: false,
              emergency: { input: 5, wiring: 'normally_closed', silenceSirens: true },
            },
            ...[station, shop.devices.exit_gate].map((deviceId, i) => ({
              deviceId,
              driver: 'modbus',
              link: tcp(2 * i),
              output: 0,
              confirmInput: 0,
              pulseMs: 200,
              pollMs: 200,
              opensInEmergency: false,
            })),
          ],
          devices: { pad: pad.device, [shop.devices.self_checkout_detacher]: panel.device },
        }
      },
    })
    writeFileSync(join(store.dataDir, 'credential'), `${CREDENTIAL}\n`)
    await store.until('the broker', () => store.agent.link.hasBroker)
  })
  afterAll(() => store.stop())

  let opened: Parameters<typeof memoryBroker>[0] | undefined
  function cloud() {
    if (!opened) throw new Error('the cloud is not open yet')
    return opened
  }

  const parts = (): DoctorParts => {
    const agent = localApp(store.agent, {
      hosts: () => [HOST],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      pushes: pushPort(),
      credential: () => CREDENTIAL,
    })
    return {
      platform: store.world,
      freeBytes: async () => now.freeBytes,
      openLink: () => Promise.reject(new Error('connection refused')),
      sendToCloud: () => async (url) => {
        if (now.certificate !== undefined)
          throw new TypeError('fetch failed', {
            cause: Object.assign(new Error(now.certificate), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
          })
        await store.fetch(url, {
          method: 'GET',
          headers: {},
          signal: AbortSignal.timeout(1_000),
          redirect: 'error',
        })
        return new Response('{}', { headers: { date: new Date(store.world.clock.wall() + now.cloudMs).toUTCString() } })
      },
      sendToAgent: async (url, init) => {
        if (!now.agentAnswers) throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })
        return agent.request(url, { ...init, headers: { ...(init?.headers as object), host: HOST } })
      },
      certificateEnd: async () => store.world.clock.wall() + 60 * DAY_MS,
    }
  }

  function allFindings(more: { config?: string } = {}): Promise<Finding[]> {
    const settings = { data: store.dataDir, minFreeMb: 200, backups: now.backup, ...more }
    return store.drive(checkStore(settings as Parameters<typeof checkStore>[0], parts()))
  }

  async function faults(): Promise<Finding[]> {
    return (await allFindings()).filter(({ state }) => state === 'wrong')
  }

  const statusOf = (deviceId: string) => store.agent.status().devices.find((d) => d.deviceId === deviceId)
  const finding = (code: FindingCode) => ({
    async arrange() {
      pad.emit({ type: 'finding', finding: { code, detail: `set "${code}" to 1`, isWarning: false } })
      await store.until('the finding', () => statusOf('pad')?.state === 'degraded')
    },
    async mend() {
      pad.emit({ type: 'finding_over', code })
      await store.until('the end', () => statusOf('pad')?.state === 'ready')
    },
  })
  const flag = (arrange: () => void, mend: () => void) => ({
    arrange: async () => arrange(),
    mend: async () => mend(),
  })
  const setFork = async (forkMs: number | null) => {
    await store.shop.cloud.db.database.write((db) => db.updateTable('agent').set({ fork_ms: forkMs }).execute())
    await store.until('the fork', () => (store.agent.status().ledgerDoubt === null) === (forkMs === null))
  }

  const breaks: Partial<Record<Cause, () => { arrange(): Promise<void>; mend(): Promise<void> }>> = {
    device_absent: () => ({
      async arrange() {
        store.boardPorts.station.unplug()
        await store.until('the fault', () => statusOf(station)?.state === 'absent')
      },
      async mend() {
        store.boardPorts.station.plug()
        await store.until('the repair', () => statusOf(station)?.state === 'ready')
      },
    }),
    reader_filters: () => finding('reader_filters'),
    reader_mode: () => finding('reader_mode'),
    reader_session: () => finding('reader_session'),
    echo: () => finding('echo'),
    emergency: () => ({
      async arrange() {
        panel.emit({ type: 'emergency', on: true })
        await store.until('the emergency', () => store.agent.status().emergency !== null)
      },
      async mend() {
        panel.emit({ type: 'emergency', on: false })
        await store.until('the end', () => store.agent.status().emergency === null)
      },
    }),
    cloud_unreachable: () => ({
      async arrange() {
        store.network(false)
        await store.until('offline', () => !store.agent.link.isOnline)
      },
      async mend() {
        store.network(true)
        await store.until('online', () => store.agent.link.isOnline && store.agent.link.hasBroker)
      },
    }),
    certificate: () =>
      flag(
        () => (now.certificate = 'self-signed certificate'),
        () => (now.certificate = undefined),
      ),
    broker_unreachable: () => ({
      async arrange() {
        now.brokerIsUp = false
        cutLine(cloud(), store.identity.agentId)
        await store.until('the attempt', () => log.some((line) => line.includes('the broker is offline')))
        await store.until('online again', () => store.agent.link.isOnline)
      },
      async mend() {
        now.brokerIsUp = true
        await store.until('the broker', () => store.agent.link.hasBroker)
      },
    }),
    clock_wrong: () =>
      flag(
        () => (now.cloudMs = -3 * DAY_MS),
        () => (now.cloudMs = 0),
      ),
    disk_low: () =>
      flag(
        () => (now.freeBytes = 0),
        () => (now.freeBytes = GIB),
      ),
    forked: () => ({ arrange: () => setFork(store.world.clock.wall()), mend: () => setFork(null) }),
    credential_refused: () =>
      flag(
        () => rmSync(join(store.dataDir, 'credential')),
        () => writeFileSync(join(store.dataDir, 'credential'), `${CREDENTIAL}\n`),
      ),
    backup_old: () =>
      flag(
        () => {
          now.backup = join(store.dataDir, 'backups')
          const made = join(now.backup, backupName(new Date(store.world.clock.wall() - 2 * DAY_MS).toISOString()))
          mkdirSync(made, { recursive: true })
          writeFileSync(join(made, 'backup.json'), '{}')
        },
        () => (now.backup = undefined),
      ),
    agent_silent: () => {
      let lock: { release(): void } | undefined
      return flag(
        () => {
          now.agentAnswers = false
          lock = lockDataDir(join(store.dataDir, 'agent.lock'), 'taken')
        },
        () => {
          now.agentAnswers = true
          lock?.release()
        },
      )
    },
    decommissioned_device: () => ({
      async arrange() {
        await store.drive(store.shop.ok('decommissionDevice', { deviceId: station }))
        await store.until('the policy', () => statusOf(station)?.state === 'decommissioned_device')
      },
      mend: () => Promise.resolve(),
    }),
  }

  it('says that the running agent uses another file, and names the faults of that file', async () => {
    const file = join(temporaryFolder('doctor'), 'other.json')
    const used = join(store.dataDir, 'used.json')
    writeFileSync(used, JSON.stringify({ devices: [] }))
    writeFileSync(file, JSON.stringify({ devices: [{ deviceId: 'dev_a', driver: 'modbos' }], hots: [] }))
    const { metadata, commits } = store.agent.ledger
    const faultsOf = async (config: string) =>
      findingLines((await allFindings({ config })).filter(({ state }) => state === 'wrong'))
    commits.now(() => metadata.set(CONFIG_IN_USE, configInUse(used)))
    expect(await faultsOf(file)).toEqual([
      `✗ configuration      ${file} has 2 faults:`,
      expect.stringMatching(/^ {21} {2}devices\[0\]\.driver: .*modbus/),
      expect.stringMatching(/^ {21} {2}hots: .*hosts/),
      expect.stringMatching(`^✗ configuration {6}the running agent uses ${used}, not ${file}: .*--config ${file}`),
    ])
    expect(await faultsOf(used)).toEqual([])
    writeFileSync(used, '{ "devices": [], "language": "de" }')
    expect(await faultsOf(used)).toEqual([
      expect.stringContaining('changed after the agent read it: restart the agent'),
    ])
  })

  it('finds no fault before', async () => {
    expect(await faults()).toEqual([])
  })

  it.each(Object.entries(breaks))('%s: doctor, guide, page and log name the same cause', async (name, make) => {
    const cause = name as Cause
    const row = rows.get(cause)
    const { arrange, mend } = make()
    log.length = 0
    await arrange()
    try {
      const found = await faults()
      expect([...new Set(found.map((each) => each.cause))]).toEqual([cause])
      for (const { detail } of found) expect(detail).toMatch(/[:(].{10,}/)
      // The certificate is broken for the doctor only.
      if (cause === 'certificate') return
      // Shoppers read less.
      expect(store.agent.lanes.signIn(station, { operatorId, pin: PIN }, 'test')).toMatchObject({ ok: true })
      const { body } = await store.local(`/station?device=${station}&lang=en`)
      expect(String(body)).toContain(row?.page ?? '')
      expect(log.join('\n')).toContain(row?.log ?? '')
    } finally {
      await mend()
    }
    if (cause !== 'decommissioned_device') expect(await faults()).toEqual([])
  })
})
