import { describe, expect, it } from 'vitest'
import { DeviceEntry } from '../../device-drivers/registry.ts'
import { readSources } from '../house/sources.ts'
import { missingParts, REGISTERED } from './driver-parts.ts'

describe('a driver of the registry', () => {
  it.each(REGISTERED)('has its capabilities, page, simulator and conformance row: %s', (driver) => {
    expect(missingParts(driver)).toEqual([])
  })

  it('fails with each missing part and where to add it', () => {
    expect(missingParts('teleporter')).toEqual([
      'teleporter lacks settings: add its settings schema to `DeviceEntry` in device-drivers/registry.ts',
      'teleporter lacks driver: add it to `DRIVERS` in device-drivers/registry.ts',
      'teleporter lacks capabilities: add `capabilities` to the `Driver` in device-drivers/teleporter/driver.ts; the fields are described in device-drivers/kit/driver.ts',
      'teleporter lacks page: write docs/reference/hardware/teleporter.md with an example entry that contains `"driver": "teleporter"`',
      'teleporter lacks page: link docs/reference/hardware/teleporter.md from the table of devices in README.md',
      'teleporter lacks schema: write docs/reference/edge-config.schema.json with `npm run generate`',
      "teleporter lacks conformance row: call `describeDriver('teleporter', …)` of test/device-drivers/conformance.ts in test/device-drivers/teleporter.test.ts",
      'teleporter lacks simulator: write simulators/devices/teleporter.ts and serve it in the `device` of the conformance row',
    ])
  })
})

describe('the agent', () => {
  it('takes what a device can do from its capabilities, never from its driver name or its settings', () => {
    const shared = new Set(['deviceId', 'driver', 'link'])
    const keys = new Set(
      DeviceEntry.options.flatMap(({ shape }) => Object.keys(shape)).filter((key) => !shared.has(key)),
    )
    const looks = new RegExp(`\\bdriver\\s*[!=]==|'(?:${[...keys].join('|')})' in |device-drivers/[^']*/settings\\.ts`)
    const wrong = readSources(['edge-agent']).flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, i) => (looks.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
    )
    expect(wrong, 'declare a capability in device-drivers/kit/driver.ts and use it').toEqual([])
  })
})
