import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../edge-agent/config.ts'

const board = { deviceId: 'dev_a', driver: 'modbus', link: { tcp: '127.0.0.1:5020' }, output: 0 }
const faultsOf = (value: unknown) => {
  const checked = readConfig(typeof value === 'string' ? value : JSON.stringify(value))
  return checked.ok ? [] : checked.faults
}

describe('the configuration file', () => {
  it('accepts a relay board and a scanner that feeds it', () => {
    const checked = readConfig(
      JSON.stringify({
        devices: [
          {
            deviceId: 'dev_a',
            driver: 'modbus',
            link: { tcp: '127.0.0.1:5020' },
            unit: 1,
            output: 0,
            confirmInput: 0,
            pulseMs: 200,
          },
          {
            deviceId: 'dev_b',
            driver: 'scanner',
            link: { serial: '/dev/serial/by-id/usb-x', baudRate: 9600 },
            feeds: 'dev_a',
          },
        ],
      }),
    )
    expect(checked).toMatchObject({
      ok: true,
      config: { requirePairing: true, devices: [{ deviceId: 'dev_a' }, { deviceId: 'dev_b' }] },
    })
  })

  it('may have no devices', () => {
    expect(readConfig('{}')).toMatchObject({ ok: true, config: { devices: [] } })
  })

  it('reports every fault at once, each with its key', () => {
    const faults = faultsOf({
      language: 'fr',
      colour: 'red',
      devices: [
        { ...board, output: -1 },
        { deviceId: 'dev_b', driver: 'teleporter', link: { tcp: 'x:1' } },
        { deviceId: 'dev_c', driver: 'scanner', link: { tcp: 'nonsense' }, feeds: 'dev_a' },
      ],
    })
    for (const key of ['language', 'colour', 'devices[0].output', 'devices[1].driver', 'devices[2].link'])
      expect(faults.some((f) => f.includes(key))).toBe(true)
  })

  it.each([
    ['not JSON', '{'],
    ['an array', '[]'],
    ['devices that are no list', { devices: {} }],
    [
      'a scanner that feeds nothing here',
      { devices: [board, { deviceId: 'dev_b', driver: 'scanner', link: { tcp: '127.0.0.1:4000' }, feeds: 'dev_x' }] },
    ],
    ['one output twice', { devices: [board, { ...board, deviceId: 'dev_b' }] }],
    ['one id twice', { devices: [board, { ...board, output: 1 }] }],
  ])('rejects %s', (_name, value) => {
    expect(faultsOf(value).length).toBeGreaterThan(0)
  })
})
