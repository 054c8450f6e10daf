import { describe, expect, it } from 'vitest'
import { wiringOf } from '../../../edge-agent/devices/wiring.ts'
import { entries } from '../../device-drivers/workbench.ts'

const TCP = { tcp: '10.0.0.7:502' }
const LLRP = { driver: 'llrp', link: { tcp: '10.0.0.8:5084' } }
const SIDES = { inside: [1], outside: [2] }
const KEY = '00112233445566778899AABBCCDDEEFF'
const MODBUS = { driver: 'modbus', link: TCP, output: 0 }
const OSDP = { driver: 'osdp', link: TCP, key: KEY }
const M100 = { driver: 'uhf-m100', link: TCP }
const THINGMAGIC = { driver: 'thingmagic', link: TCP, region: 'europe' }
const PCSC = { driver: 'pcsc', link: { pcsc: 'ACR1552' } }
const IMPINJ = { driver: 'impinj-iot', link: { http: '10.0.0.9' }, password: 'secret' }
const ZEBRA = { driver: 'zebra-iotc', link: { mqtt: '10.0.0.5' }, topics: 'zebra/FX9600' }
const PUSH = { driver: 'http-ingest', link: { push: 'gate' }, secret: 'k3ep-th1s-to-y0urself', mapping: 'keonn' }
const SCANNER = { driver: 'scanner', link: TCP, feeds: 'other' }

const wired = (...settings: Record<string, unknown>[]) =>
  wiringOf(entries(...settings.map((each, i) => ({ deviceId: i === 0 ? 'dev' : `dev${i}`, ...each }))))

describe('the wiring of a device', () => {
  it.each<[string, Record<string, unknown>]>([
    ['a modbus input', { ...MODBUS, passageInput: 4 }],
    ['the beams of a modbus people counter', { ...MODBUS, beams: { outside: 1, inside: 2 } }],
    ['an osdp input', { ...OSDP, passageInput: 1 }],
    ['an llrp input', { ...LLRP, passageInput: 1 }],
    ['an impinj-iot input', { ...IMPINJ, passageInput: 1 }],
  ])('treats %s as a passage sensor', (_, device) => {
    expect(wired(device).hasPassageSensor('dev')).toBe(true)
  })

  it.each([MODBUS, OSDP, LLRP, IMPINJ, ZEBRA, PUSH, PCSC, M100, THINGMAGIC, SCANNER])(
    'has no passage sensor, sides, confirming input or staff cards unless they are configured: $driver',
    (device) => {
      const wiring = wired(device)
      expect(wiring.hasPassageSensor('dev')).toBe(false)
      expect(wiring.looksLikeGate('dev')).toBe(false)
      expect(wiring.antennasOf('dev')).toBeUndefined()
      expect(wiring.confirmInputOf('dev')).toBeUndefined()
      expect(wiring.readsStaffCards('dev')).toBe(false)
      expect(wiring.minimumRssiOf('dev')).toBeUndefined()
      expect(wiring.sirenSecondsOf('dev')).toBe(5)
    },
  )

  it.each([LLRP, IMPINJ, ZEBRA, PUSH])('treats a reader with sides as a gate: $driver', (reader) => {
    const wiring = wired({ ...reader, antennas: SIDES })
    expect(wiring.antennasOf('dev')).toEqual(SIDES)
    expect(wiring.looksLikeGate('dev')).toBe(true)
  })

  it('takes the direction from two readers of one gate, with one side each', () => {
    const [inside, outside] = [
      { inside: [1], outside: [] },
      { inside: [], outside: [1] },
    ]
    const one = { ...PUSH, deviceId: 'one', feeds: 'gate', antennas: inside }
    const two = { ...PUSH, deviceId: 'two', link: { push: 'two' }, feeds: 'gate', antennas: outside }
    const wiring = wired(one)
    expect(wiring.antennasOf('one')).toBeUndefined()
    const [second] = entries(two)
    if (second) wiring.add(second)
    expect(['one', 'two'].map(wiring.antennasOf)).toEqual([inside, outside])
  })

  it('does not treat a plain list of antennas as sides', () => {
    const wiring = wired({ ...THINGMAGIC, antennas: [1, 2] })
    expect(wiring.antennasOf('dev')).toBeUndefined()
    expect(wiring.looksLikeGate('dev')).toBe(false)
  })

  it.each<[number, Record<string, unknown>]>([
    [9, { ...MODBUS, siren: { output: 3, seconds: 9 } }],
    [9, { ...OSDP, siren: { buzzer: true, seconds: 9 } }],
    [9, { ...LLRP, siren: { gpo: 3, seconds: 9 } }],
    [9, { ...IMPINJ, siren: { gpo: 3, seconds: 9 } }],
    [9, { ...ZEBRA, siren: { gpo: 3, seconds: 9 } }],
    [5, { ...THINGMAGIC, siren: { output: 3 } }],
  ])('sounds a siren for %d s and treats its device as a gate: $driver', (seconds, device) => {
    expect(wired(device).sirenSecondsOf('dev')).toBe(seconds)
    expect(wired(device).looksLikeGate('dev')).toBe(true)
  })

  it.each<[number | null, Record<string, unknown>]>([
    [null, PCSC],
    [null, M100],
    [null, THINGMAGIC],
    [2_000, { ...LLRP, session: 0 }],
    [6_000, { ...LLRP, session: 1 }],
    [60_000, { ...LLRP, session: 2 }],
    [60_000, { ...LLRP, session: 3 }],
    [2_000, IMPINJ],
    [2_000, ZEBRA],
    [2_000, PUSH],
    [2_000, OSDP],
  ])('waits %s ms without a read before a tag has left, null where the driver reports it: %o', (awayMs, device) => {
    expect(wired(device).absentMsOf('dev')).toBe(awayMs)
  })

  it.each([LLRP, IMPINJ, ZEBRA, PUSH, M100, THINGMAGIC])('ignores weak reads below nearDbm: $driver', (reader) => {
    expect(wired({ ...reader, nearDbm: -45 }).minimumRssiOf('dev')).toBe(-45)
  })

  it.each([SCANNER, PCSC, OSDP])('reads staff cards where they are configured: $driver', (reader) => {
    expect(wired({ ...reader, staffCards: true }).readsStaffCards('dev')).toBe(true)
  })

  it('knows the input that confirms a release', () => {
    expect(wired({ ...MODBUS, confirmInput: 3 }).confirmInputOf('dev')).toBe(3)
    expect(wired({ ...OSDP, output: 0, confirmInput: 3 }).confirmInputOf('dev')).toBe(3)
  })

  it.each<[string, boolean, boolean, Record<string, unknown>]>([
    ['an output', true, true, MODBUS],
    ['an osdp output', true, true, { ...OSDP, output: 0 }],
    ['an osdp reader without output', false, false, OSDP],
    ['an llrp output', true, true, { ...LLRP, release: { gpo: 1 } }],
    ['the EAS bit by llrp', false, true, { ...LLRP, eas: {} }],
    ['an impinj-iot output', true, true, { ...IMPINJ, release: { gpo: 1 } }],
    ['a zebra-iotc output', true, true, { ...ZEBRA, release: { gpo: 1 } }],
    ['the EAS bit by uhf-m100', false, true, { ...M100, deactivate: { method: 'eas' } }],
    ['a uhf-m100 that only reads', false, false, M100],
    ['the EAS bit by pcsc', false, true, PCSC],
    ['a thingmagic', false, false, THINGMAGIC],
    ['an http-ingest', false, false, PUSH],
  ])('releases by %s: without a tag %s, with a tag %s', (_, alone, withTag, device) => {
    expect([wired(device).canRelease('dev', false), wired(device).canRelease('dev', true)]).toEqual([alone, withTag])
  })

  it('assigns a lane the sensors, sides and outputs of the devices that feed it', () => {
    const wiring = wired(
      PUSH,
      { ...LLRP, feeds: 'dev', antennas: SIDES, passageInput: 1, release: { gpo: 1 } },
      { ...SCANNER, feeds: 'dev' },
    )
    expect([wiring.laneOf('dev'), wiring.laneOf('dev1'), wiring.laneOf('dev2')]).toEqual(['dev', 'dev', 'dev'])
    expect(wiring.looksLikeGate('dev')).toBe(true)
    expect(wiring.hasPassageSensor('dev')).toBe(true)
    expect(wiring.canRelease('dev', false)).toBe(true)
  })
})
