import type { EmergencyInput } from './emergency-input.ts'

/**
 * Capabilities of a configured device. The agent wires lanes and gates from these fields alone, never from the driver's
 * name or settings. A driver declares every field; `undefined` or false means that the device lacks it.
 */
export interface Capabilities {
  /** Effect of a release command. */
  readonly releases: Releases
  /** Input that shows that a release was carried out, as the device numbers it. */
  readonly confirmInput: number | undefined
  /** True if the device reports people who pass: it has a passage sensor or counts people. */
  readonly passage: boolean
  /** How the agent learns that a tag left the field; undefined for a device that reads no tags. */
  readonly departures: Departures | undefined
  /** Antennas by the direction they face; undefined if reads do not show where a tag is. */
  readonly antennas: AntennaSides | undefined
  readonly siren: SirenCapability | undefined
  /** `deviceId` of the device that receives this device's reads and scans; undefined for a separate device. */
  readonly feeds: string | undefined
  /** True if only staff present cards at this reader: each card signs its operator in. */
  readonly staffCards: boolean
  /** Outside gates, the agent ignores tags with a weaker signal, dBm; undefined accepts every tag. */
  readonly minimumRssiDbm: number | undefined
  /** The wired input of a fire panel or emergency switch; undefined if the device has none. */
  readonly emergency: Pick<EmergencyInput, 'wiring' | 'silenceSirens'> | undefined
  /** True if an emergency opens the main output; undefined if the settings leave it open. */
  readonly opensInEmergency: boolean | undefined
  /** Where the reader posts its reads at the agent; undefined if the agent connects to the device. */
  readonly webhook: WebhookCapability | undefined
}

/**
 * Effect of a release: `output` switches an output of the device, `tag` writes to the tag that the command names,
 * `nothing` has no effect.
 */
export type Releases = 'output' | 'tag' | 'nothing'

/**
 * `reported`: the driver sends `tag_gone` when a tag leaves. `afterMs`: the driver sends only reads, so a tag counts as
 * gone after this time without one.
 */
export type Departures = 'reported' | { readonly afterMs: number }

/** Time without a read after which a tag counts as gone, for readers that report every tag at least once a second, ms. */
export const TAG_ABSENT_MS = 2_000

/** Antenna numbers of a gate: `inside` faces the shop, `outside` faces the exit. */
export interface AntennaSides {
  readonly inside: readonly number[]
  readonly outside: readonly number[]
}

export interface SirenCapability {
  /** Duration of an alarm, s; undefined if the settings leave it to the agent. */
  readonly seconds: number | undefined
}

export interface WebhookCapability {
  /** Last part of the address `/ingest/NAME`; upper and lower case are equal. */
  readonly name: string
  /** Secret that the reader sends with each request. */
  readonly secret: string
}
