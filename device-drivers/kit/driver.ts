import { z } from 'zod'
import type { Platform } from '../../policy/platform.ts'
import { linkKey } from '../transports/link-settings.ts'
import type { AnyLink } from '../transports/link-settings.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import type { Capabilities } from './capabilities.ts'
import type { ProtectionDevice } from './device.ts'

/** Id of a device, in the configuration and in the cloud. */
export const DeviceId = z
  .string({ error: 'give the deviceId of this device in the cloud' })
  .min(1, { error: 'give the deviceId of this device in the cloud' })
  .max(128, { error: 'at most 128 characters' })

/** Fields of every entry of `devices` in the configuration. */
export interface DeviceSettings {
  readonly deviceId: string
  readonly driver: string
  readonly link: AnyLink
}

/** An output, input or address that only one device may use. The configuration check rejects a second use. */
export interface ExclusiveResource {
  /** Name of the setting that uses the resource, such as `siren.output`. */
  readonly setting: string
  /** Two uses of the same resource have equal keys. */
  readonly key: string
}

/** A driver: its settings, capabilities and device. */
export interface Driver<Settings extends DeviceSettings, Schema extends z.ZodType<Settings>> {
  /** Value of the setting `driver`. */
  readonly name: string
  /** Schema of one entry of `devices`; its messages name the fix. */
  readonly settings: Schema
  /**
   * Two devices may share a link if this function returns the same text for both. Null: the device needs its own link.
   */
  linkUse(settings: Settings): string | null
  /** The outputs, inputs and addresses that this device uses alone. */
  exclusiveResources(settings: Settings): readonly ExclusiveResource[]
  /** Capabilities of a device with these settings. */
  capabilities(settings: Settings): Capabilities
  /** Makes the device, which opens nothing before `connect`. */
  open(settings: Settings, links: SharedLinks, platform: Platform): ProtectionDevice
}

/** A driver without type parameters, for the table of drivers. Each function validates its settings first. */
export interface AnyDriver {
  readonly name: string
  use(entry: DeviceSettings): { link: string; use: string | null; exclusiveResources: readonly ExclusiveResource[] }
  capabilities(entry: DeviceSettings): Capabilities
  open(entry: DeviceSettings, links: SharedLinks, platform: Platform): ProtectionDevice
}

/** Wraps a driver: its schema validates the settings at each call. */
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
