import { z } from 'zod'
import type { Platform } from '../../policy/platform.ts'
import { linkKey, type AnyLink } from '../transports/link-settings.ts'
import type { SharedLinks } from '../transports/shared-links.ts'
import type { ProtectionDevice } from './device.ts'
import type { EmergencyInput } from './emergency-input.ts'

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

/**
 * Capabilities of a configured device. The agent wires lanes and gates from these fields alone, never from the driver's
 * name or settings. A driver declares every field; `undefined` or false means that the device lacks the capability.
 */
export interface Capabilities {
  /** Effect of a release command. */
  readonly releases: Releases
  /** Number of the input that shows whether the mechanics moved, in the device's own numbering. */
  readonly confirmInput: number | undefined
  /** True if the device reports people who pass: it has a passage sensor or counts people. */
  readonly passage: boolean
  /** How the agent learns that a tag left the field; undefined for a device that reads no tags. */
  readonly departures: Departures | undefined
  /** Antennas by the side that they face. Undefined if the reads do not show whether a tag is inside or outside. */
  readonly antennas: AntennaSides | undefined
  readonly siren: SirenCapability | undefined
  /**
   * `deviceId` of the device that receives this device's reads and scans; undefined if no other device receives them.
   */
  readonly feeds: string | undefined
  /** True if only staff use this reader: a card signs in the operator to whom it belongs. */
  readonly staffCards: boolean
  /** Minimum signal of a tag, dBm; undefined accepts every tag. Gates ignore this limit. */
  readonly minimumRssiDbm: number | undefined
  /** The wired input of a fire panel or emergency switch; undefined if the device has none. */
  readonly emergency: Pick<EmergencyInput, 'wiring' | 'silenceSirens'> | undefined
  /** True if an emergency opens the main output; undefined if the setting is missing. */
  readonly opensInEmergency: boolean | undefined
  /** Endpoint of the agent to which the reader posts its reads. Undefined if the agent connects to the device. */
  readonly webhook: WebhookCapability | undefined
}

/**
 * Effect of a release: `output` switches an output of the device, `tag` writes to the tag that the command names,
 * `nothing` has no effect.
 */
type Releases = 'output' | 'tag' | 'nothing'

/**
 * `reported`: the driver sends `tag_gone` when a tag leaves. `afterMs`: the driver sends only reads, and a tag without
 * a read for this time has left.
 */
type Departures = 'reported' | { readonly afterMs: number }

/** Value of `afterMs` for readers that report each tag at least once a second, ms. */
export const TAG_ABSENT_MS = 2_000

/** Antenna numbers of a gate: `inside` faces the shop, `outside` faces the exit. */
export interface AntennaSides {
  readonly inside: readonly number[]
  readonly outside: readonly number[]
}

interface SirenCapability {
  /** Duration of an alarm, s. Undefined if the agent chooses the duration. */
  readonly seconds: number | undefined
}

export interface WebhookCapability {
  /** NAME in the path `/ingest/NAME`; case-insensitive. */
  readonly name: string
  /** Secret that the reader sends with each request. */
  readonly secret: string
}
