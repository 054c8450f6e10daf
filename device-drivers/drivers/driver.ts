import { z } from 'zod'
import type { Platform } from '../../policy/platform.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { AnyLink } from '../transports/link-settings.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import type { Capabilities } from './capabilities.ts'
import type { ProtectionDevice } from './device.ts'

/** The key of a device in the configuration and the cloud. */
export const DeviceId = z
  .string({ error: 'give the deviceId under which the cloud knows this device' })
  .min(1, { error: 'give the deviceId under which the cloud knows this device' })
  .max(128, { error: 'at most 128 characters' })

/** What every entry of the configuration has. */
export interface DeviceSettings {
  readonly deviceId: string
  readonly driver: string
  readonly link: AnyLink
}

/** Something that two devices cannot both have, such as an output. */
export interface ExclusiveResource {
  /** The setting that claims it, such as `siren.output`. */
  readonly setting: string
  /** Equal for two claims to the same thing. */
  readonly key: string
}

/** What a driver's file exports: how its entry is written and how its device is made. */
export interface Driver<Settings extends DeviceSettings, Schema extends z.ZodType<Settings>> {
  /** The word in `driver`. */
  readonly name: string
  /** One entry of `devices`; its messages name the fix. */
  readonly settings: Schema
  /** What the link is used for; devices with equal words may share one. Null: the link is this device's alone. */
  linkUse(settings: Settings): string | null
  /** The outputs and inputs that belong to this device. */
  exclusiveResources(settings: Settings): readonly ExclusiveResource[]
  /** Everything that the agent's wiring needs to know of a device with these settings. */
  capabilities(settings: Settings): Capabilities
  /** Makes the device; nothing is opened before `connect`. */
  open(settings: Settings, links: SharedLinks, platform: Platform): ProtectionDevice
}

/** A driver whose settings are checked again when it is opened, so that the table of drivers needs no types. */
export interface AnyDriver {
  readonly name: string
  use(entry: DeviceSettings): { link: string; use: string | null; exclusiveResources: readonly ExclusiveResource[] }
  capabilities(entry: DeviceSettings): Capabilities
  open(entry: DeviceSettings, links: SharedLinks, platform: Platform): ProtectionDevice
}

/** The driver without its own settings type: settings are checked by its schema before they reach it. */
export function anyDriver<S extends DeviceSettings, Z extends z.ZodType<S>>(driver: Driver<S, Z>): AnyDriver {
  return {
    name: driver.name,
    use(entry) {
      const settings = driver.settings.parse(entry)
      return {
        link: linkKey(settings.link),
        use: driver.linkUse(settings),
        exclusiveResources: driver.exclusiveResources(settings),
      }
    },
    capabilities: (entry) => driver.capabilities(driver.settings.parse(entry)),
    open: (entry, links, platform) => driver.open(driver.settings.parse(entry), links, platform),
  }
}
