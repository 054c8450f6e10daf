import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { checkDevices } from '../../device-drivers/kit/check-devices.ts'
import { DeviceEntry, capabilitiesOf, DRIVER_NAMES } from '../../device-drivers/registry.ts'

const BOARD = {
  deviceId: 'dev_a',
  driver: 'modbus',
  link: { tcp: '127.0.0.1:5020' },
  unit: 1,
  output: 0,
  confirmInput: 0,
  pulseMs: 200,
}
const SERIAL = { serial: '/dev/serial/by-id/usb-x', baudRate: 9600 }
const SCANNER = { deviceId: 'dev_b', driver: 'scanner', link: SERIAL, feeds: 'dev_a' }

const faults = (...entries: unknown[]) => {
  const checked = checkDevices(entries)
  return 'errors' in checked ? checked.errors : []
}

describe('devices of the configuration', () => {
  test('accepts the example of the documentation and adds the defaults', () => {
    expect(checkDevices([BOARD, SCANNER])).toEqual({
      devices: [
        { ...BOARD, requestTimeoutMs: 500, pollMs: 20 },
        {
          ...SCANNER,
          link: { ...SERIAL, dataBits: 8, parity: 'none', stopBits: 1 },
          suffix: 'any',
          stx: false,
          duplicateMs: 500,
          staffCards: false,
        },
      ],
    })
  })

  test('lists all errors at once, each with its key and the fix', () => {
    expect(
      faults(
        { ...BOARD, unit: 'one', pulseMs: 5, outputt: 3, siren: { output: 1, seconds: 0 }, amber: 4 },
        { deviceId: 'x', driver: 'modbuss' },
        { deviceId: '', driver: 'scanner', link: { serial: '/dev/ttyUSB0' }, suffix: 'NL' },
        { ...SCANNER, deviceId: 'y', link: { udp: 'a' } },
        { ...BOARD, deviceId: 'z', output: 1, link: { tcp: '10.0.0.7' }, framing: 'ascii' },
        7,
      ),
    ).toEqual([
      'devices[0].unit: give the address of the board on its bus, 0 to 255 (RTU: 1 to 255)',
      'devices[0].pulseMs: give milliseconds, 20 to 10000',
      'devices[0].siren.seconds: give seconds, 1 to 3600',
      'devices[0].amber: give { "output": … }',
      'devices[0].outputt: no such setting; remove it or check its spelling',
      `devices[1].driver: give one of ${DRIVER_NAMES.map((name) => `"${name}"`).join(', ')}`,
      'devices[2].deviceId: give the deviceId of this device in the cloud',
      'devices[2].link.baudRate: give the speed in bits per second as set on the device, for example 9600',
      'devices[2].suffix: use "CR", "LF", "CRLF" or "TAB" as set on the scanner, or leave it out for CR and LF',
      'devices[3].link: give {"tcp": "host:port"} or {"serial": "/dev/serial/by-id/…", "baudRate": 9600}',
      'devices[4].link.tcp: give host and port, for example "10.0.0.7:502" or "[fe80::1]:502"',
      'devices[4].framing: use "tcp" (Modbus TCP) or "rtu" (serial line or raw serial device server)',
      expect.stringMatching(/^devices\[5\]: /),
    ])
  })

  test('accepts a scanner without feeds and a board without an output as separate devices', () => {
    const { feeds: _, ...handheld } = SCANNER
    const { output: __, confirmInput: ___, ...board } = BOARD
    expect(faults({ ...handheld, deviceId: 'dev_h' }, { ...board, siren: { output: 3 } })).toEqual([])
    expect(faults({ ...board, passageInput: 2 })).toEqual([])
  })

  test('rejects a board without an output that has release settings, or no purpose', () => {
    const { output: _, ...board } = BOARD
    expect(faults({ ...board, siren: { output: 3 }, door: { input: 2 } })).toEqual([
      'devices[0].confirmInput: belongs to a release; give "output" too, or remove it',
      'devices[0].door: belongs to a release; give "output" too, or remove it',
    ])
    const { confirmInput: __, ...idle } = board
    expect(faults(idle)).toEqual([
      'devices[0].output: give one of "output", "siren", "amber", "green", "passageInput", "beams", "emergency"',
    ])
  })

  test('rejects equal ids, shared outputs and links that cannot be shared', () => {
    expect(faults(BOARD, BOARD)).toEqual([
      'devices[1].deviceId: "dev_a" is used by devices[0] already; give every device its own',
      'devices[1].output: output 0 of unit 1 at tcp:127.0.0.1:5020 is taken by devices[0].output; use another output',
    ])
    expect(faults({ ...BOARD, siren: { output: 0 } })).toEqual([
      'devices[0].siren.output: output 0 of unit 1 at tcp:127.0.0.1:5020 is taken by devices[0].output; use another output',
    ])
    expect(faults(BOARD, { ...SCANNER, link: BOARD.link })).toEqual([
      'devices[1].link: tcp:127.0.0.1:5020 belongs to devices[0] alone; give this device its own link',
    ])
    const bus = { ...BOARD, link: SERIAL }
    expect(faults(bus, { ...bus, deviceId: 'dev_c', unit: 2, link: { ...SERIAL, baudRate: 19_200 } })).toEqual([
      'devices[1].link: serial:/dev/serial/by-id/usb-x is used as Modbus RTU, 9600 8N1 by devices[0], ' +
        'here as Modbus RTU, 19200 8N1; make them equal',
    ])
    expect(faults(bus, { ...bus, deviceId: 'dev_c', unit: 2 })).toEqual([])
  })

  test('refuses 0 as an RTU address, which every board obeys', () => {
    expect(faults({ ...BOARD, link: SERIAL, unit: 0 })).toEqual([
      'devices[0].unit: Modbus RTU boards have addresses 1 to 255; all boards obey 0, and none answers',
    ])
    expect(faults({ ...BOARD, unit: 255 })).toEqual([])
  })

  test.each([undefined, null, {}, 'x'])('rejects %j, which is no list', (value) => {
    expect(checkDevices(value)).toEqual({ errors: ['devices: give a list, [] for none'] })
  })

  test('requires a key or "insecure" of an OSDP device, and a password of a pad that kills', () => {
    const lock = { deviceId: 'lock', driver: 'osdp', link: SERIAL, key: '00112233445566778899AABBCCDDEEFF' }
    expect(faults(lock)).toEqual([])
    expect(faults({ ...lock, key: undefined, insecure: true })).toEqual([])
    for (const bad of [
      { key: undefined },
      { insecure: true },
      { key: '303132333435363738393A3B3C3D3E3F' },
      { key: 'secret' },
      { confirmInput: 0 },
      { pulseMs: 250 },
    ]) {
      expect(faults({ ...lock, ...bad }), JSON.stringify(bad)).toHaveLength(1)
    }
    expect(faults(lock, { ...lock, deviceId: 'other' })).toEqual([expect.stringContaining('address 0 at serial:')])
    expect(faults(lock, { ...lock, deviceId: 'other', address: 1 })).toEqual([])
    const pad = { deviceId: 'pad', driver: 'uhf-m100', link: SERIAL }
    expect(faults({ ...pad, deactivate: { method: 'kill', password: '00000000' } })).toEqual([
      'devices[0].deactivate.password: a tag with the kill password 00000000 cannot be killed',
    ])
    expect(faults({ ...pad, deactivate: { method: 'kill' } })).toHaveLength(1)
  })

  test.each(['mqtt', 'mqtts'])('rejects a password at a broker (%s) without a user', (scheme) => {
    const zebra = { deviceId: 'gate', driver: 'zebra-iotc', topics: 'zebra/a' }
    const link = { [scheme]: '10.0.0.5', password: 'secret' }
    expect(faults({ ...zebra, link })).toEqual(['devices[0].link.user: give the user that the password belongs to'])
    expect(faults({ ...zebra, link: { ...link, user: 'untag' } })).toEqual([])
  })

  test('names what a release does at each driver: output, named tag, or nothing', () => {
    const tcp = { tcp: '10.0.0.7:5084' }
    const [llrp, kill] = [{ driver: 'llrp', link: tcp }, { kill: { password: '12AB34CD' } }]
    const impinj = { driver: 'impinj-iot', link: { http: '10.0.0.9' }, password: 'x' }
    const zebra = { driver: 'zebra-iotc', link: { mqtt: '10.0.0.5' }, topics: 'zebra/a' }
    const osdp = { driver: 'osdp', link: SERIAL, insecure: true }
    const pad = { driver: 'uhf-m100', link: SERIAL }
    const release = { release: { gpo: 4 } }
    const cases: [string, object][] = [
      ['output', BOARD],
      ['output', { ...llrp, ...release }],
      ['output', { ...impinj, ...release }],
      ['output', { ...zebra, ...release }],
      ['output', { ...osdp, output: 0 }],
      ['tag', { ...llrp, ...kill }],
      ['tag', { ...llrp, eas: {} }],
      ['tag', { ...pad, deactivate: { method: 'eas' } }],
      ['tag', { driver: 'pcsc', link: { pcsc: 'a' } }],
      ['nothing', llrp],
      ['nothing', impinj],
      ['nothing', zebra],
      ['nothing', osdp],
      ['nothing', pad],
      ['nothing', SCANNER],
      ['nothing', { driver: 'thingmagic', link: SERIAL, region: 'europe' }],
      [
        'nothing',
        { driver: 'http-ingest', link: { push: 'gate-1' }, secret: 'k3ep-th1s-to-y0urself', mapping: 'keonn' },
      ],
    ]
    expect(
      cases.map(([, entry]) => {
        const checked = DeviceEntry.parse({ deviceId: 'dev_x', ...entry })
        return capabilitiesOf(checked).releases
      }),
    ).toEqual(cases.map(([does]) => does))
  })

  test('rejects more than 64 devices', () => {
    expect(checkDevices(Array.from({ length: 65 }, () => BOARD))).toMatchObject({
      errors: [expect.stringContaining('64')],
    })
  })

  test('publishes the schema', () => {
    const schema = z.toJSONSchema(DeviceEntry, { io: 'input' })
    expect(schema.oneOf).toHaveLength(DRIVER_NAMES.length)
    expect(schema.oneOf?.[0]).toMatchObject({
      additionalProperties: false,
      required: ['deviceId', 'driver', 'link'],
    })
  })
})
