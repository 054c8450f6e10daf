import { z } from 'zod'
import { assert } from '../policy/assert.ts'
import type { Platform } from '../policy/platform.ts'
import type { SharedLinks } from './transports/shared-links.ts'
import { type Capabilities, anyDriver, type AnyDriver, type DeviceSettings } from './kit/driver.ts'
import type { ProtectionDevice } from './kit/device.ts'
import { llrpDriver } from './llrp/driver.ts'
import { httpIngestDriver } from './http-ingest/driver.ts'
import { impinjIotDriver } from './impinj-iot/driver.ts'
import { modbusDriver } from './modbus/driver.ts'
import { osdpDriver } from './osdp/driver.ts'
import { pcscDriver } from './pcsc/driver.ts'
import { scannerDriver } from './scanner/driver.ts'
import { thingMagicDriver } from './thingmagic/driver.ts'
import { m100Driver } from './uhf-m100/driver.ts'
import { zebraIotcDriver } from './zebra-iotc/driver.ts'

// Add a new driver to `DeviceEntry` and to `DRIVERS`. `test/device-drivers/driver-parts.test.ts` lists the other
// parts of a driver.

/** One entry of `devices` in the agent's configuration. */
export const DeviceEntry = z.discriminatedUnion('driver', [
  modbusDriver.settings,
  pcscDriver.settings,
  scannerDriver.settings,
  llrpDriver.settings,
  m100Driver.settings,
  osdpDriver.settings,
  thingMagicDriver.settings,
  impinjIotDriver.settings,
  httpIngestDriver.settings,
  zebraIotcDriver.settings,
])
export type DeviceEntry = z.infer<typeof DeviceEntry>
export type DriverName = DeviceEntry['driver']

const DRIVERS: readonly AnyDriver[] = [
  anyDriver(modbusDriver),
  anyDriver(pcscDriver),
  anyDriver(scannerDriver),
  anyDriver(llrpDriver),
  anyDriver(m100Driver),
  anyDriver(osdpDriver),
  anyDriver(thingMagicDriver),
  anyDriver(impinjIotDriver),
  anyDriver(httpIngestDriver),
  anyDriver(zebraIotcDriver),
]

/** Allowed values of the setting `driver`. */
export const DRIVER_NAMES: readonly string[] = DRIVERS.map((driver) => driver.name)

/** The driver of a valid entry. */
export function driverOf(entry: DeviceSettings): AnyDriver {
  const driver = DRIVERS.find((candidate) => candidate.name === entry.driver)
  assert(driver, `no driver is called ${entry.driver}`)
  return driver
}

/** The capabilities of a valid entry. */
export function capabilitiesOf(entry: DeviceSettings): Capabilities {
  return driverOf(entry).capabilities(entry)
}

/** Makes the device of a valid entry. The device opens no link before `connect`. */
export function openDevice(entry: DeviceSettings, links: SharedLinks, platform: Platform): ProtectionDevice {
  return driverOf(entry).open(entry, links, platform)
}
