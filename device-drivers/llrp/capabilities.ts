import { all, first } from './protocol/elements.ts'
import type { Message } from './protocol/elements.ts'
import { signalOutputs } from '../kit/reader-settings.ts'
import { antennasOf, inputsOf } from './settings.ts'
import type { LlrpSettings } from './settings.ts'

/** Capabilities of a reader that the driver uses. */
export interface ReaderCapabilities {
  readonly maker: string
  readonly model: number
  readonly firmwareVersion: string
  readonly antennas: number
  readonly gpis: number
  readonly gpos: number
  /** True if the reader buffers events and reports after a reconnect until the client requests them. */
  readonly canHold: boolean
  readonly canWarnOfFullBuffer: boolean
  readonly hasAccessSpecs: boolean
  /** True if the reader executes Gen2 operations on single tags. */
  readonly canReachTags: boolean
  /** Transmit powers, lowest first. */
  readonly powers: readonly { readonly index: number; readonly dbm: number }[]
  /** Hop table for readers that do not report their present one; 0 without hopping. */
  readonly hopTableId: number
}

// IANA private enterprise numbers, by which readers identify their makers.
const MAKERS: Readonly<Record<number, string>> = {
  161: 'Zebra',
  17_996: 'Alien',
  25_882: 'Impinj',
  26_554: 'ThingMagic',
}

/** Reads the response; null if the response lacks a mandatory part. */
export function capabilitiesIn(answer: Message<'GET_READER_CAPABILITIES_RESPONSE'>): ReaderCapabilities | null {
  const general = first(answer, 'GeneralDeviceCapabilities')
  const protocol = first(answer, 'LLRPCapabilities')?.fields
  if (!general) return null
  const gpio = first(general, 'GPIOCapabilities')?.fields
  const band = first(first(answer, 'RegulatoryCapabilities'), 'UHFBandCapabilities')
  const frequencies = first(band, 'FrequencyInformation')
  const hops = frequencies?.fields.Hopping === true ? first(frequencies, 'FrequencyHopTable') : undefined
  const {
    DeviceManufacturerName: maker,
    ModelName: model,
    ReaderFirmwareVersion: firmwareVersion,
    MaxNumberOfAntennaSupported: antennas,
  } = general.fields
  return {
    maker: MAKERS[maker] ?? `maker ${maker}`,
    model,
    firmwareVersion,
    antennas,
    gpis: gpio?.NumGPIs ?? 0,
    gpos: gpio?.NumGPOs ?? 0,
    canHold: protocol?.SupportsEventAndReportHolding === true,
    canWarnOfFullBuffer: protocol?.CanReportBufferFillWarning === true,
    hasAccessSpecs: (protocol?.MaxNumAccessSpecs ?? 0) > 0,
    canReachTags:
      (protocol?.MaxNumAccessSpecs ?? 0) > 0 &&
      (protocol?.MaxNumOpSpecsPerAccessSpec ?? 0) > 0 &&
      first(answer, 'C1G2LLRPCapabilities') !== undefined,
    powers: all(band, 'TransmitPowerLevelTableEntry')
      .map(({ fields }) => ({ index: fields.Index, dbm: fields.TransmitPowerValue / 100 }))
      .sort((a, b) => a.dbm - b.dbm),
    hopTableId: hops?.fields.HopTableID ?? 0,
  }
}

/** The setting that this reader cannot execute, with the fix. Null if the reader can execute all settings. */
export function misfit(settings: LlrpSettings, reader: ReaderCapabilities): string | null {
  const antenna = antennasOf(settings).find((each) => each > reader.antennas)
  if (antenna !== undefined) return `antennas: there is no antenna ${antenna}; the reader has ${reader.antennas}`
  const outputs = [...signalOutputs(settings).values(), ...(settings.release ? [settings.release.gpo] : [])]
  const output = outputs.find((each) => each > reader.gpos)
  if (output !== undefined) return `there is no output (GPO) ${output}; the reader has ${reader.gpos}`
  const input = inputsOf(settings).find((each) => each > reader.gpis)
  if (input !== undefined) return `there is no input (GPI) ${input}; the reader has ${reader.gpis}`
  const wanted = settings.transmitPowerDbm
  const lowest = reader.powers[0]
  if (wanted !== undefined && !(lowest && lowest.dbm <= wanted)) {
    return `transmitPowerDbm: ${lowest ? `the reader transmits with at least ${lowest.dbm} dBm` : 'the reader does not report its powers; set the power on the reader'}`
  }
  return null
}

/** Index of the highest power up to `dbm` in the reader's table. */
export function powerIndex(reader: ReaderCapabilities, dbm: number): number {
  return reader.powers.findLast((power) => power.dbm <= dbm)?.index ?? 0
}
