import type { Layout } from './layout.ts'

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
