import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeviceEntry } from '../../../device-drivers/registry.ts'
import { configFile } from '../../../host/config-file.ts'
import { type DeviceCommand, result } from '../../../device-drivers/kit/device.ts'
import { configSchema } from '../../../edge-agent/config.ts'
import { MANAGER_SETTINGS, Setup, TEST_MS, type SetupParts } from '../../../edge-agent/setup/setup.ts'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { withDevice } from '../../../edge-agent/setup/config-file.ts'
import type { Json } from '../../support/cloud.ts'
import { temporaryFolder } from '../../support/databases.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** Settings of links, inputs and reads. A setting that acts or serves another device belongs to `MANAGER_SETTINGS`. */
const HARMLESS =
  'address antennas beams cards check clock confirmInput deviceId door driver duplicateMs echo framing goneMs gpoBy hardwarePulse inputs insecure installMode interByteMs interlock ' +
  'keepaliveMs keepaliveSeconds key link mapping ndef nearDbm passageInput password pollMs powerDbm preset pulseMs readOnBeam readWhile region repeatMs requestTimeoutMs rfMode searchMode secret session setMode silentAfterSeconds start stx suffix tagPopulation topics transmitPowerDbm unit user'

describe('a device that the set-up page registers with a code', () => {
  let store: TestStore
  let folder: string
  let file: string
  let board: RelayBoard
  const entry = (output: number, more: Json = {}) => ({
    deviceId: 'dev_…',
    driver: 'modbus',
    link: { tcp: '10.0.0.20:502' },
    output,
    ...more,
  })
  beforeAll(async () => {
    folder = temporaryFolder('add-device')
    file = join(folder, 'edge.json')
    store = await openStore({
      parts: { configFile: configFile(file) },
      extra: async (_shop, platform) => {
        board = new RelayBoard({ platform, locks: [] })
        return { ports: { '10.0.0.20:502': (link) => board.serve(link) } }
      },
    })
    writeConfig()
  })
  afterAll(async () => {
    await store.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  function writeConfig(): void {
    writeFileSync(file, JSON.stringify({ devices: store.agent.config.devices, sounds: false }))
    chmodSync(file, 0o640)
  }
  const newCode = async () =>
    (await store.drive(store.shop.ok('createSetupCode', { storeId: store.shop.storeId }))).code as string
  const post = (path: string, body: Json) => store.local(`/v1/setup/${path}`, { method: 'POST', body })
  const add = (code: string, device: Json, more: Json = {}) =>
    post('devices', { entry: device, registration: { code, deviceType: 'pos_deactivator', ...more } })
  const inFile = () => (JSON.parse(readFileSync(file, 'utf8')) as Json).devices.map((d: Json) => d.deviceId)
  const pulses = (coil: number) => board.log.filter((change) => change.coil === coil && change.on).length
  const ofCloud = async () =>
    (await store.drive(store.shop.ok('fetchDevices', { storeId: store.shop.storeId }))).devices

  it('is registered, saved and used at once, while the other devices stay connected', async () => {
    const before = store.agent.status().devices
    const code = await newCode()
    const { status, body } = await add(code, entry(0), { name: 'Kasse 3' })
    expect([status, body]).toEqual([200, { file, deviceId: expect.stringMatching(/^dev_/), isInUse: true }])
    const { deviceId } = body
    expect(await ofCloud()).toContainEqual(
      expect.objectContaining({ deviceId, name: 'Kasse 3', agentId: store.identity.agentId }),
    )
    expect(inFile()).toEqual([...before.map((d) => d.deviceId), deviceId])
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ sounds: false })
    expect(statSync(file).mode & 0o777).toBe(0o640)
    const own = () => store.agent.status().devices.find((d) => d.deviceId === deviceId)
    await store.until('the new device', () => own()?.state === 'ready')
    expect(own()).toMatchObject({ name: 'Kasse 3', deviceType: 'pos_deactivator' })
    expect(store.agent.status().devices.filter((d) => d.deviceId !== deviceId)).toEqual(before)
    // The new device releases a purchase without a restart of the agent.
    const product = store.shop.products.find(({ tagged }: Json) => tagged) ?? store.shop.products[0]
    const { receipt } = await store.buy([{ ean: product?.ean, quantity: 1 }])
    expect(await store.authorize({ deviceId, protectionAction: 'deactivate_label', receipt })).toMatchObject({
      authorized: true,
      outcome: 'confirmed',
    })
    expect(pulses(0)).toBe(1)
  })

  it('can be tested, and the journal has each release', async () => {
    const { deviceId } = (await add(await newCode(), entry(1, { green: { output: 2 } }))).body
    await store.until('the new device', () =>
      store.agent.status().devices.some((d) => d.deviceId === deviceId && d.state === 'ready'),
    )
    const test = (output: string, id = deviceId) => post('test', { deviceId: id, output })
    expect((await test('green')).body).toMatchObject({ outcome: 'confirmed' })
    expect(pulses(2)).toBe(1)
    expect((await test('siren')).body).toMatchObject({
      outcome: 'failed',
      detail: expect.stringMatching(/not_supported/),
    })
    expect(pulses(1)).toBe(0)
    expect((await test('release')).body).toMatchObject({ outcome: 'confirmed' })
    expect(pulses(1)).toBe(1)
    await store.drive(store.agent.link.whenReported(5_000))
    const { events } = await store.drive(store.shop.ok('fetchProtectionEvents', { storeId: store.shop.storeId }))
    expect(events.filter((e: Json) => e.reason === 'device_tested')).toEqual([expect.objectContaining({ deviceId })])
    // Devices that were registered otherwise cannot be moved.
    const closed = await test('release', store.shop.devices.self_checkout_detacher)
    expect([closed.status, closed.body.code]).toEqual([403, 'test_not_allowed'])
    expect([pulses(1), store.pulses('detacher')]).toEqual([1, 0])
  })

  it('is refused with a reason, and a faulty entry uses up no code', async () => {
    const before = readFileSync(file, 'utf8')
    const refused = async (...args: Parameters<typeof add>) => {
      const { status, body } = await add(...args)
      return [status, body.code]
    }
    const code = await newCode()
    // Output 0 belongs to a configured device.
    expect(await refused(code, entry(0))).toEqual([400, 'invalid-argument'])
    expect(await refused(code, entry(3, { driver: 'x' }))).toEqual([400, 'invalid-argument'])
    expect(await refused(code, entry(3, { deviceId: store.shop.devices.exit_gate }))).toEqual([400, 'invalid-argument'])
    expect(await refused('AAAA-AAAA-AAAA', entry(3))).toEqual([403, 'setup_code_wrong'])
    store.network(false)
    expect(await refused(code, entry(3))).toEqual([503, 'cloud_unreachable'])
    store.network(true)
    await store.until('the cloud again', () => store.agent.link.isOnline)
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect((await add(code, entry(3))).status).toBe(200)
    expect(await refused(code, entry(4))).toEqual([403, 'setup_code_used'])
    const late = await newCode()
    await store.shop.cloud.db.database.write((db) => db.updateTable('setup_code').set({ expires_ms: 1 }).execute())
    expect(await refused(late, entry(4))).toEqual([403, 'setup_code_expired'])
  })

  it('needs no code for a scanner that serves another device, and refuses to use one up', async () => {
    const code = await newCode()
    const station = store.shop.devices.pos_deactivator
    const scanner = { driver: 'scanner', link: { tcp: '10.0.0.20:4001' }, feeds: station }
    const count = (await ofCloud()).length
    const refused = await add(code, { deviceId: 'dev_…', ...scanner })
    expect([refused.status, refused.body.details]).toEqual([400, [expect.objectContaining({ path: 'entry.feeds' })]])
    expect((await ofCloud()).length).toBe(count)
    // The code still registers a device, and the scanner may serve that one.
    const { deviceId } = (await add(code, entry(6))).body
    const { status, body } = await post('devices', { entry: { ...scanner, deviceId: 'scanner_7', feeds: deviceId } })
    expect([status, body]).toEqual([200, { file, deviceId: 'scanner_7', isInUse: true }])
    expect(store.agent.status().devices.find((d) => d.deviceId === 'scanner_7')).toMatchObject({ feeds: deviceId })
  })

  it('needs a code for each setting that acts, or serves another device of the store', async () => {
    const gate = store.shop.devices.exit_gate
    const link = { tcp: '10.0.0.66:502' }
    const llrp = { driver: 'llrp', link: { tcp: '10.0.0.66:5084' } }
    const refused: [string[], Json][] = [
      [['opensInEmergency', 'output'], { driver: 'modbus', link, output: 0, opensInEmergency: true }],
      [['siren'], { driver: 'modbus', link, siren: { output: 0 } }],
      [['green'], { driver: 'modbus', link, passageInput: 1, green: { output: 0 } }],
      [['feeds'], { ...llrp, feeds: gate }],
      [['feeds', 'staffCards'], { driver: 'scanner', link, feeds: gate, staffCards: true }],
    ]
    for (const [settings, device] of refused) {
      const { status, body } = await post('devices', { entry: { deviceId: 'x1', ...device } })
      expect([status, body.code]).toEqual([403, 'setup_code_needed'])
      expect(body.details.map((each: Json) => each.path)).toEqual(settings.map((name) => `entry.${name}`))
      expect(body.error).toMatch(/restart the agent/)
    }
    expect(inFile()).not.toContain('x1')
  })

  it('needs a code for every setting of a driver that is not known to be harmless', () => {
    const { oneOf, anyOf } = (configSchema() as Json).properties.devices.items
    const names = new Set<string>((oneOf ?? anyOf).flatMap((driver: Json) => Object.keys(driver.properties)))
    expect([...names].filter((name) => !MANAGER_SETTINGS.includes(name)).toSorted()).toEqual(HARMLESS.split(' '))
  })

  it('is used with its changed settings and its new name at once, while the other devices stay connected', async () => {
    const { deviceId } = (await add(await newCode(), entry(4, { pulseMs: 200 }), { name: 'Kasse' })).body
    const own = () => store.agent.status().devices.find((d) => d.deviceId === deviceId)
    await store.until('the new device', () => own()?.state === 'ready')
    const others = () => store.agent.status().devices.filter((d) => d.deviceId !== deviceId)
    const before = others()
    const change = (changed: Json) => post('change', { deviceId, ...changed })
    const lengthOf = async () => {
      const from = board.log.length
      expect((await post('test', { deviceId, output: 'release' })).body).toMatchObject({ outcome: 'confirmed' })
      await store.world.advance(2_000)
      const changes = board.log.slice(from).filter(({ coil }) => coil === 4)
      const began = changes.find(({ on }) => on)?.at ?? 0
      return (changes.findLast(({ on }) => !on)?.at ?? 0) - began
    }
    expect(Math.round((await lengthOf()) / 100)).toBe(2)
    const { body } = await change({ entry: entry(4, { deviceId, pulseMs: 900 }), name: 'Kasse 9' })
    expect(body).toEqual({ file, isInUse: true })
    await store.until('the device again', () => own()?.state === 'ready')
    expect(Math.round((await lengthOf()) / 100)).toBe(9)
    expect([others(), store.agent.status().isRestartDue]).toEqual([before, false])
    await store.until('the name', () => own()?.name === 'Kasse 9')
    expect((await ofCloud()).find((d: Json) => d.deviceId === deviceId)).toMatchObject({ name: 'Kasse 9' })
    // Without the cloud the settings stay as they are, too, so that the technician repeats both.
    store.network(false)
    const offline = await change({ entry: entry(4, { deviceId, pulseMs: 300 }), name: 'Kasse 10' })
    expect([offline.status, offline.body.code]).toEqual([503, 'cloud_unreachable'])
    expect((await change({ entry: entry(4, { deviceId, pulseMs: 400 }), name: 'Kasse 9' })).status).toBe(200)
    store.network(true)
    await store.until('the cloud again', () => store.agent.link.isOnline)
  })

  it('is changed and removed on the page that added it, and no other device is', async () => {
    const { deviceId } = (await add(await newCode(), entry(7))).body
    const change = (id: string, changed?: Json) => post('change', { deviceId: id, ...(changed && { entry: changed }) })
    const wrong = async (...args: Parameters<typeof change>) => {
      const { status, body } = await change(...args)
      return [status, body.code, body.details?.[0]?.path]
    }
    expect(store.agent.status().isRestartDue).toBe(false)
    const own = entry(8, { deviceId, pulseMs: 700 })
    const { status, body } = await change(deviceId, own)
    expect([status, body]).toEqual([200, { file, isInUse: true }])
    expect([store.agent.status().isRestartDue, store.agent.setup.isRemoved(deviceId)]).toEqual([false, false])
    const find = () =>
      (JSON.parse(readFileSync(file, 'utf8')) as Json).devices.find((d: Json) => d.deviceId === deviceId)
    expect(find()).toEqual(own)
    expect(statSync(file).mode & 0o777).toBe(0o640)
    // A faulty change, another id, and a device in use are refused, and change nothing.
    const before = readFileSync(file, 'utf8')
    const gate = store.shop.devices.exit_gate ?? ''
    expect(await wrong(deviceId, { ...own, output: -1 })).toEqual([400, 'invalid-argument', 'entry.output'])
    expect(await wrong(deviceId, { ...own, deviceId: 'x2' })).toEqual([400, 'invalid-argument', 'entry.deviceId'])
    expect(await wrong(deviceId, { ...own, feeds: gate })).toEqual([400, 'invalid-argument', 'entry.feeds'])
    for (const id of [gate, 'dev_of_nobody']) {
      expect(await wrong(id)).toEqual([403, 'change_not_allowed', undefined])
      expect(await wrong(id, { ...own, deviceId: id })).toEqual([403, 'change_not_allowed', undefined])
    }
    expect(readFileSync(file, 'utf8')).toBe(before)
    // Changes for emergencies wait for a restart.
    const opening = await change(deviceId, { ...own, opensInEmergency: true })
    expect([opening.body, store.agent.status().isRestartDue]).toEqual([{ file, isInUse: false }, true])
    expect((await change(deviceId)).status).toBe(200)
    expect(inFile()).not.toContain(deviceId)
    expect(store.agent.setup.isRemoved(deviceId)).toBe(true)
    // The agent still holds it, so its outputs stay still until the restart.
    expect((await post('test', { deviceId, output: 'release' })).body.code).toBe('test_not_allowed')
    expect(await wrong(deviceId)).toEqual([403, 'change_not_allowed', undefined])
  })

  it('gets by a change no setting that needs a code, if it came without one', async () => {
    const { storeId } = store.shop
    const registered = await store.shop.ok('registerDevice', {
      storeId,
      deviceType: 'handheld_reader',
      name: 'Handgerät',
      workflowType: 'staff_assisted',
    })
    await store.agent.link.refreshDocuments()
    const deviceId = registered.deviceId as string
    const reader = { deviceId, driver: 'scanner', link: { tcp: '10.0.0.20:4009' } }
    // The link of a device that nobody registered could be that of the gate, under another name.
    const unknown = await post('devices', { entry: { ...reader, deviceId: 'reader_9' } })
    expect([unknown.status, unknown.body.details[0].path]).toEqual([400, 'entry.deviceId'])
    expect((await post('devices', { entry: reader })).status).toBe(200)
    const { status, body } = await post('change', {
      deviceId,
      entry: { ...reader, feeds: store.shop.devices.exit_gate, staffCards: true },
    })
    expect([status, body.code]).toEqual([403, 'setup_code_needed'])
    expect(body.details.map((each: Json) => each.path)).toEqual(['entry.feeds', 'entry.staffCards'])
    const named = await post('change', { deviceId, entry: reader, name: 'x' })
    expect([named.status, named.body.details[0].path]).toEqual([400, 'entry.name'])
    expect((await post('change', { deviceId, entry: { ...reader, duplicateMs: 900 } })).status).toBe(200)
    expect((await post('change', { deviceId })).status).toBe(200)
  })

  it('waits for a restart if the file has other changes too', async () => {
    const whole = JSON.parse(readFileSync(file, 'utf8')) as Json
    whole.devices[0].pulseMs = 900
    writeFileSync(file, JSON.stringify(whole))
    const { status, body } = await add(await newCode(), entry(5))
    expect([status, body.isInUse]).toEqual([200, false])
    expect(store.agent.status().devices.some((d) => d.deviceId === body.deviceId)).toBe(false)
    expect(inFile()).toContain(body.deviceId)
  })
})

describe('the set-up of an agent', () => {
  const registration = { code: 'K7QX-2M9T-4WZ1', deviceType: 'exit_gate' } as const

  const ENTRY = DeviceEntry.parse({
    deviceId: 'dev_1',
    driver: 'modbus',
    link: { tcp: '10.0.0.20:502' },
    siren: { output: 1 },
  })

  function bench(write: () => void = () => undefined) {
    const platform = virtualPlatform()
    const commands: DeviceCommand[] = []
    const entries: (typeof ENTRY)[] = []
    const added = () => ({ ok: true as const, devices: [] })
    const parts: Partial<SetupParts> = {
      platform,
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      refused: () => undefined,
      configFile: {
        name: 'edge.json',
        check: added,
        add: () => (write(), added()),
        entry: () => ENTRY,
        replace: () => (write(), added()),
      },
      link: {
        call: async () => ({ kind: 'answered', body: { deviceId: 'dev_1' } }),
        bind: async () => undefined,
        refreshDocuments: async () => undefined,
        isOnline: true,
      },
      devices: {
        supervisor: undefined,
        entries,
        extend: () => (entries.push(ENTRY), true),
        change: async () => true,
        execute: async (_deviceId, command) => (commands.push(command), result('confirmed', true, 'acknowledged')),
      },
    }
    return { platform, commands, setup: new Setup(parts as SetupParts) }
  }

  it('ends the tests of a device 15 minutes after its registration', async () => {
    const { setup, platform, commands } = bench()
    await setup.add({ entry: {}, registration })
    await platform.advance(TEST_MS - 1)
    expect(await setup.test('dev_1', 'siren')).toMatchObject({ ok: true })
    await platform.advance(1)
    expect(await setup.test('dev_1', 'siren')).toMatchObject({ code: 'test_not_allowed' })
    expect(commands).toEqual([{ kind: 'signal', signal: 'siren', seconds: 2 }])
  })

  it('ends the changes of a device 15 minutes after it was added', async () => {
    const { setup, platform } = bench()
    await setup.add({ entry: {}, registration })
    await platform.advance(TEST_MS - 1)
    expect(await setup.change('dev_1', {})).toMatchObject({ ok: true })
    await platform.advance(1)
    expect(await setup.change('dev_1', {})).toMatchObject({ code: 'change_not_allowed' })
  })

  it('offers and moves only outputs that the device has', async () => {
    const { setup, commands } = bench()
    expect(setup.testable('dev_1')).toEqual([])
    await setup.add({ entry: {}, registration })
    expect(setup.testable('dev_1')).toEqual(['siren'])
    for (const output of ['green', 'amber', 'release'] as const)
      expect(await setup.test('dev_1', output)).toMatchObject({
        ok: true,
        result: { outcome: 'failed', detail: expect.stringMatching(/^not_supported/) },
      })
    // Nothing was sent to the device, and nothing was recorded: this set-up has no journal.
    expect(commands).toEqual([])
  })

  it('names a missing decision about fires together with the other faults', () => {
    const alarm = { deviceId: 'dev_panel', driver: 'modbus', link: { tcp: '127.0.0.1:502' } }
    const emergency = { input: 5, wiring: 'normally_closed' }
    const before = { devices: [{ ...alarm, emergency, output: 0, opensInEmergency: true }] }
    const gate = { deviceId: 'dev_gate', driver: 'modbus', output: 1 }
    const { link } = alarm
    const faults = (entry: Json) => {
      const edited = withDevice(JSON.stringify(before), entry)
      return edited.ok ? [] : edited.ofEntry.map(({ path }) => path)
    }
    expect(faults(gate)).toEqual(['link', 'opensInEmergency'])
    expect(faults({ ...gate, link })).toEqual(['opensInEmergency'])
    expect(faults({ ...gate, opensInEmergency: true })).toEqual(['link'])
    expect(faults({ ...gate, link, opensInEmergency: true })).toEqual([])
  })

  it('needs a code of its own for emergency settings, also at a device that serves a new one', async () => {
    const { setup, platform } = bench()
    const emergency = { input: 5, wiring: 'normally_closed', silenceSirens: true }
    const refused = async (entry: Json) => {
      const added = await setup.add({ entry: { deviceId: 'x1', ...entry } })
      return added.ok ? [] : added.ofEntry?.map(({ path }) => path)
    }
    expect(await refused({ emergency })).toEqual(['emergency'])
    expect(await refused({ opensInEmergency: true, output: 0 })).toEqual(['opensInEmergency', 'output'])
    await setup.add({ entry: {}, registration })
    expect(await refused({ feeds: 'dev_1', siren: { output: 1 }, emergency })).toEqual(['emergency'])
    expect(await refused({ feeds: 'dev_1', output: 0, opensInEmergency: false })).toEqual([])
    await platform.advance(TEST_MS)
    expect(await refused({ feeds: 'dev_1' })).toEqual(['feeds'])
  })

  it('repeats with the same code after the file could not be written', async () => {
    let isFull = true
    const { setup } = bench(() => {
      if (isFull) throw new Error('ENOSPC')
    })
    expect(await setup.add({ entry: {}, registration })).toMatchObject({
      code: 'config_not_written',
      error: 'edge.json cannot be written: ENOSPC',
    })
    isFull = false
    expect(await setup.add({ entry: {}, registration })).toMatchObject({ ok: true, deviceId: 'dev_1' })
  })

  it('asks for the id of a registered device if there is no code', async () => {
    const { setup } = bench()
    expect(await setup.add({ entry: { deviceId: 'dev_2' } })).toMatchObject({ ok: true, deviceId: 'dev_2' })
    expect(await setup.add({ entry: { deviceId: 'dev_2' }, registration })).toMatchObject({ code: 'invalid-argument' })
    expect(setup.testable('dev_2')).toEqual([])
  })
})
