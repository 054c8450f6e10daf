import type { EmergencyInput } from './emergency-input.ts'

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
