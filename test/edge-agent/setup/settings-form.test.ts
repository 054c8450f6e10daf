import { describe, expect, it } from 'vitest'
import { DRIVER_NAMES } from '../../../device-drivers/registry.ts'
import { DRIVER_LABELS, SETTING_LABELS, VALUE_LABELS } from '../../../edge-agent/pages/texts/setting-labels.ts'
import { settingFields } from '../../../edge-agent/setup/settings-form.ts'

/** The fields that the set-up page shows for each driver. */
describe('the form of a device', () => {
  const all = [...settingFields()].flatMap(([driver, fields]) => fields.map((field) => ({ driver, ...field })))

  it('has the settings of every driver, each once, and a label for each and no others', () => {
    expect([...settingFields().keys()].toSorted()).toEqual([...DRIVER_NAMES].toSorted())
    expect(Object.keys(DRIVER_LABELS).toSorted()).toEqual([...DRIVER_NAMES].toSorted())
    const paths = new Set(all.map(({ path }) => path))
    expect(Object.keys(SETTING_LABELS).toSorted()).toEqual([...paths].toSorted())
    for (const [driver, fields] of settingFields())
      expect([driver, new Set(fields.map(({ path }) => path)).size]).toEqual([driver, fields.length])
  })

  it('has a label for each chosen value that is no name of a standard or maker, and no others', () => {
    const names = new Set(['CR', 'LF', 'CRLF', 'hex', 'base64', 'waveshare', 'keonn', 'impinj', 'pcscd', 'nfc-pcsc'])
    const values = all.flatMap(({ choices }) => choices.filter((choice) => typeof choice === 'string'))
    expect(Object.keys(VALUE_LABELS).toSorted()).toEqual(
      [...new Set(values.filter((value) => !names.has(value)))].toSorted(),
    )
  })

  it('takes kind, limits, choices, presets and necessity from the schema', () => {
    const field = (driver: string, path: string) => all.find((each) => each.driver === driver && each.path === path)
    expect(field('modbus', 'pulseMs')).toMatchObject({
      kind: 'number',
      min: 20,
      max: 10_000,
      preset: 200,
      needed: 'no',
    })
    expect(field('modbus', 'link.tcp')).toMatchObject({ kind: 'text', needed: 'variant' })
    expect(field('modbus', 'link.baudRate')).toMatchObject({ kind: 'number', needed: 'variant' })
    expect(field('modbus', 'link.parity')).toMatchObject({ kind: 'choice', choices: ['none', 'even', 'odd'] })
    expect(field('modbus', 'link.dataBits')).toMatchObject({ kind: 'choice', choices: [7, 8], preset: 8 })
    expect(field('modbus', 'opensInEmergency')).toMatchObject({ kind: 'choice', choices: [true, false] })
    // Without them, a fire panel or an exit would look complete.
    for (const path of ['emergency.input', 'emergency.wiring', 'opensInEmergency'])
      expect(field('modbus', path)).toMatchObject({ needed: 'shown' })
    expect(field('llrp', 'link.tcp')).toMatchObject({ needed: 'always' })
    expect(field('llrp', 'antennas.inside')).toMatchObject({ kind: 'numbers' })
    expect(field('thingmagic', 'region')).toMatchObject({ kind: 'choice', needed: 'always' })
    expect(field('uhf-m100', 'deactivate.method')).toMatchObject({ kind: 'choice', choices: ['kill', 'eas'] })
    expect(field('scanner', 'feeds')).toMatchObject({ kind: 'device' })
    expect(field('modbus', 'deviceId')).toBeUndefined()
  })
})
