import { afterEach, describe, expect, it } from 'vitest'
import type { DeviceCommand } from '../../../device-drivers/kit/device.ts'
import { readConfig } from '../../../edge-agent/config.ts'
import { Emergency, UNREADABLE_AFTER_MS } from '../../../edge-agent/devices/emergency.ts'
import type { DeviceRecord } from '../../../edge-agent/devices/device-journal.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import type { DeviceType } from '../../../policy/vocabulary.ts'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../support/cloud.ts'
import { agentTopic, storeTopic } from '../../../policy/mqtt-topics.ts'
import { readSources } from '../../house/sources.ts'
import { openStore, type TestStore } from '../../support/store.ts'

describe('the emergency of an agent', () => {
  const CLOSED = { wiring: 'normally_closed', silenceSirens: false } as const
  const OPEN = { wiring: 'normally_open', silenceSirens: true } as const

  function bench(
    inputs: Record<string, typeof CLOSED | typeof OPEN>,
    open: string[],
    types: Record<string, DeviceType>,
    isListed: (deviceId: string) => boolean = () => true,
  ) {
    const platform = virtualPlatform()
    const commands: [string, DeviceCommand][] = []
    const events: DeviceRecord[] = []
    const wiring = { emergencyInputs: new Map(Object.entries(inputs)), openInEmergency: open, sirens: ['gate'] }
    const emergency = new Emergency({
      platform,
      wiring,
      deviceTypeOf: (deviceId) => types[deviceId],
      isListed,
      command: (deviceId, command) => void commands.push([deviceId, command]),
      record: (event) => void events.push(event),
      isOnline: () => false,
      onChange: () => undefined,
    })
    emergency.start()
    const state = (deviceId: string, now: 'ready' | 'absent') =>
      emergency.onState({ deviceId, state: now, findings: [] })
    const opened = () =>
      commands.flatMap(([deviceId, command]) => (command.kind === 'emergency' ? [[deviceId, command.open]] : []))
    return { platform, wiring, emergency, commands, events, state, opened }
  }

  it('includes devices that are added while it runs, also during an emergency', () => {
    const b = bench({ panel: CLOSED }, ['gate'], {})
    b.state('panel', 'ready')
    b.emergency.onLevel('panel', true)
    b.wiring.openInEmergency.push('cabinet')
    b.emergency.add('cabinet')
    b.wiring.emergencyInputs.set('button', OPEN)
    b.emergency.add('button')
    b.state('button', 'ready')
    b.emergency.onLevel('button', true)
    b.emergency.onLevel('panel', false)
    expect(b.emergency.state).toMatchObject({ inputs: ['button'], opened: ['gate', 'cabinet'] })
    b.emergency.onLevel('button', false)
    expect(b.opened()).toEqual([
      ['gate', true],
      ['cabinet', true],
      ['gate', true],
      ['cabinet', true],
      ['gate', false],
      ['cabinet', false],
    ])
  })

  it('commands a device again that was connected anew with other settings', () => {
    const b = bench({ panel: OPEN }, ['gate'], {})
    b.state('panel', 'ready')
    b.emergency.onLevel('panel', false)
    b.emergency.repeat('gate')
    b.emergency.onLevel('panel', true)
    expect(b.opened()).toEqual([
      ['gate', false],
      ['gate', false],
      ['gate', true],
    ])
  })

  it('opens at the first active level, before it records anything, and closes when the last input clears', () => {
    const b = bench({ panel: CLOSED, button: OPEN }, ['gate', 'cabinet'], {})
    for (const deviceId of ['panel', 'button']) b.state(deviceId, 'ready')
    b.emergency.onLevel('panel', true)
    expect(b.opened()).toEqual([
      ['gate', true],
      ['cabinet', true],
    ])
    b.emergency.onLevel('button', true)
    expect(b.commands.slice(2)).toEqual([
      ['gate', { kind: 'emergency', open: true, silent: true }],
      ['cabinet', { kind: 'emergency', open: true, silent: true }],
    ])
    b.emergency.onLevel('panel', false)
    expect(b.emergency.holdsOpen('gate')).toBe(true)
    b.emergency.onLevel('button', false)
    expect(b.opened().slice(-2)).toEqual([
      ['gate', false],
      ['cabinet', false],
    ])
    expect(b.emergency.state).toBeNull()
    expect(b.events.map(({ deviceId, reason }) => [deviceId, reason])).toEqual([
      ['gate', 'emergency_started'],
      ['cabinet', 'emergency_started'],
      ['panel', 'emergency_started'],
      ['gate', 'emergency_ended'],
      ['cabinet', 'emergency_ended'],
      ['button', 'emergency_ended'],
    ])
  })

  it('commands no output before it has read its inputs once', () => {
    const b = bench({ panel: CLOSED, button: OPEN }, ['gate'], {})
    b.state('panel', 'ready')
    b.emergency.onLevel('panel', false)
    expect(b.opened()).toEqual([])
    b.state('button', 'ready')
    b.emergency.onLevel('button', false)
    expect(b.opened()).toEqual([['gate', false]])
  })

  it('commands every output to normal at once if no device has an emergency input', () => {
    expect(bench({}, ['gate'], {}).opened()).toEqual([['gate', false]])
  })

  it('counts a lost normally closed input as active after 10 s, until it is read again', async () => {
    const b = bench({ panel: CLOSED }, ['gate'], {})
    b.state('panel', 'ready')
    b.emergency.onLevel('panel', false)
    b.state('panel', 'absent')
    await b.platform.advance(UNREADABLE_AFTER_MS - 1)
    expect(b.opened()).toEqual([['gate', false]])
    await b.platform.advance(1)
    expect(b.emergency.state).toMatchObject({ inputs: ['panel'], lost: ['panel'], opened: ['gate'] })
    b.state('panel', 'ready')
    expect(b.emergency.holdsOpen('gate')).toBe(true)
    b.emergency.onLevel('panel', false)
    expect(b.emergency.holdsOpen('gate')).toBe(false)
  })

  it('keeps the last level of a lost normally open input, active or not', async () => {
    for (const level of [true, false]) {
      const b = bench({ button: OPEN }, ['gate'], {})
      b.state('button', 'ready')
      b.emergency.onLevel('button', level)
      b.state('button', 'absent')
      await b.platform.advance(3_600_000)
      expect(b.emergency.holdsOpen('gate')).toBe(level)
    }
    const never = bench({ button: OPEN }, ['gate'], {})
    await never.platform.advance(UNREADABLE_AFTER_MS)
    expect(never.opened()).toEqual([['gate', false]])
  })

  it('does not count a connection lost for less than 10 s as an emergency', async () => {
    const b = bench({ panel: CLOSED }, ['gate'], {})
    for (let i = 0; i < 5; i++) {
      b.state('panel', 'ready')
      b.emergency.onLevel('panel', false)
      b.state('panel', 'absent')
      await b.platform.advance(UNREADABLE_AFTER_MS - 1_000)
    }
    expect(b.emergency.state).toBeNull()
  })

  it('never opens a detacher, a deactivator or a handheld reader', () => {
    for (const type of ['self_checkout_detacher', 'pos_deactivator', 'handheld_reader'] as const) {
      const b = bench({ button: OPEN }, ['gate', 'other'], { other: type })
      b.emergency.onLevel('button', true)
      expect(b.opened()).not.toContainEqual(['other', true])
      expect(b.emergency.state?.opened).toEqual(['gate'])
    }
  })

  it('ignores the input of a device that the policy does not list, also after its connection was lost', async () => {
    let hasPolicy = false
    const b = bench({ board: CLOSED }, ['gate'], {}, () => !hasPolicy)
    await b.platform.advance(UNREADABLE_AFTER_MS)
    // Without a policy, the configuration alone decides.
    expect(b.emergency.holdsOpen('gate')).toBe(true)
    hasPolicy = true
    b.emergency.refresh()
    b.emergency.onLevel('board', true)
    expect(b.emergency.state).toBeNull()
    expect(b.opened().at(-1)).toEqual(['gate', false])
  })

  it('ignores a level from a device without an emergency input', () => {
    const b = bench({ button: OPEN }, ['gate'], {})
    b.emergency.onLevel('gate', true)
    expect(b.emergency.state).toBeNull()
  })
})

describe('the configuration', () => {
  const LINK = { tcp: '10.0.0.7:502' }
  const faults = (...devices: Json[]) => {
    const checked = readConfig(JSON.stringify({ devices }))
    return checked.ok ? [] : checked.faults
  }
  const panel = { deviceId: 'panel', driver: 'modbus', link: LINK, emergency: { input: 5, wiring: 'normally_closed' } }
  const lock = { deviceId: 'lock', driver: 'modbus', link: LINK, output: 0 }

  it('requires for each output whether an emergency opens it', () => {
    expect(faults(panel, lock)).toEqual([expect.stringMatching(/^devices\[1\]\.opensInEmergency: give true/)])
    expect(faults(panel, { ...lock, opensInEmergency: true })).toEqual([])
    expect(faults(panel, { ...lock, opensInEmergency: false })).toEqual([])
    expect(faults(lock)).toEqual([])
  })

  it('requires the wiring of the input, and an output for devices that open', () => {
    expect(faults({ ...panel, emergency: { input: 5 } })).toEqual([expect.stringContaining('normally_closed')])
    expect(faults({ ...panel, opensInEmergency: true })).toEqual([expect.stringContaining('no output that releases')])
    const deactivator = { ...lock, confirmInput: 1, interlock: {}, opensInEmergency: true }
    expect(faults(deactivator)).toEqual([expect.stringContaining('a deactivator never moves in an emergency')])
  })

  it('rejects an emergency input at a reader that sends its reads by HTTP or MQTT', () => {
    const pushed = {
      deviceId: 'push',
      driver: 'http-ingest',
      link: { push: 'gate' },
      secret: 'a-long-enough-secret',
      mapping: 'keonn',
    }
    const zebra = { deviceId: 'zebra', driver: 'zebra-iotc', link: { mqtt: '10.0.0.5' }, topics: 'zebra/FX' }
    for (const entry of [pushed, zebra])
      expect(faults({ ...entry, emergency: { input: 1, wiring: 'normally_open' } })).toEqual([
        expect.stringContaining('emergency: no such setting'),
      ])
  })
})

const SECRET = 'a-secret-of-gate-1-alone'

describe('a store with a fire panel', () => {
  let store: TestStore
  /** Sends a message to the agent over the broker. */
  let receiveMessage: (topic: string, payload: string) => void
  let cabinet: RelayBoard
  let disk: string | undefined
  let fatal: Error[]
  afterEach(async () => {
    disk = undefined
    await store.stop()
  })

  /** Opens a store whose fire panel is wired to input 5 of the gate's board. */
  async function open({ cabinetOpens = false, wiring = 'normally_open', silenceSirens = false } = {}): Promise<void> {
    fatal = []
    store = await openStore({
      extra: async (shop, world) => {
        cabinet = new RelayBoard({ platform: world })
        const { serve } = cabinet
        const { deviceId } = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'cabinet_unlocker' })
        const board = (lane: string, i: number, more: Json) => ({
          deviceId: shop.devices[lane as 'exit_gate'],
          driver: 'modbus',
          link: { tcp: `10.0.0.${i}:502` },
          output: 0,
          confirmInput: 0,
          pulseMs: 200,
          ...more,
        })
        return {
          entries: [
            {
              deviceId: 'arch',
              driver: 'http-ingest',
              link: { push: 'gate-1' },
              secret: SECRET,
              mapping: 'keonn',
              feeds: shop.devices.exit_gate,
            },
            // A wrong setting, because the policy lists this device as a deactivator.
            board('pos_deactivator', 0, { opensInEmergency: true }),
            board('self_checkout_detacher', 1, { opensInEmergency: false }),
            board('exit_gate', 2, {
              opensInEmergency: true,
              siren: { output: 1, seconds: 60 },
              emergency: { input: 5, wiring, silenceSirens },
            }),
            {
              deviceId,
              driver: 'modbus',
              link: { tcp: '10.0.0.8:502' },
              output: 0,
              door: { input: 1, openSeconds: 5 },
              opensInEmergency: cabinetOpens,
            },
          ],
          ports: { '10.0.0.8:502': (link) => serve(link) },
        }
      },
      parts: {
        openLine(options) {
          receiveMessage = options.onMessage
          return Promise.resolve({ publish: () => undefined, subscribe: () => undefined, close: () => undefined })
        },
        onFatal: (why) => void fatal.push(why),
        log: { info: () => undefined, warn: () => undefined, error: () => expect(disk).toMatch(/IOERR/) },
        openLedgerFile(file) {
          const db = openLedgerFile(file)
          const prepare = db.prepare.bind(db)
          Object.defineProperty(db, 'prepare', {
            value: (sql: string) => {
              const statement = prepare(sql)
              if (sql !== 'COMMIT') return statement
              const run = statement.run.bind(statement)
              Object.defineProperty(statement, 'run', {
                value() {
                  if (disk === undefined) return run()
                  throw Object.assign(new Error('as planned'), { code: disk })
                },
              })
              return statement
            },
          })
          return db
        },
      },
    })
    await store.world.advance(500)
  }

  const panel = (on: boolean) => store.boards.gate.setInput(5, on)
  const isOpen = () => store.boards.gate.coils[0] === true
  const exceptions = () =>
    store.agent.ledger.journal
      .unsent(500, 0)
      .rows.flatMap(({ body }) => (body.event?.type === 'protection.exception.raised' ? [body.event.reason] : []))

  it('holds the gate open from 100 ms to the end of the emergency, moves nothing else, and records it afterwards', async () => {
    await open()
    store.network(false)
    panel(true)
    await store.world.advance(100)
    expect(isOpen()).toBe(true)
    await store.world.advance(5_000)
    expect(isOpen()).toBe(true)
    expect([store.pulses('station'), store.pulses('detacher'), cabinet.log.length]).toEqual([0, 0, 0])
    const { body } = await store.local('/v1/status')
    expect(body.emergency).toMatchObject({ opened: [store.shop.devices.exit_gate], lost: [], silent: false })
    expect(await store.local('/readyz')).toMatchObject({ status: 200, body: { emergency: true } })
    expect((await store.local('/metrics')).body).toContain('untag_emergency 1')
    panel(false)
    await store.world.advance(1_000)
    expect(isOpen()).toBe(false)
    expect((await store.local('/v1/status')).body.emergency).toBeNull()
    expect(exceptions()).toEqual(['emergency_started', 'emergency_ended'])
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
  })

  it('opens a cabinet with `opensInEmergency`, without an alarm for its door', async () => {
    await open({ cabinetOpens: true })
    panel(true)
    await store.world.advance(200)
    expect(cabinet.coils[0]).toBe(true)
    cabinet.setInput(1, true)
    await store.world.advance(6_000)
    expect(exceptions()).toEqual(['emergency_started', 'emergency_started'])
    panel(false)
    await store.world.advance(1_000)
    expect(cabinet.coils[0]).toBe(false)
  })

  it('opens while the disk is full, and records it when there is room', async () => {
    await open()
    disk = 'SQLITE_FULL'
    panel(true)
    await store.world.advance(100)
    expect(isOpen()).toBe(true)
    await store.world.advance(20_000)
    expect(exceptions()).toEqual([])
    disk = undefined
    await store.until('the record', () => exceptions().includes('emergency_started'))
  })

  it('opens although the ledger is not writable', async () => {
    await open()
    disk = 'SQLITE_IOERR_WRITE'
    panel(true)
    await store.world.advance(5_000)
    expect(fatal).toHaveLength(1)
    expect(isOpen()).toBe(true)
    disk = undefined
    await store.restart()
    await store.world.advance(1_000)
    expect(isOpen()).toBe(true)
    expect(exceptions()).toContain('emergency_started')
  })

  it('keeps the gate open through a restart of the agent', async () => {
    await open()
    panel(true)
    await store.world.advance(100)
    const before = store.boards.gate.log.length
    await store.restart(() => store.world.advance(5_000))
    await store.world.advance(2_000)
    expect(isOpen()).toBe(true)
    expect(store.boards.gate.log.slice(before).filter(({ coil }) => coil === 0)).toEqual([])
    panel(false)
    await store.world.advance(1_000)
    expect(isOpen()).toBe(false)
  })

  it('authorizes receipts at the open gate, and denies unpaid goods', async () => {
    await open()
    const [product] = store.shop.products
    const { receipt } = await store.buy([{ ean: product.ean, quantity: 1 }])
    panel(true)
    await store.world.advance(100)
    const exit = { deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit' }
    expect(await store.authorize({ ...exit, receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    const unpaid = await store.drive(store.shop.newItem(product))
    expect(await store.authorize({ ...exit, epc: unpaid.epc })).toMatchObject({ authorized: false })
    expect(isOpen()).toBe(true)
    expect(store.boards.gate.coils[1]).toBe(true)
    expect(exceptions()).not.toContain('unexpected_release')
  })

  it('marks the alarms that a gate raises meanwhile, at the gate and in the cloud', async () => {
    await open()
    const { storeId, devices, products } = store.shop
    const [first, second] = [
      await store.drive(store.shop.newItem(products[0])),
      await store.drive(store.shop.newItem(products[0])),
    ]
    const shown: unknown[] = []
    void (async () => {
      for await (const event of store.agent.feed.listen(new AbortController().signal))
        if (event.type === 'result' && event.result.kind === 'decision') shown.push(event.result.emergency)
    })()
    const exit = { deviceId: devices.exit_gate, protectionAction: 'authorize_exit' }
    panel(true)
    await store.world.advance(100)
    expect(await store.authorize({ ...exit, epc: first.epc })).toMatchObject({ authorized: false })
    panel(false)
    await store.world.advance(1_000)
    await store.authorize({ ...exit, epc: second.epc })
    expect(shown).toEqual([true, undefined])
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    const { alarms } = await store.drive(store.shop.ok('fetchAlarms', { storeId }))
    expect(alarms.map(({ epc, emergency }: Json) => [epc, emergency])).toEqual([
      [second.epc, undefined],
      [first.epc, true],
    ])
  })

  it('keeps the sirens silent with `silenceSirens`', async () => {
    await open({ silenceSirens: true })
    const unpaid = await store.drive(store.shop.newItem(store.shop.products[0]))
    const exit = { deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', epc: unpaid.epc }
    await store.authorize(exit)
    expect(store.boards.gate.coils[1]).toBe(true)
    panel(true)
    await store.world.advance(100)
    expect(store.boards.gate.coils[1]).toBe(false)
    await store.authorize(exit)
    await store.world.advance(100)
    expect(store.boards.gate.coils[1]).toBe(false)
  })

  it('is not started or ended by messages from the network', async () => {
    await open()
    const { storeId, devices } = store.shop
    const on = { type: 'emergency', on: true, deviceId: devices.exit_gate, emergency: true, open: true }
    for (const path of ['/v1/emergency', '/v1/events', '/v1/scan', '/v1/authorize', '/v1/status'])
      expect((await store.local(path, { method: 'POST', body: on })).status, path).toBeGreaterThanOrEqual(400)
    // A reader with the correct secret cannot start an emergency either.
    const pushed = { reads: [], ...on, gpi: 5, gpiTransitionEvent: { gpi: 5, transition: 'low-to-high' } }
    const headers = { authorization: `Bearer ${SECRET}` }
    await store.local('/ingest/gate-1', { method: 'POST', body: pushed, headers })
    await store.local('/ingest/gate-1', { method: 'POST', body: { reads: [pushed] }, headers })
    for (const topic of ['command', 'ack'] as const)
      receiveMessage(
        agentTopic(storeId, store.identity.agentId, topic),
        JSON.stringify({ command: 'emergency', ...on }),
      )
    for (const topic of ['fresh', 'policy', 'items'] as const)
      receiveMessage(storeTopic(storeId, topic), JSON.stringify(on))
    void store.scanners.gate.scan(JSON.stringify(on))
    await store.world.advance(3_000)
    expect(isOpen()).toBe(false)
    expect(store.agent.status().emergency).toBeNull()
    panel(true)
    await store.world.advance(100)
    for (const topic of ['command', 'ack'] as const)
      receiveMessage(
        agentTopic(storeId, store.identity.agentId, topic),
        JSON.stringify({ command: 'emergency', ...on, on: false }),
      )
    await store.world.advance(1_000)
    expect(isOpen()).toBe(true)
  })

  it('has levels of drivers as its only input, and commands as its only output', () => {
    const calls = (text: string) =>
      readSources(['edge-agent'])
        .filter(({ text: code }) => code.includes(text))
        .map(({ path }) => path)
    expect(calls('emergency.onLevel(')).toEqual(['edge-agent/devices/devices.ts'])
    expect(calls("kind: 'emergency'")).toEqual(['edge-agent/devices/emergency.ts'])
  })
})
