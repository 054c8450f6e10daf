/**
 * The function codes of relay and input boards (Modbus application protocol V1.1b3, chapter 6). Driver and simulator
 * encode and decode all requests and answers from this table.
 *
 *   access      request                               answer
 *   read        address, quantity                     byte count, data
 *   write one   address, value                        the same
 *   write many  address, quantity, byte count, data   address, quantity
 */
export interface ModbusFunction {
  readonly code: number
  readonly access: 'read' | 'write one' | 'write many'
  /** A bit is a coil or input; a word is a 16-bit register. */
  readonly unit: 'bit' | 'word'
  /** Maximum bits or words in one request. */
  readonly most: number
}

export const MODBUS_FUNCTIONS = {
  readCoils: { code: 0x01, access: 'read', unit: 'bit', most: 2_000 },
  readDiscreteInputs: { code: 0x02, access: 'read', unit: 'bit', most: 2_000 },
  readHoldingRegisters: { code: 0x03, access: 'read', unit: 'word', most: 125 },
  writeSingleCoil: { code: 0x05, access: 'write one', unit: 'bit', most: 1 },
  writeSingleRegister: { code: 0x06, access: 'write one', unit: 'word', most: 1 },
  writeMultipleCoils: { code: 0x0f, access: 'write many', unit: 'bit', most: 1_968 },
  writeMultipleRegisters: { code: 0x10, access: 'write many', unit: 'word', most: 123 },
} as const satisfies Record<string, ModbusFunction>

export type FunctionName = keyof typeof MODBUS_FUNCTIONS

const BY_CODE: ReadonlyMap<number, FunctionName> = new Map(
  (Object.keys(MODBUS_FUNCTIONS) as FunctionName[]).map((name) => [MODBUS_FUNCTIONS[name].code, name]),
)

/** The function of a code, or null if the code is not supported. */
export function functionOf(code: number): FunctionName | null {
  return BY_CODE.get(code) ?? null
}

/** Bit of the function code that marks an exception. */
export const EXCEPTION_BIT = 0x80

/** Names of exception codes (V1.1b3, chapter 7). */
export const MODBUS_EXCEPTIONS: Readonly<Record<number, string>> = {
  1: 'illegal function',
  2: 'illegal data address',
  3: 'illegal data value',
  4: 'device failure',
  5: 'accepted, still working on it',
  6: 'device busy',
  8: 'memory parity error',
  10: 'gateway has no path to the unit',
  11: 'the unit behind the gateway did not answer',
}

export const ILLEGAL_FUNCTION = 1
export const ILLEGAL_DATA_ADDRESS = 2
export const ILLEGAL_DATA_VALUE = 3

/** A text of an exception code, such as `exception 2 (illegal data address)`. */
export function exceptionText(code: number): string {
  return `exception ${code} (${MODBUS_EXCEPTIONS[code] ?? 'unknown code'})`
}
