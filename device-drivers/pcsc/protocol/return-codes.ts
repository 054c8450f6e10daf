/** Values of `rv` (pcsc-lite `src/PCSC/pcsclite.h`) with texts for a person. Windows and macOS have the same codes. */
const CODES: Record<number, readonly [name: string, text: string]> = {
  0x80100001: ['internal_error', 'PC/SC failed within itself'],
  0x80100003: ['invalid_handle', 'the connection to the card is not valid any more'],
  0x80100004: ['invalid_parameter', 'PC/SC does not take this request'],
  0x80100008: ['insufficient_buffer', 'the answer of the card is too long'],
  0x80100009: ['unknown_reader', 'no such reader'],
  0x8010000a: ['timeout', 'no answer in time'],
  0x8010000b: ['sharing_violation', 'another program is using the card'],
  0x8010000c: ['no_card', 'no card on the reader'],
  0x8010000f: ['protocol_mismatch', 'the card speaks another protocol'],
  0x80100010: ['not_ready', 'the reader is not ready'],
  0x80100011: ['invalid_value', 'PC/SC does not take this request'],
  0x80100013: ['comm_error', 'the reader failed to speak with the card'],
  0x80100016: ['not_transacted', 'the reader failed to speak with the card'],
  0x80100017: ['reader_unavailable', 'the reader was unplugged'],
  0x8010001d: ['no_service', 'the smart-card service is not running'],
  0x8010001e: ['service_stopped', 'the smart-card service has stopped'],
  0x8010002e: ['no_readers', 'no reader is plugged in'],
  0x8010002f: ['data_lost', 'the reader failed to speak with the card'],
  0x80100066: ['unresponsive', 'the card does not answer'],
  0x80100067: ['unpowered', 'the card has no power'],
  0x80100068: ['reset', 'the card was reset by another program'],
  0x80100069: ['removed', 'the card was taken away'],
  0x8010006a: ['security_violation', 'PC/SC does not let this user use cards (polkit)'],
}

export const SUCCESS = 0
export const INTERNAL_ERROR = 0x80100001
export const INVALID_HANDLE = 0x80100003
export const INVALID_PARAMETER = 0x80100004
export const INSUFFICIENT_BUFFER = 0x80100008
export const UNKNOWN_READER = 0x80100009
export const TIMEOUT = 0x8010000a
export const SHARING_VIOLATION = 0x8010000b
export const NO_CARD = 0x8010000c
export const PROTOCOL_MISMATCH = 0x8010000f
export const COMM_ERROR = 0x80100013
export const NOT_TRANSACTED = 0x80100016
export const READER_UNAVAILABLE = 0x80100017
export const NO_SERVICE = 0x8010001d
export const SERVICE_STOPPED = 0x8010001e
export const UNRESPONSIVE = 0x80100066
export const UNPOWERED = 0x80100067
export const CARD_RESET = 0x80100068
export const REMOVED = 0x80100069

/** A text of a code, such as `no card on the reader (0x8010000C)`. */
export function returnText(rv: number): string {
  return `${CODES[rv]?.[1] ?? 'PC/SC refused'} (0x${rv.toString(16).toUpperCase().padStart(8, '0')})`
}
