import type { Layout } from './layout.ts'

/**
 * EAS bits of Gen2 chips. The Gen2 standard defines none. NXP's UCODE chips have a "product status flag", which a gate
 * can query without a list of items. LLRP can switch the flag only if the chip accepts the standard Write; some chips
 * need a command of their maker.
 *
 * Sources: NXP's data sheets SL3ICS1002/1202 (G2XM, G2XL: ChangeEAS) and SL3S1203/1213 (G2iL: bits of the configuration
 * word); ThingMagic's manual of the M5e, "ChangeConfig" (ones toggle bits; bit 0x20F is the flag); ThingMagic's Mercury
 * API (`TMR_NXP_UCODE7_ConfigWord`: the lowest bit). Model numbers: public lists of chips by TID.
 */
type EasOfChip =
  /** The chip toggles each bit of the word for which a 1 is written. */
  | { readonly kind: 'toggle'; readonly chip: string }
  /** LLRP cannot switch the bit; `why` is the reason. */
  | { readonly kind: 'none'; readonly why: string }

/** Position of the flag: Gen2 bank 1 (EPC), bit 0x20F, the lowest of the word at bit 0x200. */
export const EAS_WORD = { bank: 1, word: 0x20, mask: 0x0001 } as const

/** Identification of a chip: the first two words of Gen2 bank 2 (TID). */
export const TID_WORDS = { bank: 2, word: 0, count: 2 } as const

const EPCGLOBAL = 0xe2
const NXP = 0x006
const MAKERS: Readonly<Record<number, string>> = {
  0x001: 'Impinj',
  0x003: 'Alien',
  0x006: 'NXP',
  0x00b: 'EM Microelectronic',
}

const TOGGLED: Readonly<Record<number, string>> = {
  0x810: 'UCODE 7',
  0x890: 'UCODE 7',
  0x811: 'UCODE 7m',
  0x891: 'UCODE 7m',
  0x894: 'UCODE 8',
  0x994: 'UCODE 8m',
}
const OWN_COMMAND: Readonly<Record<number, string>> = {
  0x003: 'UCODE G2XM (ChangeEAS)',
  0x004: 'UCODE G2XL (ChangeEAS)',
  0x806: 'UCODE G2iL (ChangeConfig)',
  0x906: 'UCODE G2iL (ChangeConfig)',
  0x807: 'UCODE G2iL+ (ChangeConfig)',
  0x80a: 'UCODE G2iM (ChangeConfig)',
  0x80b: 'UCODE G2iM+ (ChangeConfig)',
}

/** How to switch the EAS bit of the chip with these first two words of the TID. */
export function easOfChip([first = 0, second = 0]: readonly number[]): EasOfChip {
  const tid = [first, second].map((word) => word.toString(16).toUpperCase().padStart(4, '0')).join('')
  // Fields of the TID, with their lengths in bits: class (8), flags (3), maker (9), model (12); see Gen2, 6.3.2.1.3.
  if (first >> 8 !== EPCGLOBAL) return { kind: 'none', why: `its TID ${tid} does not tell what chip it is` }
  const maker = ((first & 0x1f) << 4) | (second >> 12)
  const model = second & 0xfff
  const own = maker === NXP ? OWN_COMMAND[model] : undefined
  if (own)
    return { kind: 'none', why: `the EAS bit of an ${own} needs a command of its maker, which LLRP does not have` }
  const chip = maker === NXP ? TOGGLED[model] : undefined
  if (chip) return { kind: 'toggle', chip }
  return { kind: 'none', why: `of this chip (${MAKERS[maker] ?? `maker ${maker}`}, TID ${tid}) no EAS bit is known` }
}

/** A message, and the name of its answer. */
export interface MessageLayout extends Layout {
  readonly answer?: string
}

const STATUS_ALONE = { fields: {}, params: { LLRPStatus: '1' } } as const
const OF_ROSPEC = { fields: { ROSpecID: 'u32' }, params: {} } as const
const OF_ACCESSSPEC = { fields: { AccessSpecID: 'u32' }, params: {} } as const
const EMPTY = { fields: {}, params: {} } as const

/** All supported messages (LLRP 1.0.1, 16.1). */
export const MESSAGES = {
  GET_READER_CAPABILITIES: {
    type: 1,
    fields: { RequestedData: 'u8' },
    params: { Custom: '*' },
    answer: 'GET_READER_CAPABILITIES_RESPONSE',
  },
  GET_READER_CAPABILITIES_RESPONSE: {
    type: 11,
    fields: {},
    params: {
      LLRPStatus: '1',
      GeneralDeviceCapabilities: '?',
      LLRPCapabilities: '?',
      RegulatoryCapabilities: '?',
      C1G2LLRPCapabilities: '?',
      Custom: '*',
    },
  },
  GET_READER_CONFIG: {
    type: 2,
    fields: { AntennaID: 'u16', RequestedData: 'u8', GPIPortNum: 'u16', GPOPortNum: 'u16' },
    params: { Custom: '*' },
    answer: 'GET_READER_CONFIG_RESPONSE',
  },
  GET_READER_CONFIG_RESPONSE: {
    type: 12,
    fields: {},
    params: {
      LLRPStatus: '1',
      Identification: '?',
      AntennaProperties: '*',
      AntennaConfiguration: '*',
      ReaderEventNotificationSpec: '?',
      ROReportSpec: '?',
      AccessReportSpec: '?',
      LLRPConfigurationStateValue: '?',
      KeepaliveSpec: '?',
      GPIPortCurrentState: '*',
      GPOWriteData: '*',
      EventsAndReports: '?',
      Custom: '*',
    },
  },
  SET_READER_CONFIG: {
    type: 3,
    fields: { ResetToFactoryDefault: 'flag' },
    params: {
      ReaderEventNotificationSpec: '?',
      AntennaProperties: '*',
      AntennaConfiguration: '*',
      ROReportSpec: '?',
      AccessReportSpec: '?',
      KeepaliveSpec: '?',
      GPOWriteData: '*',
      GPIPortCurrentState: '*',
      EventsAndReports: '?',
      Custom: '*',
    },
    answer: 'SET_READER_CONFIG_RESPONSE',
  },
  SET_READER_CONFIG_RESPONSE: { type: 13, ...STATUS_ALONE },
  CLOSE_CONNECTION: { type: 14, ...EMPTY, answer: 'CLOSE_CONNECTION_RESPONSE' },
  CLOSE_CONNECTION_RESPONSE: { type: 4, ...STATUS_ALONE },
  ADD_ROSPEC: { type: 20, fields: {}, params: { ROSpec: '1' }, answer: 'ADD_ROSPEC_RESPONSE' },
  ADD_ROSPEC_RESPONSE: { type: 30, ...STATUS_ALONE },
  DELETE_ROSPEC: { type: 21, ...OF_ROSPEC, answer: 'DELETE_ROSPEC_RESPONSE' },
  DELETE_ROSPEC_RESPONSE: { type: 31, ...STATUS_ALONE },
  START_ROSPEC: { type: 22, ...OF_ROSPEC, answer: 'START_ROSPEC_RESPONSE' },
  START_ROSPEC_RESPONSE: { type: 32, ...STATUS_ALONE },
  STOP_ROSPEC: { type: 23, ...OF_ROSPEC, answer: 'STOP_ROSPEC_RESPONSE' },
  STOP_ROSPEC_RESPONSE: { type: 33, ...STATUS_ALONE },
  ENABLE_ROSPEC: { type: 24, ...OF_ROSPEC, answer: 'ENABLE_ROSPEC_RESPONSE' },
  ENABLE_ROSPEC_RESPONSE: { type: 34, ...STATUS_ALONE },
  DISABLE_ROSPEC: { type: 25, ...OF_ROSPEC, answer: 'DISABLE_ROSPEC_RESPONSE' },
  DISABLE_ROSPEC_RESPONSE: { type: 35, ...STATUS_ALONE },
  GET_ROSPECS: { type: 26, ...EMPTY, answer: 'GET_ROSPECS_RESPONSE' },
  GET_ROSPECS_RESPONSE: { type: 36, fields: {}, params: { LLRPStatus: '1', ROSpec: '*' } },
  ADD_ACCESSSPEC: { type: 40, fields: {}, params: { AccessSpec: '1' }, answer: 'ADD_ACCESSSPEC_RESPONSE' },
  ADD_ACCESSSPEC_RESPONSE: { type: 50, ...STATUS_ALONE },
  DELETE_ACCESSSPEC: { type: 41, ...OF_ACCESSSPEC, answer: 'DELETE_ACCESSSPEC_RESPONSE' },
  DELETE_ACCESSSPEC_RESPONSE: { type: 51, ...STATUS_ALONE },
  ENABLE_ACCESSSPEC: { type: 42, ...OF_ACCESSSPEC, answer: 'ENABLE_ACCESSSPEC_RESPONSE' },
  ENABLE_ACCESSSPEC_RESPONSE: { type: 52, ...STATUS_ALONE },
  GET_ACCESSSPECS: { type: 44, ...EMPTY, answer: 'GET_ACCESSSPECS_RESPONSE' },
  GET_ACCESSSPECS_RESPONSE: { type: 54, fields: {}, params: { LLRPStatus: '1', AccessSpec: '*' } },
  GET_REPORT: { type: 60, ...EMPTY },
  RO_ACCESS_REPORT: { type: 61, fields: {}, params: { TagReportData: '*', Custom: '*' } },
  KEEPALIVE: { type: 62, ...EMPTY },
  READER_EVENT_NOTIFICATION: { type: 63, fields: {}, params: { ReaderEventNotificationData: '1' } },
  ENABLE_EVENTS_AND_REPORTS: { type: 64, ...EMPTY },
  KEEPALIVE_ACK: { type: 72, ...EMPTY },
  ERROR_MESSAGE: { type: 100, fields: {}, params: { LLRPStatus: '1' } },
  CUSTOM_MESSAGE: { type: 1023, fields: { VendorIdentifier: 'u32', MessageSubtype: 'u8', Data: 'rest' }, params: {} },
} as const satisfies Readonly<Record<string, MessageLayout>>

export type MessageName = keyof typeof MESSAGES
