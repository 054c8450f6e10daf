import { expect, test } from 'vitest'
import type { Capabilities } from '../../device-drivers/kit/driver.ts'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { capabilitiesOf, DeviceEntry, type DriverName } from '../../device-drivers/registry.ts'
import { ADDRESS, entries } from './workbench.ts'

/** Settings with the same meaning in all drivers, each with the capability that it must set. */
const SHARED_SETTINGS: readonly [setting: string, value: unknown, capability: Partial<Capabilities>][] = [
  ['feeds', 'lane', { feeds: 'lane' }],
  ['staffCards', true, { staffCards: true }],
  ['nearDbm', -45, { minimumRssiDbm: -45 }],
  ['passageInput', 5, { passage: true }],
  ['confirmInput', 6, { confirmInput: 6 }],
  [
    'emergency',
    { input: 7, wiring: 'normally_closed', silenceSirens: true },
    { emergency: expect.objectContaining({ wiring: 'normally_closed', silenceSirens: true }) },
  ],
  ['opensInEmergency', true, { opensInEmergency: true }],
]

/** The capabilities of a driver with these settings. `entry` may omit the TCP link. */
export function capabilitiesWith(driver: DriverName, entry: Record<string, unknown>): Capabilities {
  const [device] = entries({ deviceId: 'thing', link: { tcp: ADDRESS }, ...entry, driver })
  return capabilitiesOf(device!)
}

/** The capability that a driver needs for this event. Undefined if the driver has declared it. */
export function undeclared(
  { departures, passage, emergency }: Capabilities,
  { type }: DeviceEvent,
): string | undefined {
  if (type === 'tags' && departures === undefined) return 'sends `tags`: declare `departures`'
  if (type === 'tag_gone' && departures !== 'reported') return "sends `tag_gone`: declare `departures: 'reported'`"
  if (type === 'emergency' && !emergency) return 'sends `emergency`: declare `emergency`'
  if (type === 'passage' && !passage) return 'sends `passage`: declare `passage: true`'
  return undefined
}

/** Tests that the capabilities follow the settings. `hasRelease`: true if the conformance row has a release. */
export function testCapabilities(driver: DriverName, entry: Record<string, unknown>, hasRelease: boolean): void {
  const shape = DeviceEntry.options.map((option) => option.shape).find((each) => each.driver.value === driver) ?? {}

  test('declares the capabilities of its settings', () => {
    for (const [setting, value, capability] of SHARED_SETTINGS.filter(([name]) => name in shape))
      expect(
        capabilitiesWith(driver, { ...entry, [setting]: value }),
        `the capabilities of ${driver} ignore the setting \`${setting}\``,
      ).toMatchObject(capability)
  })

  test('declares a release exactly if its conformance row has one', () => {
    const { releases } = capabilitiesWith(driver, entry)
    const fix = hasRelease
      ? "declare `releases: 'output'` or `'tag'`"
      : "give the conformance row a `release`, or declare `releases: 'nothing'`"
    expect(releases !== 'nothing', fix).toBe(hasRelease)
  })
}
