/** A protocol data unit with its addressing, for RTU and TCP. */
export interface ModbusFrame {
  /** Number that the answer repeats. Always 0 in RTU. */
  readonly transaction: number
  /** Address of the board on its bus, 0…255. */
  readonly unit: number
  /** Function code and body. */
  readonly pdu: Uint8Array
}

/** RTU for serial lines and raw serial device servers; TCP with the MBAP header. */
export type ModbusFraming = 'rtu' | 'tcp'
