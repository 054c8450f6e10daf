import { readdir } from 'node:fs/promises'
import type { SerialPort } from 'serialport'
import { LinkFault } from './byte-link.ts'
import type { ByteLink } from './byte-link.ts'
import { portOwner } from './port-owner.ts'
import { endOnHangup } from './serial-hangup.ts'

/** Settings of a serial line; both sides must use equal settings. */
export interface SerialLine {
  /** Prefer a path in /dev/serial/by-id/, because it does not depend on the USB socket. */
  readonly path: string
  /** Bits per second. */
  readonly baudRate: number
  readonly dataBits: 7 | 8
  readonly parity: 'none' | 'even' | 'odd'
  readonly stopBits: 1 | 2
}

const MAX_UNSENT_BYTES = 65_536
const STABLE_NAMES = '/dev/serial/by-id'

/** Stable names of this machine's serial ports; empty if there are none. */
export async function serialPorts(): Promise<string[]> {
  const names = await readdir(STABLE_NAMES).catch(() => [])
  return names.sort().map((name) => `${STABLE_NAMES}/${name}`)
}

async function explain(path: string, error: Error): Promise<LinkFault> {
  const text = error.message
  if (/cannot lock port|resource busy|EBUSY|temporarily unavailable/i.test(text)) {
    const owner = await portOwner(path)
    const fix = owner ? `stop ${owner}` : `stop the other program (sudo fuser -v ${path} names it)`
    return new LinkFault('busy', `${path}: in use by another program; ${fix}`, { cause: error })
  }
  if (/permission denied|EACCES|EPERM/i.test(text)) {
    const fix = 'add the user to the group that owns the port (sudo usermod -aG dialout $USER) and log in again'
    return new LinkFault('forbidden', `${path}: no permission; ${fix}`, { cause: error })
  }
  if (/no such file|ENOENT|no such device|ENODEV|ENXIO/i.test(text)) {
    const ports = await serialPorts()
    const fix = ports.length > 0 ? `ports here: ${ports.join(', ')}` : 'no serial adapter is plugged in'
    return new LinkFault('missing', `${path}: not there; ${fix}`, { cause: error })
  }
  return new LinkFault('unsupported', `${path}: ${text}`, { cause: error })
}

// Loads the native add-on on first use, because a machine with only network devices does not need it.
async function loadSerialPort(): Promise<typeof SerialPort> {
  try {
    return (await import('serialport')).SerialPort
  } catch (error) {
    const fix = 'run `npm rebuild @serialport/bindings-cpp`, or use a serial device server by TCP'
    throw new LinkFault('unsupported', `serial ports cannot be used: the add-on "serialport" does not load; ${fix}`, {
      cause: error,
    })
  }
}

/**
 * Opens a serial port exclusively. `hupcl: false` leaves DTR and RTS unchanged when the port closes, because many
 * adapters reset the device when these lines fall.
 */
export async function openSerial(line: SerialLine, signal: AbortSignal): Promise<ByteLink> {
  const Port = await loadSerialPort()
  if (signal.aborted) throw signal.reason as Error
  const port = new Port({ ...line, autoOpen: false, lock: true, hupcl: false, endOnClose: true, highWaterMark: 16_384 })
  const failure = await new Promise<Error | null>((resolve) => port.open((error) => resolve(error ?? null)))
  if (failure) throw await explain(line.path, failure)
  endOnHangup(port)
  const link = portLink(port, line.path)
  if (signal.aborted) {
    await link.close()
    throw signal.reason as Error
  }
  return link
}

function portLink(port: SerialPort, path: string): ByteLink {
  let closed = false
  const lost = () => new LinkFault('lost', `${path}: the port is gone; is the plug in?`)
  port.on('error', () => {})

  async function* read(): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of port) yield chunk as Uint8Array
    } catch (error) {
      if (closed) return
      throw new LinkFault('lost', lost().message, { cause: error })
    }
    if (!closed) throw lost()
  }

  return {
    bytes: { [Symbol.asyncIterator]: read },
    write: (bytes, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason as Error)
        if (!port.isOpen) return reject(lost())
        if (port.writableLength > MAX_UNSENT_BYTES)
          return reject(new LinkFault('lost', `${path}: the port takes no more bytes`))
        const finish = (act: () => void) => {
          signal.removeEventListener('abort', onAbort)
          port.removeListener('close', onClose)
          act()
        }
        const onAbort = () => finish(() => reject(signal.reason as Error))
        const onClose = () => finish(() => reject(lost()))
        signal.addEventListener('abort', onAbort, { once: true })
        // serialport may report a failed write only by `close`, without the callback.
        port.once('close', onClose)
        port.write(Buffer.from(bytes), (error) => finish(() => (error ? reject(lost()) : resolve())))
      }),
    close: () =>
      new Promise((resolve) => {
        closed = true
        if (!port.isOpen) return resolve()
        port.close(() => resolve())
      }),
  }
}
